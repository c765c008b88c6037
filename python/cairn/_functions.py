"""PyTorch's functions and methods that are more than one operator, or that have several forms of call.

Everything else comes from the operators' signatures (cairn._C).
"""

import builtins
import math
from collections import namedtuple

from . import _C, _change  # noqa: F401  which registers methods
from ._C import Size, Tensor
from ._create import tensor
from ._names import FUNCTIONS, METHODS, alias, both, converted, function, in_place, method

# ---- reductions ----

_pairs = {}


def _pair(name, values, indices):
    if name not in _pairs:
        _pairs[name] = namedtuple(name, ["values", "indices"])
    return _pairs[name](values, indices)


def _extreme(name, whole, along, elementwise):
    def f(input, dim=None, keepdim=False, *, axis=None, other=None, out=None):
        dim = axis if dim is None else dim
        if other is not None:
            dim = other
        if isinstance(dim, Tensor):
            return elementwise(input, dim)
        if dim is None:
            return whole(input)
        return along(input, dim, keepdim)
    f.__name__ = name
    f.__doc__ = f"{name}(input), {name}(input, dim): values and indices, or {name}(input, other), element by element."
    return both(f)


_extreme("max", _C.max, _C.max_dim, _C.maximum)
_extreme("min", _C.min, _C.min_dim, _C.minimum)


@both
def amax(input, dim=None, keepdim=False, *, axis=None):
    """The largest element along axes."""
    return _C.max(input, dim if axis is None else axis, keepdim)


@both
def amin(input, dim=None, keepdim=False, *, axis=None):
    """The smallest element along axes."""
    return _C.min(input, dim if axis is None else axis, keepdim)


@both
def median(input, dim=None, keepdim=False):
    return _C.median(input) if dim is None else _C.median_dim(input, dim, keepdim)


@both
def nanmedian(input, dim=None, keepdim=False):
    return _C.nanmedian(input) if dim is None else _C.nanmedian_dim(input, dim, keepdim)


def _spread(name, op):
    def f(input, dim=None, unbiased=None, keepdim=False, *, correction=None, axis=None):
        dim = dim if axis is None else axis
        if isinstance(dim, builtins.bool):  # var(unbiased)
            dim, unbiased = None, dim
        if correction is None:
            correction = 1 if unbiased is None or unbiased else 0
        return op(input, dim, correction=correction, keepdim=keepdim)
    f.__name__ = name
    f.__doc__ = op.__doc__
    return both(f)


for _name in ("var", "std", "var_mean", "std_mean"):
    _spread(_name, getattr(_C, _name))


@both
def norm(input, p="fro", dim=None, keepdim=False, dtype=None):
    """The vector norm of all elements, or along axes."""
    if p == "nuc":
        raise NotImplementedError("norm(p='nuc'): use cairn.linalg.matrix_norm(A, 'nuc')")
    p = 2 if p is None or p == "fro" else p
    return _C.norm(converted(input, dtype), builtins.float(p), dim, keepdim)


@both
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The different elements, or slices along dim; with the places and the counts if asked for."""
    found = _C.unique(input, sorted, dim)
    picked = (found[0],) + ((found[1],) if return_inverse else ()) + ((found[2],) if return_counts else ())
    return picked if len(picked) > 1 else picked[0]


@both
def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    found = _C.unique_consecutive(input, dim)
    picked = (found[0],) + ((found[1],) if return_inverse else ()) + ((found[2],) if return_counts else ())
    return picked if len(picked) > 1 else picked[0]


@both
def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    return _C.all(_C.isclose(input, other, rtol, atol, equal_nan)).item()


@both
def equal(input, other):
    """Whether the two have the same shape and elements."""
    return tuple(input.shape) == tuple(other.shape) and _C.all(_C.eq(input, other)).item()


@both
def nonzero(input, *, as_tuple=False):
    places = _C.nonzero(input)
    return _C.unbind(places, 1) if as_tuple else places


METHODS["argwhere"] = FUNCTIONS["argwhere"] = lambda input: _C.nonzero(input)


@both
def quantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    q = q if isinstance(q, Tensor) else tensor(q, dtype=input.dtype)
    return _C.quantile(input, q, dim, keepdim, interpolation=interpolation)


@both
def nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    q = q if isinstance(q, Tensor) else tensor(q, dtype=input.dtype)
    return _C.nanquantile(input, q, dim, keepdim, interpolation=interpolation)


@both
def cov(input, *, correction=1):
    """The covariance of rows."""
    x = input if input.ndim == 2 else input.reshape(1, -1)
    x = x - _C.mean(x, 1, True)
    found = x @ x.T / builtins.max(x.shape[1] - correction, 0)
    return found if input.ndim == 2 else found.reshape(())


@both
def corrcoef(input):
    """The correlation of rows."""
    c = cov(input)
    if c.ndim == 0:
        return c / c
    d = _C.sqrt(_C.diag(c))
    return _C.clamp(c / d[:, None] / d[None, :], -1, 1)


# ---- elementwise ----


@both
def rsub(input, other, *, alpha=1):
    return other - input * alpha


def _rounded(quotient, rounding_mode):
    if rounding_mode == "floor":
        return _C.floor(quotient)
    if rounding_mode == "trunc":
        return _C.trunc(quotient)
    raise ValueError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")


@both
def div(input, other, *, rounding_mode=None):
    if rounding_mode is None:
        return _C.div(input, other)
    if rounding_mode == "floor":
        return _C.floor_div(input, other)
    quotient = _rounded(_C.div(input, other), rounding_mode)
    whole = not input.dtype.is_floating_point and (isinstance(other, builtins.int) or
                                                   isinstance(other, Tensor) and not other.dtype.is_floating_point)
    if not whole:
        return quotient
    return converted(quotient, _C.promote_types(input.dtype, other.dtype) if isinstance(other, Tensor) else input.dtype)


@method
def div_(self, other, *, rounding_mode=None):
    if rounding_mode is None:
        return Tensor.__itruediv__(self, other)
    return in_place(self, div(self, other, rounding_mode=rounding_mode))


@both
def clamp(input, min=None, max=None):
    """Elements below min become min, those above max become max."""
    if min is None and max is None:
        raise RuntimeError("clamp: at least one of 'min' or 'max' must not be None")
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        if min is not None:
            input = _C.maximum(input, min)
        return input if max is None else _C.minimum(input, max)
    if not input.dtype.is_floating_point and builtins.any(isinstance(v, builtins.float) for v in (min, max)):
        input = _C.cast(input, _C.get_default_dtype())
    return _C.clamp(input, -math.inf if min is None else min, math.inf if max is None else max)


@method
def clamp_(self, min=None, max=None):
    return in_place(self, clamp(self, min, max))


@both
def clamp_min(input, min):
    return clamp(input, min=min)


@both
def clamp_max(input, max):
    return clamp(input, max=max)


@both
def round(input, *, decimals=0):
    return _C.round(input) if not decimals else _C.round(input * 10.0 ** decimals) / 10.0 ** decimals


@both
def gelu(input, approximate="none"):
    return _C.gelu_tanh(input) if approximate == "tanh" else _C.gelu(input)


@both
def heaviside(input, values):
    return where(input == 0, values, converted(input > 0, input.dtype))


@both
def float_power(input, exponent):
    return _C.pow(converted(input, _C.float64), exponent)


@function
def where(condition, input=None, other=None):
    """input where the condition holds, else other; or the places where it holds."""
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    return _C.where(condition, input, other)


METHODS["where"] = lambda self, condition, other: _C.where(condition, self, other)


@function
def polar(abs, angle):
    raise NotImplementedError("there are no complex tensors; a last axis of 2 holds real and imaginary parts")


# ---- shapes ----


@method
def view_as(self, other):
    return _C.view(self, tuple(other.shape))


@method
def reshape_as(self, other):
    return _C.reshape(self, tuple(other.shape))


@method
def expand_as(self, other):
    return _C.expand(self, tuple(other.shape))


@both
def t(input):
    if input.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D")
    return input.T


@both
def ravel(input):
    return _C.reshape(input, (-1,))


@both
def split(tensor, split_size_or_sections, dim=0, *, split_size=None):
    """Parts of a size, or of several sizes, along an axis."""
    sizes = split_size_or_sections if split_size is None else split_size
    if isinstance(sizes, builtins.int):
        return _C.split(tensor, sizes, dim)
    parts, at = [], 0
    for n in sizes:
        parts.append(_C.narrow(tensor, dim, at, n))
        at += n
    if at != tensor.shape[dim]:
        raise RuntimeError(f"split_with_sizes expects split_sizes to sum exactly to {tensor.shape[dim]} "
                           f"(input tensor's size at dimension {dim}), but got split_sizes={list(sizes)}")
    return tuple(parts)


@both
def tensor_split(input, indices_or_sections, dim=0):
    if isinstance(indices_or_sections, builtins.int):
        return _C.tensor_split(input, indices_or_sections, dim)
    ends = [*indices_or_sections, input.shape[dim]]
    starts = [0, *indices_or_sections]
    return tuple(_C.slice(input, dim, a, builtins.max(a, b), 1) for a, b in zip(starts, ends))


@both
def repeat_interleave(input, repeats, dim=None, *, output_size=None):
    if dim is None:
        input, dim = _C.flatten(input), 0
    if isinstance(repeats, Tensor):
        if repeats.numel() == 1:
            repeats = repeats.item()
        else:
            places = [i for i, n in enumerate(repeats.tolist()) for _ in range(n)]
            return _C.index_select(input, dim, tensor(places, dtype=_C.int64, device=input.device))
    return _C.repeat_interleave(input, repeats, dim)


@both
def roll(input, shifts, dims=None):
    if dims is None:
        return _C.reshape(_C.roll(_C.flatten(input), shifts, 0), tuple(input.shape))
    return _C.roll(input, shifts, dims)


@both
def rot90(input, k=1, dims=(0, 1)):
    return _C.rot90(input, k, dims)


def _several(name, op):
    def f(*tensors, **more):
        if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
            tensors = tensors[0]
        return op(list(tensors), **more)
    f.__name__ = name
    f.__doc__ = op.__doc__
    return function(f)


for _name in ("meshgrid", "cartesian_prod", "block_diag"):
    _several(_name, getattr(_C, _name))


@function
def broadcast_tensors(*tensors):
    shape = broadcast_shapes(*(tuple(t.shape) for t in tensors))
    return tuple(_C.expand(t, shape) for t in tensors)


@function
def broadcast_shapes(*shapes):
    shapes = [(s,) if isinstance(s, builtins.int) else tuple(s) for s in shapes]
    out = []
    for i in range(1, builtins.max((len(s) for s in shapes), default=0) + 1):
        sizes = {s[-i] for s in shapes if len(s) >= i} - {1}
        if len(sizes) > 1:
            raise RuntimeError("Shape mismatch: objects cannot be broadcast to a single shape")
        out.append(sizes.pop() if sizes else 1)
    return Size(out[::-1])


def _scatter_values(input, index, src):
    if isinstance(src, Tensor):
        return src
    return _C.full(tuple(index.shape), src, dtype=input.dtype, device=str(input.device))


@both
def scatter(input, dim, index, src=None, *, value=None, reduce=None):
    src = _scatter_values(input, index, value if src is None else src)
    if reduce == "add":
        return _C.scatter_add(input, dim, index, src)
    if reduce == "multiply":
        return _C.scatter_reduce(input, dim, index, src, "prod")
    return _C.scatter(input, dim, index, src)


@method
def scatter_(self, dim, index, src=None, *, value=None, reduce=None):
    return in_place(self, scatter(self, dim, index, src, value=value, reduce=reduce))


@both
def index_copy(input, dim, index, source):
    places = _C.reshape(index, [-1 if d == dim % input.ndim else 1 for d in range(input.ndim)])
    return _C.scatter(input, dim, _C.expand(places, tuple(source.shape)), source)


@method
def index_copy_(self, dim, index, source):
    return in_place(self, index_copy(self, dim, index, source))


@both
def index_add(input, dim, index, source, *, alpha=1):
    return _C.index_add(input, dim, index, source if alpha == 1 else source * alpha)


@method
def index_add_(self, dim, index, source, *, alpha=1):
    return in_place(self, index_add(self, dim, index, source, alpha=alpha))


@both
def index_fill(input, dim, index, value):
    return _C.index_fill(input, dim, index, value.item() if isinstance(value, Tensor) else value)


@both
def masked_fill(input, mask, value):
    if isinstance(value, Tensor):
        return _C.where(mask, converted(value, input.dtype), input)
    return _C.masked_fill(input, mask, value)


@method
def masked_fill_(self, mask, value):
    return in_place(self, masked_fill(self, mask, value))


@method
def index_put_(self, indices, values, accumulate=False):
    values = values if isinstance(values, Tensor) else tensor(values, dtype=self.dtype, device=self.device)
    return in_place(self, _C.index_put(self, list(indices), values, accumulate))


@method
def fill_diagonal_(self, fill_value, wrap=False):
    mask = _C.cast(_C.eye(self.shape[0], self.shape[1], device=str(self.device)), _C.bool)
    return in_place(self, _C.masked_fill(self, mask, fill_value))


# ---- products ----


@function
def einsum(equation, *operands):
    """Sums of products, as the equation says: einsum("bij,bjk->bik", x, y)."""
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    return _C.einsum(equation, list(operands))


@function
def tensordot(a, b, dims=2):
    if isinstance(dims, builtins.int):
        first, second = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    else:
        first, second = ([d] if isinstance(d, builtins.int) else list(d) for d in dims)
    return _C.tensordot(a, b, first, second)


@function
def chain_matmul(*matrices):
    product = matrices[0]
    for m in matrices[1:]:
        product = product @ m
    return product


@both
def matrix_power(input, n):
    return _C.linalg_matrix_power(input, n)


@both
def inner(input, other):
    return _C.sum(input * other) if input.ndim == other.ndim == 1 else tensordot(input, other, ([-1 % input.ndim],
                                                                                                [-1 % other.ndim]))


@both
def logdet(input):
    sign, value = _C.linalg_slogdet(input)
    return _C.log(sign) + value  # NaN for a negative determinant


for _name, _own in (("inverse", "linalg_inv"), ("det", "linalg_det"), ("slogdet", "linalg_slogdet"),
                    ("pinverse", "linalg_pinv"), ("matrix_exp", "linalg_matrix_exp"), ("cholesky", "linalg_cholesky")):
    alias(getattr(_C, _own), _name)

# ---- other names for the same ----

for _name, _names in {
        "add": ("__add",), "mul": ("multiply",), "sub": ("subtract",), "div": ("divide", "true_divide"),
        "floor_div": ("floor_divide",), "neg": ("negative",), "abs": ("absolute",), "clamp": ("clip",),
        "gt": ("greater",),
        "ge": ("greater_equal",), "lt": ("less",), "le": ("less_equal",), "ne": ("not_equal",),
        "shift_left": ("bitwise_left_shift",), "shift_right": ("bitwise_right_shift",), "atan2": ("arctan2",),
        "asin": ("arcsin",), "acos": ("arccos",), "atan": ("arctan",), "asinh": ("arcsinh",), "acosh": ("arccosh",),
        "atanh": ("arctanh",), "trunc": ("fix",), "transpose": ("swapdims",), "movedim": ("moveaxis",),
        "outer": ("ger",), "sigmoid": ("special_expit",)}.items():
    for _other in _names:
        if not _other.startswith("__"):
            alias(FUNCTIONS.get(_name) or getattr(_C, _name), _other)
for _name, _own in (("multiply_", "mul_"), ("clip_", "clamp_"), ("negative_", "neg_"), ("subtract_", "sub_")):
    METHODS[_name] = METHODS.get(_own) or getattr(Tensor, _own)
alias(_C.cat, "concat", "concatenate", methods=False)
FUNCTIONS["row_stack"] = _C.vstack
FUNCTIONS["column_stack"] = lambda tensors: _C.hstack([x[:, None] if x.ndim == 1 else x for x in tensors])
FUNCTIONS["spmm"] = _C.matmul
FUNCTIONS["logsigmoid"] = _C.log_sigmoid

iinfo = namedtuple("iinfo", "bits min max dtype")
finfo = namedtuple("finfo", "bits eps max min tiny smallest_normal resolution dtype")
_integers = {_C.uint8: (8, 0, 255), _C.int8: (8, -128, 127), _C.int16: (16, -(1 << 15), (1 << 15) - 1),
             _C.int32: (32, -(1 << 31), (1 << 31) - 1), _C.int64: (64, -(1 << 63), (1 << 63) - 1)}
_floats = {_C.float16: (16, 2.0 ** -10, 65504.0, 2.0 ** -14, 1e-3),
           _C.bfloat16: (16, 2.0 ** -7, (2 - 2.0 ** -7) * 2.0 ** 127, 2.0 ** -126, 1e-2),
           _C.float32: (32, 2.0 ** -23, (2 - 2.0 ** -23) * 2.0 ** 127, 2.0 ** -126, 1e-6),
           _C.float64: (64, 2.0 ** -52, (2 - 2.0 ** -52) * 2.0 ** 1023, 2.0 ** -1022, 1e-15)}


def _limits_of_integers(dtype):
    if dtype not in _integers:
        raise TypeError(f"iinfo() needs an integer dtype, got {dtype}; use finfo")
    return iinfo(*_integers[dtype], str(dtype).split(".")[-1])


def _limits_of_floats(dtype=None):
    dtype = dtype or _C.get_default_dtype()
    if dtype not in _floats:
        raise TypeError(f"finfo() needs a floating dtype, got {dtype}; use iinfo")
    bits, eps, most, tiny, resolution = _floats[dtype]
    return finfo(bits, eps, most, -most, tiny, tiny, resolution, str(dtype).split(".")[-1])


FUNCTIONS["iinfo"] = _limits_of_integers
FUNCTIONS["finfo"] = _limits_of_floats


@function
def can_cast(from_, to):
    order = [_C.bool, _C.uint8, _C.int8, _C.int16, _C.int32, _C.int64, _C.float16, _C.bfloat16, _C.float32, _C.float64]
    kind = [0, 1, 1, 1, 1, 1, 2, 2, 2, 2]
    return kind[order.index(from_)] <= kind[order.index(to)]


@function
def result_type(tensor1, tensor2):
    if isinstance(tensor1, Tensor) and isinstance(tensor2, Tensor):
        return _C.add(_C.zeros_like(tensor1.detach()), _C.zeros_like(tensor2.detach())).dtype
    x, number = (tensor1, tensor2) if isinstance(tensor1, Tensor) else (tensor2, tensor1)
    return (_C.zeros_like(x.detach()) * number).dtype
