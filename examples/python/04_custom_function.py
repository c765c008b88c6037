"""04: a function with a gradient of its own. Its forward and its backward are written with operators, so that both run on
every device.

Run it:  python3 examples/python/04_custom_function.py
"""

from typing import Any

import cairn


class Round(cairn.autograd.Function):
    """Rounds to whole numbers. The true gradient is 0 nearly everywhere; this one lets gradients pass unchanged (a
    "straight-through estimator"), as networks with whole-numbered weights need it."""

    @staticmethod
    def forward(ctx: Any, x: cairn.Tensor) -> cairn.Tensor:
        return x.round()

    @staticmethod
    def backward(ctx: Any, grad: cairn.Tensor) -> cairn.Tensor:
        return grad


class Stairs(cairn.autograd.Function):
    """A soft staircase: x + p·sin(x)."""

    @staticmethod
    def forward(ctx: Any, x: cairn.Tensor, p: float) -> cairn.Tensor:
        ctx.save_for_backward(x)
        ctx.p = p
        return x + p * x.sin()

    @staticmethod
    def backward(ctx: Any, grad: cairn.Tensor) -> tuple[cairn.Tensor, None]:
        (x,) = ctx.saved_tensors
        return grad * (1 + ctx.p * x.cos()), None  # a number has no gradient


def stairs(x: cairn.Tensor) -> cairn.Tensor:
    result: cairn.Tensor = Stairs.apply(x, 0.8)
    return result


# The gradient against finite differences.
x = cairn.randn(4, 5, dtype=cairn.float64, requires_grad=True)
assert cairn.autograd.gradcheck(stairs, (x,))
print("the gradient of stairs agrees with finite differences")

# A network with weights of -2 .. 2 learns to multiply by such a matrix. Without Round's own gradient it would stand still.
cairn.manual_seed(1)
target = cairn.randint(-2, 3, (4, 3)).float()
weight = cairn.zeros(4, 3, requires_grad=True)
optimizer = cairn.optim.SGD([weight], lr=0.05)
for step in range(200):
    data = cairn.randn(32, 4)
    loss = ((data @ Round.apply(weight) - data @ target) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step:3d}  loss {loss.item():.4f}")
print("learned", weight.round().tolist(), "of", target.tolist(), sep="\n")
assert cairn.equal(weight.round(), target)
