"""08: scalar autograd. Values that remember where they came from, a picture of their graph, and a network of them that
tells two moons apart; then the same network on a whole batch at once.

Run it:  python3 examples/python/08_micrograd.py
"""

import math
import random
import tempfile
from pathlib import Path

from cairn.micrograd import MLP, Value, ValueBatch, draw_dot

# Each operation makes a Value that knows its operands; backward() goes through them in the other direction.
a, b = Value(2.0, label="a"), Value(-3.0, label="b")
c = (a * b + 10).tanh() * a
c.backward()
print("c", c, " a", a, " b", b)
print("c came from", c._op, "of", c._prev)

# The derivative by b is about what a small change of b does.
nudge = 1e-6
changed = math.tanh(2.0 * (-3.0 + nudge) + 10) * 2.0
assert abs((changed - c.data) / nudge - b.grad) < 1e-4

# The graph as a picture; a notebook shows draw_dot(c) by itself.
with tempfile.TemporaryDirectory() as folder:
    picture = draw_dot(c).save(Path(folder, "graph.svg"))
    print("a picture of the graph:", Path(picture).stat().st_size, "bytes of SVG")

# Two half moons that reach into one another, labels -1 and 1.
random.seed(1337)
points, labels = [], []
for i in range(100):
    angle = math.pi * (i // 2) / 49
    x, y = (math.cos(angle), math.sin(angle)) if i % 2 == 0 else (1 - math.cos(angle), 0.5 - math.sin(angle))
    points.append([x + random.gauss(0, 0.1), y + random.gauss(0, 0.1)])
    labels.append(-1 if i % 2 == 0 else 1)

# A network of 337 Values. A call of it is one step into C; every number within it can be looked at nevertheless.
model = MLP(2, [16, 16, 1])
for step in range(100):
    scores = [model(point) for point in points]
    losses = [(1 + -label * score).relu() for label, score in zip(labels, scores)]  # the margin must be 1
    loss = sum(losses) * (1 / len(losses)) + 1e-4 * sum(p * p for p in model.parameters())
    model.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.data -= (1 - 0.9 * step / 100) * p.grad
    if step % 20 == 19:
        right = sum((label > 0) == (score.data > 0) for label, score in zip(labels, scores))
        print(f"step {step + 1:3d}  loss {loss.data:.4f}  accuracy {right} %")
assert right > 95

# What it has learnt: '#' where the score is positive.
for row in range(11, -6, -2):
    cells = [[-1.5 + 0.1 * column, row / 8] for column in range(41)]
    print("".join("#" if model(cell).data > 0 else "." for cell in cells))

# The same with a batch: one ValueBatch for all points, computed in a few kernels.
together = model(ValueBatch(points))
hinge = (1 - together * labels).relu().mean()
model.zero_grad()
hinge.backward()  # the gradients arrive in the same Values
print(f"the loss of the batch {hinge.item():.4f}, of the values {sum(losses).data / 100:.4f} one step before")
assert max(abs(one - model(point).data) for one, point in zip(together.tolist(), points)) < 1e-4
