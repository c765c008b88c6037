"""05: plans. An operator notes what is to be done; a program that reads a number makes a plan of all that is pending, and
runs it. It prints the plan of a forward and of a training step: fused kernels and the memory they use.

Run it:  python3 examples/python/05_plan.py        CAIRN_EAGER=1 .. evaluates one operation at a time
"""

import time

import cairn
import cairn.nn.functional as F

cairn.manual_seed(1)
x = cairn.randn(32, 64)
w = (cairn.randn(64, 16) * 0.1).requires_grad_()
b = cairn.zeros(16, requires_grad=True)


def loss_of() -> cairn.Tensor:
    return F.gelu(x @ w + b).square().mean()


# In the text @n is a place in the arena, in0, in1, ... are operands, out0, ... are results that are stored, and ~ marks
# strided access.
print("-- forward: bias, gelu, square and the sum are one kernel after the matrix product --")
print(loss_of().plan())

# A whole step: forward, backward and the update of the parameters. Until item() reads the loss, nothing has been computed.
seconds = []
for step in range(200):
    start = time.perf_counter()
    loss = loss_of()
    loss.backward()
    with cairn.no_grad():
        for p in (w, b):
            assert p.grad is not None
            p -= 0.1 / (step + 1) * p.grad
            p.grad = None
    if step == 1:
        print("-- a training step --")
        print(loss.plan())
    value = loss.item()
    seconds.append(time.perf_counter() - start)
    if step in (0, 1, 2, 199):
        print(f"step {step:3d}: loss {value:.5f}, {1e6 * seconds[-1]:.0f} µs")

# The first steps build plans, the others find them again. The learning rate changed in every step, but the plan did not:
# numbers are arguments of a plan.
assert min(seconds[2:]) < seconds[0]
