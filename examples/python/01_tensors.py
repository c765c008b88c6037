"""01: tensors. How to make them, compute with them and read them, what a view is, and when anything is computed.

Run it:  python3 examples/python/01_tensors.py
"""

import cairn

# The same seed gives the same random numbers on every machine.
cairn.manual_seed(42)

# From your data, which is copied, or from a function that makes a tensor.
x = cairn.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
r = cairn.rand(3)
print("x", x, "three random numbers", r, sep="\n")

# Shapes broadcast: (2,3) + (3) adds r to every row. An operator only notes what is to be done; printing computes.
print("x * 10 + r", x * 10 + r, sep="\n")
print("x times its transpose", x @ x.T, sep="\n")
print("sums of the rows", x.sum(dim=1), sep="\n")

# Views copy no data: they read the same memory in another order.
column, backwards = x[:, 2], x.flip((0, 1))
print("the last column, a view", column)
print("both axes reversed, a view", backwards, sep="\n")
print("is the transpose contiguous?", x.T.is_contiguous())

# A part of a tensor is a part: what changes the one in place changes the other. Other views keep the value they had.
x += 100
print("x after x += 100", x, sep="\n")
print("the last column now", column, "and the reversed view, as it was", backwards, sep="\n")
assert column.tolist() == [103.0, 106.0] and backwards[0].tolist() == [6.0, 5.0, 4.0]

# Types follow PyTorch: dividing whole numbers gives floats, comparing gives bools.
i = cairn.arange(5)
print(i, i / 2, i > 2, sep="\n")
assert i.dtype == cairn.int64 and (i / 2).dtype == cairn.float32 and (i > 2).sum().item() == 2

# A mistake is an exception at the line that makes it, not at the line that computes.
try:
    x @ x
except ValueError as error:
    print("a mistake:", error)
else:
    raise AssertionError("a product of (2,3) and (2,3) must fail")
