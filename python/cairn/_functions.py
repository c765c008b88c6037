"""PyTorch's functions and methods that are more than one operator, or that have several forms of call.

Everything else comes from the operators' signatures (cairn._C). A function here whose first parameter is a tensor is a
method as well, unless @function says otherwise.
"""

import builtins
import math
from collections import namedtuple

from . import _C
from ._C import Size, Tensor
from ._device import Generator, context_name, device as Device

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


def _shape(sizes):
    """The shape given as numbers, or as one tuple or list."""
    if len(sizes) == 1 and not isinstance(sizes[0], int):
        return tuple(sizes[0]) if not isinstance(sizes[0], Tensor) else tuple(sizes[0].tolist())
    return sizes


def _converted(x, dtype):
    return x if dtype is None or x.dtype is dtype else _C.cast(x, dtype)


def _leaf(x, requires_grad):
    return x.requires_grad_() if requires_grad else x


# ---- tensors from data ----


tensor, as_tensor = _C.tensor, _C.as_tensor


def _constructor(name, dtype):
    def make(*args, device=None):
        if len(args) == 1 and not isinstance(args[0], int):
            return tensor(args[0], dtype=dtype, device=device)
        return _C.zeros(*args, dtype=dtype, device=device) if args else _C.zeros(0, dtype=dtype, device=device)
    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"{name}(data) or {name}(2, 3): a tensor of {dtype}."
    FUNCTIONS[name] = make


for _name, _dtype in (("FloatTensor", _C.float32), ("DoubleTensor", _C.float64), ("HalfTensor", _C.float16),
                      ("BFloat16Tensor", _C.bfloat16), ("LongTensor", _C.int64), ("IntTensor", _C.int32),
                      ("ShortTensor", _C.int16), ("CharTensor", _C.int8), ("ByteTensor", _C.uint8), ("BoolTensor", _C.bool)):
    _constructor(_name, _dtype)


@function
def empty(*size, dtype=None, device=None, requires_grad=False, **ignored):
    """A tensor whose values do not matter: here they are 0."""
    return _C.zeros(_shape(size), dtype=dtype, device=device, requires_grad=requires_grad)


@function
def zeros(*size, dtype=None, device=None, requires_grad=False, **ignored):
    if not size and "size" in ignored:
        size = (ignored["size"],)
    return _C.zeros(_shape(size), dtype=dtype, device=device, requires_grad=requires_grad)


@function
def ones(*size, dtype=None, device=None, requires_grad=False, **ignored):
    if not size and "size" in ignored:
        size = (ignored["size"],)
    return _C.ones(_shape(size), dtype=dtype, device=device, requires_grad=requires_grad)


@function
def full(size, fill_value, *, dtype=None, device=None, requires_grad=False, **ignored):
    """Every element the same number, whose type decides the dtype."""
    if isinstance(fill_value, Tensor):
        dtype, fill_value = dtype or fill_value.dtype, fill_value.item()
    if dtype is None:
        dtype = (_C.bool if isinstance(fill_value, builtins.bool) else
                 _C.int64 if isinstance(fill_value, builtins.int) else _C.get_default_dtype())
    return _C.full(_shape((size,)), fill_value, dtype=dtype, device=device, requires_grad=requires_grad)


def _like(make):
    def like(input, *args, dtype=None, device=None, requires_grad=False, **ignored):
        device = str(input.device) if device is None else device
        return make(tuple(input.shape), *args, dtype=dtype or input.dtype, device=device, requires_grad=requires_grad)
    return like


for _name, _make in (("zeros_like", _C.zeros), ("ones_like", _C.ones), ("empty_like", _C.zeros), ("full_like", _C.full),
                     ("rand_like", _C.rand), ("randn_like", _C.randn)):
    _like_this = _like(_make)
    _like_this.__name__ = _name
    _like_this.__doc__ = f"{_name}(input): a tensor of the shape, dtype and device of input."
    FUNCTIONS[_name] = _like_this


@function
def arange(start, end=None, step=1, *, dtype=None, device=None, requires_grad=False, **ignored):
    """start, start + step, ... below end; whole numbers give int64."""
    if end is None:
        start, end = 0, start
    start, end, step = (v.item() if isinstance(v, Tensor) else v for v in (start, end, step))
    if dtype is None:
        whole = builtins.all(isinstance(v, builtins.int) for v in (start, end, step))
        dtype = _C.int64 if whole else _C.get_default_dtype()
    return _C.arange(start, end, step, dtype=dtype, device=device, requires_grad=requires_grad)


@function
def logspace(start, end, steps, base=10.0, *, dtype=None, device=None, requires_grad=False):
    """base to the powers of linspace(start, end, steps)."""
    return _leaf(_C.rpow_s(_C.linspace(start, end, steps, dtype=dtype, device=device), base), requires_grad)


@function
def eye(n, m=None, *, dtype=None, device=None, requires_grad=False, **ignored):
    """Ones on the diagonal, zeros elsewhere."""
    return _C.eye(n, n if m is None else m, dtype=dtype, device=device, requires_grad=requires_grad)


@function
def tril_indices(row, col, offset=0, *, dtype=None, device=None):
    """The places of the lower triangle: two rows of indices."""
    return _converted(_C.nonzero(_C.tril(_C.ones(row, col, device=device), offset)).T.contiguous(), dtype)


@function
def triu_indices(row, col, offset=0, *, dtype=None, device=None):
    """The places of the upper triangle: two rows of indices."""
    return _converted(_C.nonzero(_C.triu(_C.ones(row, col, device=device), offset)).T.contiguous(), dtype)


@function
def scalar_tensor(value, *, dtype=None, device=None):
    return tensor(value, dtype=dtype or _C.get_default_dtype(), device=device)


@method
def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
    return tensor(data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad)


@method
def new_zeros(self, *size, dtype=None, device=None, requires_grad=False):
    return _C.zeros(_shape(size), dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad)


@method
def new_ones(self, *size, dtype=None, device=None, requires_grad=False):
    return _C.ones(_shape(size), dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad)


@method
def new_full(self, size, fill_value, *, dtype=None, device=None, requires_grad=False):
    return _C.full(_shape((size,)), fill_value, dtype=dtype or self.dtype, device=device or self.device,
                   requires_grad=requires_grad)


METHODS["new_empty"] = METHODS["new_zeros"]
METHODS["new"] = lambda self, *args: (METHODS["new_tensor"](self, args[0]) if args and not isinstance(args[0], int)
                                      else METHODS["new_zeros"](self, *(args or (0,))))


# ---- random numbers ----


def _drawn(make, size, dtype, device, requires_grad, generator):
    if generator is None:
        return make(size, dtype=dtype, device=device, requires_grad=requires_grad)
    x = make(size, dtype=dtype, device=generator._name)
    return _leaf(x._to_context(context_name(device or generator.device)), requires_grad)


@function
def rand(*size, generator=None, dtype=None, device=None, requires_grad=False, **ignored):
    """Numbers evenly distributed over [0, 1)."""
    if not size and "size" in ignored:
        size = (ignored["size"],)
    return _drawn(_C.rand, _shape(size), dtype, device, requires_grad, generator)


@function
def randn(*size, generator=None, dtype=None, device=None, requires_grad=False, **ignored):
    """Numbers of the standard normal distribution."""
    if not size and "size" in ignored:
        size = (ignored["size"],)
    return _drawn(_C.randn, _shape(size), dtype, device, requires_grad, generator)


@function
def randint(low, high=None, size=None, *, generator=None, dtype=None, device=None, requires_grad=False, **ignored):
    """Whole numbers from low up to, but not including, high."""
    if size is None:
        low, high, size = 0, low, high
    if high is None:
        low, high = 0, low
    dtype = dtype or _C.int64
    return _drawn(lambda s, **more: _C.randint(low, high, s, **more), _shape((size,)), dtype, device, requires_grad, generator)


@function
def randint_like(input, low, high=None, *, dtype=None, device=None):
    low, high = (0, low) if high is None else (low, high)
    return randint(low, high, tuple(input.shape), dtype=dtype or input.dtype, device=device or input.device)


@function
def randperm(n, *, generator=None, dtype=None, device=None, requires_grad=False, **ignored):
    """The numbers 0 to n - 1 in random order."""
    x = _C.randperm(n, device=device if generator is None else generator._name)
    if generator is not None:
        x = x._to_context(context_name(device or generator.device))
    return _converted(x, dtype)


@function
def normal(mean=0.0, std=1.0, size=None, *, generator=None, dtype=None, device=None):
    """Numbers of normal distributions."""
    if size is None:
        like = mean if isinstance(mean, Tensor) else std
        size, dtype, device = tuple(like.shape), dtype or like.dtype, device or like.device
    return randn(_shape((size,)), generator=generator, dtype=dtype, device=device) * std + mean


@both
def bernoulli(input, p=None, *, generator=None):
    """1 with the probability that the element gives, else 0."""
    if p is not None:
        input = _C.full(tuple(input.shape), p, dtype=input.dtype, device=str(input.device))
    if generator is None:
        return _C.bernoulli(input)
    return _converted(rand(tuple(input.shape), generator=generator, device=input.device) < input, input.dtype)


@both
def multinomial(input, num_samples, replacement=False, *, generator=None):
    """Indices drawn with the given weights."""
    if generator is None:
        return _C.multinomial(input, num_samples, replacement)
    x = _C.multinomial(input.detach()._to_context(generator._name), num_samples, replacement)
    return x._to_context(context_name(input.device))


@method
def normal_(self, mean=0, std=1, *, generator=None):
    return _in_place(self, randn(tuple(self.shape), generator=generator, device=self.device) * std + mean)


@method
def uniform_(self, *args, generator=None, **named):
    low = args[0] if args else named.get("from", named.get("a", 0))
    high = args[1] if len(args) > 1 else named.get("to", named.get("b", 1))
    return _in_place(self, rand(tuple(self.shape), generator=generator, device=self.device) * (high - low) + low)


@method
def random_(self, low=0, high=None, *, generator=None):
    if high is None:
        low, high = (0, low) if low else (0, 1 << (24 if self.dtype.is_floating_point else 31))
    return _in_place(self, randint(low, high, tuple(self.shape), generator=generator, device=self.device))


@method
def exponential_(self, lambd=1, *, generator=None):
    return _in_place(self, -_C.log1p(-rand(tuple(self.shape), generator=generator, device=self.device)) / lambd)


@method
def bernoulli_(self, p=0.5, *, generator=None):
    p = p if isinstance(p, Tensor) else full(tuple(self.shape), builtins.float(p), device=self.device)
    return _in_place(self, bernoulli(p, generator=generator))


@method
def log_normal_(self, mean=1, std=2, *, generator=None):
    return _in_place(self, _C.exp(randn(tuple(self.shape), generator=generator, device=self.device) * std + mean))


# ---- in-place forms ----


def _in_place(self, value):
    """Gives self the value; a leaf that requires a gradient may only be changed where nothing is recorded."""
    if self.requires_grad and self.is_leaf and _C.is_grad_enabled():
        raise RuntimeError("a leaf Tensor that requires grad is being used in an in-place operation.")
    if tuple(value.shape) != tuple(self.shape):
        value = _C.expand(value, tuple(self.shape))
    return self._assign(_converted(value, self.dtype))


@method
def copy_(self, src, non_blocking=False):
    src = src if isinstance(src, Tensor) else tensor(src)
    return _in_place(self, src._to_context(context_name(self.device)))


@method
def fill_(self, value):
    value = value.item() if isinstance(value, Tensor) and value.ndim == 0 and not value.requires_grad else value
    if isinstance(value, Tensor):
        return _in_place(self, value)
    return _in_place(self, _C.full(tuple(self.shape), value, dtype=self.dtype, device=str(self.device)))


@method
def zero_(self):
    return METHODS["fill_"](self, 0)


@method
def set_(self, source):
    self.data = source
    return self


@method
def resize_(self, *size):
    size = _shape(size)
    flat = _C.flatten(self.detach())
    need = math.prod(size)
    flat = flat[:need] if flat.numel() >= need else _C.cat([flat, _C.zeros(need - flat.numel(), dtype=self.dtype)])
    self.data = _C.reshape(flat, size)
    return self


# ---- conversions ----


@method
def to(self, *args, device=None, dtype=None, non_blocking=False, copy=False, memory_format=None):
    """The tensor with another dtype or on another device; itself if it is so already."""
    for a in args:
        if isinstance(a, _C.dtype):
            dtype = a
        elif isinstance(a, Tensor):
            dtype, device = a.dtype, a.device
        elif isinstance(a, (str, int, Device)) and not isinstance(a, builtins.bool):
            device = a
        elif isinstance(a, builtins.bool) or a is None:
            continue
        else:
            raise TypeError(f"to(): expected a dtype, a device or a Tensor, got {type(a).__name__}")
    x = self
    if device is not None:
        name = context_name(device)
        if name != context_name(self.device):
            if x.requires_grad and not x.is_leaf:
                raise NotImplementedError("to(): gradients do not flow between devices yet; move the leaves instead")
            x = _leaf(x.detach()._to_context(name), x.requires_grad)
    x = _converted(x, dtype)
    return x.clone() if copy and x is self else x


@method
def cpu(self, memory_format=None):
    return to(self, "cpu")


@method
def gpu(self, index=None):
    return to(self, "gpu" if index is None else f"gpu:{index}")


@method
def cuda(self, *args, **kwargs):
    raise NotImplementedError("there is no CUDA in cairn: any GPU is device 'gpu'; write x.to(\"gpu\") or x.gpu()")


@method
def type(self, dtype=None, non_blocking=False):
    names = {"Float": _C.float32, "Double": _C.float64, "Half": _C.float16, "BFloat16": _C.bfloat16, "Long": _C.int64,
             "Int": _C.int32, "Short": _C.int16, "Char": _C.int8, "Byte": _C.uint8, "Bool": _C.bool}
    if dtype is None:
        return "cairn." + next(n for n, t in names.items() if t is self.dtype) + "Tensor"
    if isinstance(dtype, str):
        short = dtype.rsplit(".", 1)[-1].replace("Tensor", "")
        if short not in names:
            raise ValueError(f"invalid type: '{dtype}'")
        dtype = names[short]
    elif callable(dtype) and getattr(dtype, "__name__", "").endswith("Tensor"):
        dtype = names[dtype.__name__[:-6]]
    return _converted(self, dtype)


_own_type = type
del type


@method
def type_as(self, other):
    return to(self, other)


for _name, _dtype in (("float", _C.float32), ("double", _C.float64), ("half", _C.float16), ("bfloat16", _C.bfloat16),
                      ("long", _C.int64), ("int", _C.int32), ("short", _C.int16), ("char", _C.int8), ("byte", _C.uint8),
                      ("bool", _C.bool)):
    METHODS[_name] = (lambda dtype: lambda self, memory_format=None: _converted(self, dtype))(_dtype)


@method
def pin_memory(self, device=None):
    return self


METHODS["is_pinned"] = lambda self: False
METHODS["is_floating_point"] = FUNCTIONS["is_floating_point"] = lambda input: input.dtype.is_floating_point
METHODS["is_complex"] = FUNCTIONS["is_complex"] = lambda input: False
METHODS["is_signed"] = lambda self: self.dtype.is_signed
METHODS["get_device"] = lambda self: -1 if self.device.type == "cpu" else (self.device.index or 0)
METHODS["retain_grad"] = lambda self: _retain_grad(self)
METHODS["numpy_T"] = lambda self: self.T
FUNCTIONS["is_tensor"] = lambda obj: isinstance(obj, Tensor)
FUNCTIONS["is_storage"] = lambda obj: False
FUNCTIONS["numel"] = lambda input: input.numel()


def _retain_grad(self):
    if self.is_leaf:
        return
    raise NotImplementedError("retain_grad(): gradients of results are not kept; use cairn.autograd.grad, or a hook")


@method
def register_hook(self, hook):
    """Calls hook(grad) when the gradient of the tensor is computed. Returns a handle with remove()."""
    return _HookHandle(self._add_hook(hook))


class _HookHandle:
    def __init__(self, place):
        self._place = place

    def remove(self):
        _C._remove_hook(self._place)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.remove()


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
    return _C.norm(_converted(input, dtype), builtins.float(p), dim, keepdim)


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
    return _converted(quotient, _C.promote_types(input.dtype, other.dtype) if isinstance(other, Tensor) else input.dtype) \
        if whole else quotient


@method
def div_(self, other, *, rounding_mode=None):
    if rounding_mode is None:
        return Tensor.__itruediv__(self, other)
    return _in_place(self, div(self, other, rounding_mode=rounding_mode))


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
    return _in_place(self, clamp(self, min, max))


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
    return where(input == 0, values, _converted(input > 0, input.dtype))


@both
def float_power(input, exponent):
    return _C.pow(_converted(input, _C.float64), exponent)


@function
def where(condition, input=None, other=None):
    """input where the condition holds, else other; or the places where it holds."""
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    return _C.where(condition, input, other)


METHODS["where"] = lambda self, condition, other: _C.where(condition, self, other)


@function
def polar(abs, angle):
    raise NotImplementedError("there are no complex tensors; the last axis of 2 holds real and imaginary parts (cairn.fft)")


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
    return _in_place(self, scatter(self, dim, index, src, value=value, reduce=reduce))


@both
def index_copy(input, dim, index, source):
    places = _C.reshape(index, [-1 if d == dim % input.ndim else 1 for d in range(input.ndim)])
    return _C.scatter(input, dim, _C.expand(places, tuple(source.shape)), source)


@method
def index_copy_(self, dim, index, source):
    return _in_place(self, index_copy(self, dim, index, source))


@both
def index_add(input, dim, index, source, *, alpha=1):
    return _C.index_add(input, dim, index, source if alpha == 1 else source * alpha)


@method
def index_add_(self, dim, index, source, *, alpha=1):
    return _in_place(self, index_add(self, dim, index, source, alpha=alpha))


@both
def index_fill(input, dim, index, value):
    return _C.index_fill(input, dim, index, value.item() if isinstance(value, Tensor) else value)


@both
def masked_fill(input, mask, value):
    if isinstance(value, Tensor):
        return _C.where(mask, _converted(value, input.dtype), input)
    return _C.masked_fill(input, mask, value)


@method
def masked_fill_(self, mask, value):
    return _in_place(self, masked_fill(self, mask, value))


@method
def index_put_(self, indices, values, accumulate=False):
    values = values if isinstance(values, Tensor) else tensor(values, dtype=self.dtype, device=self.device)
    return _in_place(self, _C.index_put(self, list(indices), values, accumulate))


@method
def fill_diagonal_(self, fill_value, wrap=False):
    mask = _C.cast(_C.eye(self.shape[0], self.shape[1], device=str(self.device)), _C.bool)
    return _in_place(self, _C.masked_fill(self, mask, fill_value))


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
        "floor_div": ("floor_divide",), "neg": ("negative",), "abs": ("absolute",), "clamp": ("clip",), "gt": ("greater",),
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


for _name, _f in METHODS.items():
    setattr(Tensor, _name, _f)
