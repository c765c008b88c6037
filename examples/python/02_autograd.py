"""02: gradients. Gradient descent in a valley, a second derivative, and a comparison with finite differences.

Run it:  python3 examples/python/02_autograd.py
"""

import cairn


def valley(p: cairn.Tensor) -> cairn.Tensor:
    """Rosenbrock's valley: (1 - x)² + 100 (y - x²)², lowest at (1, 1)."""
    x, y = p[0], p[1]
    return (1 - x) ** 2 + 100 * (y - x**2) ** 2


# The program says that gradients of p are wanted; backward() fills p.grad.
p = cairn.tensor([-1.2, 1.0], dtype=cairn.float64, requires_grad=True)
for step in range(20001):
    height = valley(p)
    height.backward()
    with cairn.no_grad():  # what happens here is not part of the function
        assert p.grad is not None
        p -= 1e-3 * p.grad
    p.grad = None
    if step % 4000 == 0:
        print(f"step {step:5d}  height {height.item():.6f}  at ({p[0].item():.4f}, {p[1].item():.4f})")
assert height.item() < 1e-4

# Second order: the derivative of x³ is 3x², its derivative 6x.
x = cairn.tensor(2.0, requires_grad=True)
cube = x**3
(first,) = cairn.autograd.grad(cube, x, create_graph=True)
(second,) = cairn.autograd.grad(first, x)
print(f"x = 2: x^3 = {cube.item()}, first derivative {first.item()}, second {second.item()}")
assert (cube.item(), first.item(), second.item()) == (8.0, 12.0, 12.0)

# The checker compares with finite differences, and raises an exception where they disagree.
at = cairn.tensor([-1.2, 1.0], dtype=cairn.float64, requires_grad=True)
assert cairn.autograd.gradcheck(valley, (at,))
print("gradient against finite differences: they agree")
