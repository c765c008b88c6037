"""What PyTorch's functions and methods are registered with, and what they share.

A function with @both becomes cairn.NAME and Tensor.NAME, with @function or @method one of them.
"""

from . import _C
from ._C import Tensor

METHODS = {}    # by name: what becomes a method of Tensor
FUNCTIONS = {}  # by name: what becomes a function of the module


def both(f):
    METHODS[f.__name__] = FUNCTIONS[f.__name__] = f
    return f


def method(f):
    METHODS[f.__name__] = f
    return f


def function(f):
    FUNCTIONS[f.__name__] = f
    return f


def alias(f, *names, methods=True):
    for name in names:
        FUNCTIONS[name] = f
        if methods:
            METHODS[name] = f


def shape_of(sizes):
    """The shape given as numbers, or as one tuple or list."""
    if len(sizes) == 1 and not isinstance(sizes[0], int):
        return tuple(sizes[0]) if not isinstance(sizes[0], Tensor) else tuple(sizes[0].tolist())
    return sizes


def converted(x, dtype):
    return x if dtype is None or x.dtype is dtype else _C.cast(x, dtype)


def leaf(x, requires_grad):
    return x.requires_grad_() if requires_grad else x


def in_place(self, value):
    """Gives self the value; a leaf that requires a gradient may only be changed where nothing is recorded."""
    if self.requires_grad and self.is_leaf and _C.is_grad_enabled():
        raise RuntimeError("a leaf Tensor that requires grad is being used in an in-place operation.")
    if tuple(value.shape) != tuple(self.shape):
        value = _C.expand(value, tuple(self.shape))
    return self._assign(converted(value, self.dtype))
