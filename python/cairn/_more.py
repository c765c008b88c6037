"""PyTorch's less common functions and methods, composed of the others."""

import builtins
import itertools
import math

from . import _C, _functions
from ._C import Tensor
from ._create import tensor
from ._names import FUNCTIONS, METHODS, both, converted, function, in_place, method

# ---- parts ----


@both
def fliplr(input):
    return _C.flip(input, 1)


@both
def flipud(input):
    return _C.flip(input, 0)


@both
def hsplit(input, indices_or_sections):
    return _functions.tensor_split(input, indices_or_sections, 0 if input.ndim == 1 else 1)


@both
def vsplit(input, indices_or_sections):
    return _functions.tensor_split(input, indices_or_sections, 0)


@both
def dsplit(input, indices_or_sections):
    return _functions.tensor_split(input, indices_or_sections, 2)


@both
def split_with_sizes(input, split_sizes, dim=0):
    return _functions.split(input, list(split_sizes), dim)


@both
def select_scatter(input, src, dim, index):
    """input with src in place of one slice."""
    index = index + input.shape[dim] if index < 0 else index
    return _C.slice_assign(input, dim, index, index + 1, 1, _C.unsqueeze(src, dim))


@both
def slice_scatter(input, src, dim=0, start=None, end=None, step=1):
    """input with src in place of several slices."""
    start, end, step = slice(start, end, step).indices(input.shape[dim])
    return _C.slice_assign(input, dim, start, end, step, src)


@both
def narrow_copy(input, dim, start, length):
    return _C.clone(_C.narrow(input, dim, start, length))


@both
def msort(input):
    return _C.sort(input, 0, False)[0]


@both
def unravel_index(indices, shape):
    """The places in a grid of this shape that flat indices mean."""
    places = []
    for n in reversed(tuple(shape)):
        places.append(_C.remainder(indices, n))
        indices = _C.floor_div(indices, n)
    return tuple(reversed(places))


@both
def combinations(input, r=2, with_replacement=False):
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = list(choose(range(input.shape[0]), r))
    if not places:
        return _C.zeros((0, r), dtype=input.dtype)
    return input[tensor(places, device=input.device)]


@function
def isin(elements, test_elements, *, assume_unique=False, invert=False):
    """Whether each element is among others."""
    elements = elements if isinstance(elements, Tensor) else tensor(elements)
    test_elements = test_elements if isinstance(test_elements, Tensor) else tensor(test_elements)
    found = _C.any(_C.eq(_C.unsqueeze(elements, -1), _C.flatten(test_elements)), -1)
    return _C.logical_not(found) if invert else found


# ---- numbers ----


@both
def sgn(input):
    return _C.sign(input)


@both
def signbit(input):
    if not input.dtype.is_floating_point:
        return input < 0
    return _C.lt(_C.copysign(_C.ones_like(input), input), 0)


@both
def ldexp(input, other):
    return input * _C.exp2(converted(other, _C.get_default_dtype()))


@both
def gcd(input, other):
    """The greatest common divisor, by Euclid's rule on whole tensors."""
    a, b = _functions.broadcast_tensors(_C.abs(input), _C.abs(other))
    while _C.any(_C.ne(b, 0)).item():
        going = _C.ne(b, 0)
        a, b = _C.where(going, b, a), _C.where(going, _C.remainder(a, _C.maximum(b, 1)), 0)
    return a


@both
def lcm(input, other):
    divisor = gcd(input, other)
    return _C.abs(_C.mul(_C.floor_div(input, _C.maximum(divisor, 1)), other))


@both
def dist(input, other, p=2):
    return _C.norm(input - other, builtins.float(p))


@function
def pdist(input, p=2.0):
    """Distances of all pairs of rows."""
    n = input.shape[0]
    first, second = zip(*itertools.combinations(range(n), 2)) if n > 1 else ((), ())
    first, second = (tensor(list(i), dtype=_C.int64, device=input.device) for i in (first, second))
    return _C.norm(_C.index_select(input, 0, first) - _C.index_select(input, 0, second), builtins.float(p), 1)


@both
def vdot(input, other):
    return _C.dot(input, other)


@both
def renorm(input, p, dim, maxnorm):
    """Slices along dim whose norm is above maxnorm are scaled down to it."""
    axes = [d for d in range(input.ndim) if d != dim % input.ndim]
    norms = _C.norm(input, builtins.float(p), axes, True)
    return input * _C.where(norms > maxnorm, maxnorm / (norms + 1e-7), _C.ones_like(norms))


@both
def prelu(input, weight):
    shape = [1] * input.ndim
    if weight.numel() > 1 and input.ndim > 1:
        shape[1] = weight.numel()
        weight = _C.reshape(weight, shape)
    return _C.where(input > 0, input, input * weight)


@both
def hardshrink(input, lambd=0.5):
    return _C.where(_C.abs(input) > lambd, input, input * 0)


@function
def threshold(input, threshold, value):
    return _C.where(input > threshold, input, value)


@function
def trapezoid(y, x=None, *, dx=1.0, dim=-1):
    """The integral by the trapezoidal rule."""
    n = y.shape[dim]
    pairs = (_C.narrow(y, dim, 1, n - 1) + _C.narrow(y, dim, 0, n - 1)) / 2
    return _C.sum(pairs * (dx if x is None else _C.diff(x, 1, dim if x.ndim > 1 else -1)), dim)


@function
def cumulative_trapezoid(y, x=None, *, dx=1.0, dim=-1):
    n = y.shape[dim]
    pairs = (_C.narrow(y, dim, 1, n - 1) + _C.narrow(y, dim, 0, n - 1)) / 2
    return _C.cumsum(pairs * (dx if x is None else _C.diff(x, 1, dim if x.ndim > 1 else -1)), dim)


FUNCTIONS["trapz"] = trapezoid


@function
def poisson(input, generator=None):
    raise NotImplementedError("poisson(): not there; bernoulli, normal and exponential_ are")


# ---- windows for stft ----


def _window(name, weights, doc):
    def f(window_length, periodic=True, *, dtype=None, device=None, requires_grad=False, **ignored):
        if window_length <= 1:
            return _C.ones(window_length, dtype=dtype, device=device, requires_grad=requires_grad)
        last = window_length if periodic else window_length - 1
        angle = _C.arange(0, window_length, 1, dtype=_C.float64, device=device) * (2 * math.pi / last)
        found = builtins.sum(w * _C.cos(angle * k) for k, w in enumerate(weights)) + 0 * angle
        found = converted(found, dtype or _C.get_default_dtype())
        return found.requires_grad_() if requires_grad else found
    f.__name__ = name
    f.__doc__ = doc
    return function(f)


_window("hann_window", (0.5, -0.5), "Half a cosine wave.")
_window("hamming_window", (0.54, -0.46), "A cosine wave above a step.")
_window("blackman_window", (0.42, -0.5, 0.08), "Two cosine waves.")


@function
def bartlett_window(window_length, periodic=True, *, dtype=None, device=None, **ignored):
    """A triangle."""
    last = window_length if periodic else window_length - 1
    if window_length <= 1:
        return _C.ones(window_length, dtype=dtype, device=device)
    return converted(1 - _C.abs(_C.arange(0, window_length, 1, dtype=_C.float64, device=device) * (2 / last) - 1),
                     dtype or _C.get_default_dtype())


# ---- manners ----


@method
def sum_to_size(self, *size):
    size = size[0] if len(size) == 1 and not isinstance(size[0], builtins.int) else size
    lead = self.ndim - len(size)
    axes = [*range(lead), *(lead + i for i, n in enumerate(size) if n == 1 and self.shape[lead + i] != 1)]
    return _C.reshape(_C.sum(self, axes, True), tuple(size)) if axes else self


@method
def resize_as_(self, other):
    return self.resize_(tuple(other.shape))


@both
def as_strided(input, size, stride, storage_offset=None):
    """Elements at these steps of the values in row-major order; a value of its own, as a view is."""
    size, stride, offset = tuple(size), tuple(stride), storage_offset or 0
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if offset < 0 or builtins.any(s < 0 for s in stride):
        raise RuntimeError(f"as_strided: strides and offset must be >= 0, got {stride} and {offset}")
    last = offset + builtins.sum((n - 1) * s for n, s in zip(size, stride))
    if 0 not in size and last >= input.numel():
        raise RuntimeError(f"as_strided: sizes {size}, strides {stride} and offset {offset} are out of bounds for "
                           f"{input.numel()} elements")
    places = _C.full(size, offset, dtype=_C.int64, device=str(input.device))
    for axis, (n, step) in enumerate(zip(size, stride)):
        steps = _C.arange(0, n, 1, dtype=_C.int64, device=str(input.device)) * step
        places = places + _C.reshape(steps, (n,) + (1,) * (len(size) - axis - 1))
    return _C.reshape(_C.index_select(_C.reshape(input, (-1,)), 0, _C.reshape(places, (-1,))), size)


@both
def is_same_size(input, other):
    return tuple(input.shape) == tuple(other.shape)


METHODS["is_nonzero"] = lambda self: self.item() != 0
METHODS["share_memory_"] = lambda self: self
METHODS["is_shared"] = lambda self: False
METHODS["is_inference"] = lambda self: False
class _Storage:
    """What a tensor's memory would be if it were stored by itself; values are computed when it is read."""

    def __init__(self, x):
        self._x = x

    def nbytes(self):
        return self._x.numel() * self._x.element_size()

    size = __len__ = nbytes

    @property
    def device(self):
        return self._x.device

    def data_ptr(self):
        return self._x.data_ptr()

    def __sizeof__(self):
        return object.__sizeof__(self) + self.nbytes()


METHODS["untyped_storage"] = lambda self: _Storage(self)
METHODS["__array_priority__"] = 1000  # numpy.float64(2) - x is a tensor
METHODS["storage_type"] = lambda self: type(self)
for _name in ("conj", "resolve_conj", "resolve_neg", "real"):  # there are no complex tensors
    METHODS[_name] = FUNCTIONS[_name] = lambda input: input
METHODS["isreal"] = FUNCTIONS["isreal"] = lambda input: _C.cast(_C.ones_like(input), _C.bool)
METHODS["adjoint"] = FUNCTIONS["adjoint"] = lambda input: _C.transpose(input, -2, -1)
METHODS["svd"] = FUNCTIONS["svd"] = lambda input, some=True: _old_svd(input, some)
METHODS["qr"] = FUNCTIONS["qr"] = lambda input, some=True: _C.linalg_qr(input, "reduced" if some else "complete")
FUNCTIONS["matrix_rank"] = _C.linalg_matrix_rank
FUNCTIONS["constant_pad_nd"] = lambda input, pad, value=0: _C.pad(input, pad, "constant", value)
FUNCTIONS["set_flush_denormal"] = lambda mode: False
FUNCTIONS["is_autocast_enabled"] = lambda device_type=None: False


def _old_svd(input, some):
    u, s, vh = _C.linalg_svd(input, not some)
    return u, s, _C.transpose(vh, -2, -1)


# ---- in-place forms of what has none yet, as methods and as functions ----


def _changing(name, f):
    def change(self, *args, **kwargs):
        return in_place(self, f(self, *args, **kwargs))
    change.__name__ = name
    change.__doc__ = f"In-place form of {f.__name__}."
    return change


for _name in ("absolute", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "clamp_min",
              "clamp_max", "divide", "true_divide", "floor_divide", "fix", "float_power", "greater", "greater_equal",
              "less", "less_equal", "not_equal", "heaviside", "ldexp", "renorm", "sgn", "gcd", "lcm",
              "bitwise_left_shift", "bitwise_right_shift"):
    if not hasattr(Tensor, _name + "_"):
        METHODS[_name + "_"] = _changing(_name + "_", FUNCTIONS[_name])
for _name in ("abs", "acos", "asin", "atan", "ceil", "celu", "clamp", "cos", "cosh", "erf", "exp", "exp2", "expm1",
              "floor", "frac", "log", "log10", "log1p", "log2", "logit", "nan_to_num", "neg", "reciprocal", "relu",
              "round", "rsqrt", "selu", "sigmoid", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc", "zero",
              "fill", "index_put"):
    FUNCTIONS[_name + "_"] = METHODS.get(_name + "_") or getattr(Tensor, _name + "_")
