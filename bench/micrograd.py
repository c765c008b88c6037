#!/usr/bin/env python3
"""Trains micrograd's two-moons demo with cairn.micrograd and with a plain Python engine, and prints how they compare.

    PYTHONPATH=python python3 bench/micrograd.py             # against the engine of python/tests/plain_micrograd.py
    PYTHONPATH=python python3 bench/micrograd.py FOLDER      # against FOLDER/micrograd/engine.py and nn.py

MLP(2, [16, 16, 1]), 100 points, 100 steps of gradient descent, max-margin loss, L2 regularisation, accuracy: the whole
demo, in the words a user writes, with the same seed. Both runs must end with the same loss. Times are CPU time of the
one thread that works, so that a busy machine does not matter; with --batch they are by the clock.
"""

import argparse
import importlib
import math
import random
import sys
import time
from pathlib import Path


def moons(n, noise=0.1, seed=1337):
    """n points on two half circles that reach into one another, labels -1 and 1."""
    rng = random.Random(seed)
    points, labels = [], []
    for i in range(n):
        upper, angle = i % 2 == 0, math.pi * (i // 2) / (n // 2 - 1)
        x, y = (math.cos(angle), math.sin(angle)) if upper else (1 - math.cos(angle), 0.5 - math.sin(angle))
        points.append([x + rng.gauss(0, noise), y + rng.gauss(0, noise)])
        labels.append(-1 if upper else 1)
    return points, labels


def train(engine, points, labels, steps, report, clock=time.process_time):
    """The demo. Returns its last loss and accuracy, and the seconds it took."""
    Value = engine.Value
    random.seed(1337)
    start = clock()
    model = engine.MLP(2, [16, 16, 1])
    for k in range(steps):
        inputs = [list(map(Value, point)) for point in points]
        scores = list(map(model, inputs))
        losses = [(1 + -label * score).relu() for label, score in zip(labels, scores)]
        data_loss = sum(losses) * (1.0 / len(losses))
        total = data_loss + 1e-4 * sum(p * p for p in model.parameters())
        right = [(label > 0) == (score.data > 0) for label, score in zip(labels, scores)]
        model.zero_grad()
        total.backward()
        rate = 1.0 - 0.9 * k / 100
        for p in model.parameters():
            p.data -= rate * p.grad
        if report and k % 20 == 19:
            print(f"  step {k + 1:3}  loss {total.data:.6f}  accuracy {100 * sum(right) / len(right):.0f} %")
    return total.data, sum(right) / len(right), clock() - start


class Engine:
    """Value and MLP of micrograd in a folder."""

    def __init__(self, folder):
        sys.path.insert(0, str(folder))
        self.Value = importlib.import_module("micrograd.engine").Value
        self.MLP = importlib.import_module("micrograd.nn").MLP


def train_batch(engine, points, labels, steps):
    """The same with one ValueBatch for all points."""
    random.seed(1337)
    model = engine.MLP(2, [16, 16, 1])
    x, y = engine.ValueBatch(points), engine.ValueBatch([float(label) for label in labels])
    start = time.perf_counter()
    for k in range(steps):
        loss = (1 - y * model(x)).relu().mean()
        model.zero_grad()
        loss.backward()
        rate = 1.0 - 0.9 * k / 100
        for p in model.parameters():
            p.data -= rate * (p.grad + 2e-4 * p.data)
    return time.perf_counter() - start


def plain(folder):
    if folder:
        return Engine(Path(folder).resolve())
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python" / "tests"))
    return importlib.import_module("plain_micrograd")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", help="where micrograd is; default: the plain engine of the tests")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--batch", action="store_true", help="with a ValueBatch in place of the plain engine")
    options = parser.parse_args()
    import cairn.micrograd as fast

    points, labels = moons(options.points)
    train(fast, points, labels, 3, False)
    print("cairn.micrograd")
    clock = time.perf_counter if options.batch else time.process_time
    loss, accuracy, seconds = train(fast, points, labels, options.steps, True, clock)
    print(f"  {options.steps} steps in {seconds:.4f} s")
    if options.batch:
        train_batch(fast, points, labels, 3)
        batch_seconds = train_batch(fast, points, labels, options.steps)
        print(f"ValueBatch\n  {options.steps} steps in {batch_seconds:.4f} s\nratio {seconds / batch_seconds:.2f}")
        return
    print(options.folder or "plain Python")
    plain_loss, plain_accuracy, plain_seconds = train(plain(options.folder), points, labels, options.steps, True)
    print(f"  {options.steps} steps in {plain_seconds:.4f} s")
    print(f"ratio {plain_seconds / seconds:.0f}")
    if abs(loss - plain_loss) > 1e-6 * abs(plain_loss) or accuracy != plain_accuracy:
        sys.exit(f"the results differ: loss {loss} and {plain_loss}, accuracy {accuracy} and {plain_accuracy}")


if __name__ == "__main__":
    main()
