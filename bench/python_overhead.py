"""What a call from Python costs: Cairn beside PyTorch and MLX, on tensors so small that nothing else counts.

    bench/python_overhead.py [--seconds S]

Cairn is measured with the Python that runs this script, which must have the package; PyTorch in .venv/torch and MLX
(the package mlx[cpu]) in .venv/mlx, if they are there. Each measurement is the least of many short runs on one thread.
Prints microseconds, and how many times Cairn's time the others take. "recorded" is the call alone, which computes
nothing yet in Cairn and MLX; "computed" includes the evaluation.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
import timeit
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PEERS = {"torch": ROOT / ".venv" / "torch", "mlx": ROOT / ".venv" / "mlx"}
CALLS = 200  # calls between two looks at the clock


# What is measured: name, expression for Cairn and PyTorch, expression for MLX.
CASES = [("a + b", "a + b", "a + b"),
         ("a + b, gradients", "p + b", None),
         ("ten additions", "a + b + b + b + b + b + b + b + b + b + b", "a + b + b + b + b + b + b + b + b + b + b"),
         ("a.sum()", "a.sum()", "a.sum()"),
         ("a[1:3]", "a[1:3]", "a[1:3]"),
         ("(4,4) @ (4,4)", "a @ b", "a @ b"),
         ("Linear(4,4)(x)", "linear(x)", "linear(x)"),
         ("(a + b).sum().backward()", "backward()", "gradient(a)")]


def names_of(framework, module):
    """What the expressions mean."""
    if framework == "mlx":
        import mlx.nn as nn
        b = module.ones((4, 4))
        return {"a": module.ones((4, 4)), "b": b, "linear": nn.Linear(4, 4), "x": module.ones((2, 4)), "mx": module,
                "gradient": module.grad(lambda t: (t + b).sum())}
    a, b, p = module.ones(4, 4), module.ones(4, 4), module.ones(4, 4, requires_grad=True)

    def backward():
        p.grad = None
        (p + b).sum().backward()
        return p.grad
    return {"a": a, "b": b, "p": p, "linear": module.nn.Linear(4, 4), "x": module.ones(2, 4), "backward": backward}


def least(statement, names, seconds):
    """The least time of a statement, in microseconds: of many runs of CALLS times each."""
    timer = timeit.Timer(statement, globals=names)
    end, best = time.perf_counter() + seconds, float("inf")
    while time.perf_counter() < end:
        best = min(best, timer.timeit(CALLS))
    return 1e6 * best / CALLS


def measure(framework, seconds):
    """{case: [recorded, computed]}, and the time of the import under "import"."""
    start = time.perf_counter()
    module = importlib.import_module("mlx.core" if framework == "mlx" else framework)
    result = {"import": [None, 1e6 * (time.perf_counter() - start)]}
    if framework == "mlx":
        module.set_default_device(module.cpu)
    else:
        module.set_num_threads(1)
    names = names_of(framework, module)
    form = {"cairn": "({}).eval()", "torch": "{}", "mlx": "mx.eval({})"}[framework]
    for name, ours, others in CASES:
        expression = others if framework == "mlx" else ours
        if expression:
            result[name] = [least(expression, names, seconds), least(form.format(expression), names, seconds)]
    return result


def ask(python, framework, seconds):
    """Measures in a process of its own; None if that framework is not there."""
    command = [python, __file__, "--seconds", str(seconds), "--measure", framework]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode != 0:
        print(f"left out: {framework}: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
        return None
    return json.loads(done.stdout.splitlines()[-1])


def show(results):
    ours = results["cairn"]
    others = [name for name in results if name != "cairn"]
    print(f"{'µs':<28}{'recorded':>10}{'computed':>10}" + "".join(f"{name:>12}{'':>8}" for name in others))
    for name, (recorded, computed) in ours.items():
        line = f"{name:<28}{recorded:>10.2f}{computed:>10.2f}" if recorded else f"{name:<28}{'':>10}{computed:>10.0f}"
        for other in others:
            theirs = results[other].get(name)
            line += f"{theirs[1]:>12.2f}{theirs[1] / computed:>7.1f}x" if theirs else f"{'-':>12}{'':>8}"
        print(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=0.5, help="for each measurement")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options.seconds)))
        return
    pythons = {"cairn": sys.executable}
    pythons.update({name: folder / "bin" / "python" for name, folder in PEERS.items() if (folder / "bin").exists()})
    results = {name: ask(python, name, options.seconds) for name, python in pythons.items()}
    if not results["cairn"]:
        raise SystemExit("the package is not installed: pip install ./python")
    show({name: result for name, result in results.items() if result})


main()
