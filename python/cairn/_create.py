"""Tensors from data, from a shape, and from random numbers."""

import builtins

from . import _C
from ._C import Tensor
from ._device import context_name
from ._names import FUNCTIONS, METHODS, both, converted, function, in_place, leaf, method, shape_of

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
                      ("ShortTensor", _C.int16), ("CharTensor", _C.int8), ("ByteTensor", _C.uint8),
                      ("BoolTensor", _C.bool)):
    _constructor(_name, _dtype)


@function
def empty(*size, dtype=None, device=None, requires_grad=False, **ignored):
    """A tensor whose values do not matter: here they are 0."""
    return _C.zeros(shape_of(size), dtype=dtype, device=device, requires_grad=requires_grad)


@function
def zeros(*size, dtype=None, device=None, requires_grad=False, **ignored):
    if not size and "size" in ignored:
        size = (ignored["size"],)
    return _C.zeros(shape_of(size), dtype=dtype, device=device, requires_grad=requires_grad)


@function
def ones(*size, dtype=None, device=None, requires_grad=False, **ignored):
    if not size and "size" in ignored:
        size = (ignored["size"],)
    return _C.ones(shape_of(size), dtype=dtype, device=device, requires_grad=requires_grad)


@function
def full(size, fill_value, *, dtype=None, device=None, requires_grad=False, **ignored):
    """Every element the same number, whose type decides the dtype."""
    if isinstance(fill_value, Tensor):
        dtype, fill_value = dtype or fill_value.dtype, fill_value.item()
    if dtype is None:
        dtype = (_C.bool if isinstance(fill_value, builtins.bool) else
                 _C.int64 if isinstance(fill_value, builtins.int) else _C.get_default_dtype())
    return _C.full(shape_of((size,)), fill_value, dtype=dtype, device=device, requires_grad=requires_grad)


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
    return leaf(_C.rpow_s(_C.linspace(start, end, steps, dtype=dtype, device=device), base), requires_grad)


@function
def eye(n, m=None, *, dtype=None, device=None, requires_grad=False, **ignored):
    """Ones on the diagonal, zeros elsewhere."""
    return _C.eye(n, n if m is None else m, dtype=dtype, device=device, requires_grad=requires_grad)


@function
def tril_indices(row, col, offset=0, *, dtype=None, device=None):
    """The places of the lower triangle: two rows of indices."""
    return converted(_C.nonzero(_C.tril(_C.ones(row, col, device=device), offset)).T.contiguous(), dtype)


@function
def triu_indices(row, col, offset=0, *, dtype=None, device=None):
    """The places of the upper triangle: two rows of indices."""
    return converted(_C.nonzero(_C.triu(_C.ones(row, col, device=device), offset)).T.contiguous(), dtype)


@function
def scalar_tensor(value, *, dtype=None, device=None):
    return tensor(value, dtype=dtype or _C.get_default_dtype(), device=device)


@method
def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
    return tensor(data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad)


@method
def new_zeros(self, *size, dtype=None, device=None, requires_grad=False):
    return _C.zeros(shape_of(size), dtype=dtype or self.dtype, device=device or self.device,
                    requires_grad=requires_grad)


@method
def new_ones(self, *size, dtype=None, device=None, requires_grad=False):
    return _C.ones(shape_of(size), dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad)


@method
def new_full(self, size, fill_value, *, dtype=None, device=None, requires_grad=False):
    return _C.full(shape_of((size,)), fill_value, dtype=dtype or self.dtype, device=device or self.device,
                   requires_grad=requires_grad)


METHODS["new_empty"] = METHODS["new_zeros"]
METHODS["new"] = lambda self, *args: (METHODS["new_tensor"](self, args[0]) if args and not isinstance(args[0], int)
                                      else METHODS["new_zeros"](self, *(args or (0,))))


# ---- random numbers ----


def _drawn(make, size, dtype, device, requires_grad, generator):
    if generator is None:
        return make(size, dtype=dtype, device=device, requires_grad=requires_grad)
    x = make(size, dtype=dtype, device=generator._name)
    return leaf(x._to_context(context_name(device or generator.device)), requires_grad)


@function
def rand(*size, generator=None, dtype=None, device=None, requires_grad=False, **ignored):
    """Numbers evenly distributed over [0, 1)."""
    if not size and "size" in ignored:
        size = (ignored["size"],)
    return _drawn(_C.rand, shape_of(size), dtype, device, requires_grad, generator)


@function
def randn(*size, generator=None, dtype=None, device=None, requires_grad=False, **ignored):
    """Numbers of the standard normal distribution."""
    if not size and "size" in ignored:
        size = (ignored["size"],)
    return _drawn(_C.randn, shape_of(size), dtype, device, requires_grad, generator)


@function
def randint(low, high=None, size=None, *, generator=None, dtype=None, device=None, requires_grad=False, **ignored):
    """Whole numbers from low up to, but not including, high."""
    if size is None:
        low, high, size = 0, low, high
    if high is None:
        low, high = 0, low
    dtype = dtype or _C.int64
    return _drawn(lambda s, **more: _C.randint(low, high, s, **more), shape_of((size,)), dtype, device, requires_grad,
                  generator)


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
    return converted(x, dtype)


@function
def normal(mean=0.0, std=1.0, size=None, *, generator=None, dtype=None, device=None):
    """Numbers of normal distributions."""
    if size is None:
        like = mean if isinstance(mean, Tensor) else std
        size, dtype, device = tuple(like.shape), dtype or like.dtype, device or like.device
    return randn(shape_of((size,)), generator=generator, dtype=dtype, device=device) * std + mean


@both
def bernoulli(input, p=None, *, generator=None):
    """1 with the probability that the element gives, else 0."""
    if p is not None:
        input = _C.full(tuple(input.shape), p, dtype=input.dtype, device=str(input.device))
    if generator is None:
        return _C.bernoulli(input)
    return converted(rand(tuple(input.shape), generator=generator, device=input.device) < input, input.dtype)


@both
def multinomial(input, num_samples, replacement=False, *, generator=None):
    """Indices drawn with the given weights."""
    if generator is None:
        return _C.multinomial(input, num_samples, replacement)
    x = _C.multinomial(input.detach()._to_context(generator._name), num_samples, replacement)
    return x._to_context(context_name(input.device))


@method
def normal_(self, mean=0, std=1, *, generator=None):
    return in_place(self, randn(tuple(self.shape), generator=generator, device=self.device) * std + mean)


@method
def uniform_(self, *args, generator=None, **named):
    low = args[0] if args else named.get("from", named.get("a", 0))
    high = args[1] if len(args) > 1 else named.get("to", named.get("b", 1))
    return in_place(self, rand(tuple(self.shape), generator=generator, device=self.device) * (high - low) + low)


@method
def random_(self, low=0, high=None, *, generator=None):
    if high is None:
        low, high = (0, low) if low else (0, 1 << (24 if self.dtype.is_floating_point else 31))
    return in_place(self, randint(low, high, tuple(self.shape), generator=generator, device=self.device))


@method
def exponential_(self, lambd=1, *, generator=None):
    return in_place(self, -_C.log1p(-rand(tuple(self.shape), generator=generator, device=self.device)) / lambd)


@method
def bernoulli_(self, p=0.5, *, generator=None):
    p = p if isinstance(p, Tensor) else full(tuple(self.shape), builtins.float(p), device=self.device)
    return in_place(self, bernoulli(p, generator=generator))


@method
def log_normal_(self, mean=1, std=2, *, generator=None):
    return in_place(self, _C.exp(randn(tuple(self.shape), generator=generator, device=self.device) * std + mean))
