"""03: a network without modules. It learns to tell two interleaved half moons apart, with layers of 2-16-16-2 and plain
gradient descent with momentum, and prints a picture of what it learned.

Run it:  python3 examples/python/03_mlp.py [steps]
"""

import math
import sys

import cairn

POINTS, WIDTH = 256, (2, 16, 16, 2)


def half_moons() -> tuple[cairn.Tensor, cairn.Tensor]:
    """Places (n,2), and the moon of each place (n): 0 or 1."""
    moon = cairn.arange(POINTS) % 2
    t = math.pi * (cairn.arange(POINTS) // 2) / (POINTS // 2 - 1)
    x = cairn.where(moon == 1, 1 - t.cos(), t.cos())
    y = cairn.where(moon == 1, 0.5 - t.sin(), t.sin())
    return cairn.stack([x, y], dim=1) + 0.1 * cairn.randn(POINTS, 2), moon


def forward(params: list[cairn.Tensor], x: cairn.Tensor) -> cairn.Tensor:
    """Places (n,2) -> scores (n,2)"""
    for i in range(0, len(params), 2):
        x = x @ params[i] + params[i + 1]
        if i + 2 < len(params):
            x = x.relu()
    return x


def picture(params: list[cairn.Tensor], x: cairn.Tensor, y: cairn.Tensor) -> None:
    """Prints the plane from (-1.5, -1) to (2.5, 1.5): the network's answer at each place, and the points."""
    rows, cols = 22, 64
    down, right = cairn.meshgrid(cairn.linspace(1.5, -1, rows), cairn.linspace(-1.5, 2.5, cols), indexing="ij")
    side = forward(params, cairn.stack([right, down], dim=2).view(-1, 2)).argmax(dim=1).view(rows, cols)
    canvas = [["." if s else " " for s in line] for line in side.tolist()]
    for (px, py), moon in zip(x.tolist(), y.tolist()):
        c, r = round((px + 1.5) / 4 * (cols - 1)), round((1.5 - py) / 2.5 * (rows - 1))
        if 0 <= r < rows and 0 <= c < cols:
            canvas[r][c] = "#" if moon else "o"
    for line in canvas:
        print("   ", "".join(line))


steps = int(sys.argv[1]) if len(sys.argv) > 1 else 600
cairn.manual_seed(1)
x, y = half_moons()
params = []
for n, m in zip(WIDTH, WIDTH[1:]):
    params += [cairn.randn(n, m) * math.sqrt(2 / n), cairn.zeros(m)]
for p in params:
    p.requires_grad_()
speed = [cairn.zeros_like(p) for p in params]

accuracy = 0.0
for step in range(1, steps + 1):
    scores = forward(params, x)
    loss = -scores.log_softmax(dim=1).gather(1, y.unsqueeze(1)).mean()  # the cross entropy, written out
    grads = cairn.autograd.grad(loss, params)
    with cairn.no_grad():
        for p, v, g in zip(params, speed, grads):
            v.mul_(0.9).add_(g)
            p.sub_(0.1 * v)
    if step == 1 or step % 100 == 0:
        accuracy = (scores.argmax(dim=1) == y).float().mean().item()
        print(f"step {step:4d}  loss {loss.item():.4f}  accuracy {100 * accuracy:5.1f} %")

print("\nThe plane as the network divides it: o and # are the points; dots are where it answers #.\n")
with cairn.no_grad():
    picture(params, x, y)
assert steps < 300 or accuracy > 0.97
