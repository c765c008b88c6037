"""In-place forms, conversions of dtype and device, hooks: methods of tensors."""

import builtins
import math
import weakref

from . import _C
from ._C import Tensor
from ._create import tensor
from ._device import context_name, device as Device
from ._names import FUNCTIONS, METHODS, converted, in_place, leaf, method, shape_of

# ---- in-place forms ----


@method
def copy_(self, src, non_blocking=False):
    src = src if isinstance(src, Tensor) else tensor(src)
    return in_place(self, src._to_context(context_name(self.device)))


@method
def fill_(self, value):
    value = value.item() if isinstance(value, Tensor) and value.ndim == 0 and not value.requires_grad else value
    if isinstance(value, Tensor):
        return in_place(self, value)
    return in_place(self, _C.full(tuple(self.shape), value, dtype=self.dtype, device=str(self.device)))


@method
def zero_(self):
    return METHODS["fill_"](self, 0)


@method
def set_(self, source):
    self.data = source
    return self


@method
def resize_(self, *size):
    size = shape_of(size)
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
            x = leaf(x.detach()._to_context(name), x.requires_grad)
    x = converted(x, dtype)
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


def _type(self, dtype=None, non_blocking=False):
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
    return converted(self, dtype)


METHODS["type"] = _type


@method
def type_as(self, other):
    return to(self, other)


for _name, _dtype in (("float", _C.float32), ("double", _C.float64), ("half", _C.float16), ("bfloat16", _C.bfloat16),
                      ("long", _C.int64), ("int", _C.int32), ("short", _C.int16), ("char", _C.int8), ("byte", _C.uint8),
                      ("bool", _C.bool)):
    METHODS[_name] = (lambda dtype: lambda self, memory_format=None: converted(self, dtype))(_dtype)


@method
def pin_memory(self, device=None):
    return self


METHODS["is_pinned"] = lambda self: False
METHODS["is_floating_point"] = FUNCTIONS["is_floating_point"] = lambda input: input.dtype.is_floating_point
METHODS["is_complex"] = FUNCTIONS["is_complex"] = lambda input: False
METHODS["is_signed"] = lambda self: self.dtype.is_signed
METHODS["get_device"] = lambda self: -1 if self.device.type == "cpu" else (self.device.index or 0)
METHODS["retains_grad"] = property(lambda self: "_retained_grad" in self.__dict__ and not self.is_leaf)
METHODS["numpy_T"] = lambda self: self.T
FUNCTIONS["is_tensor"] = lambda obj: isinstance(obj, Tensor)
FUNCTIONS["is_storage"] = lambda obj: False
FUNCTIONS["numel"] = lambda input: input.numel()


@method
def retain_grad(self):
    """Keeps the gradient of a result in its .grad, as that of a leaf is kept."""
    if not self.requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if self.is_leaf or "_retained_grad" in self.__dict__:
        return
    self._retained_grad = None
    result = weakref.ref(self)  # the graph must not keep the result alive

    def keep(grad):
        x = result()
        if x is not None:
            x._retained_grad = grad if x._retained_grad is None else x._retained_grad + grad

    self._add_hook(keep)


@method
def register_post_accumulate_grad_hook(self, hook):
    """Calls hook(self) after a backward that gave self a gradient. Returns a handle with remove()."""
    if not self.requires_grad or not self.is_leaf:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    leaf_ = weakref.ref(self)
    handle = None

    def run():
        x = leaf_()
        if x is not None and not handle.removed:
            hook(x)

    handle = _HookHandle(self._add_hook(lambda grad: _C._after_backward(run)))
    return handle


@method
def register_hook(self, hook):
    """Calls hook(grad) when the gradient of the tensor is computed. Returns a handle with remove()."""
    return _HookHandle(self._add_hook(hook))


class _HookHandle:
    def __init__(self, place):
        self._place, self.removed = place, False

    def remove(self):
        self.removed = True
        _C._remove_hook(self._place)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.remove()
