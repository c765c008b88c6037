"""Cairn: tensors, gradients, modules and optimizers with PyTorch's names, in a small library for the CPU and any GPU.

    import cairn as torch

    x = torch.randn(3, requires_grad=True)
    (x * x).sum().backward()
    print(x.grad)                               # 2x: values are computed when they are needed
"""

from math import e, inf, nan, pi  # noqa: F401

from . import _C
from ._C import *  # noqa: F401,F403  every operator, dtypes, Tensor, Size, errors
from ._C import __version__  # noqa: F401
from ._device import (Generator, device, enable_grad, get_default_device, inference_mode,  # noqa: F401
                      is_inference_mode_enabled,
                      no_grad, set_default_device, set_grad_enabled)
from . import _more  # noqa: F401  which registers what _names has
from ._names import FUNCTIONS, METHODS

globals().update(FUNCTIONS)
for _name, _method in METHODS.items():
    setattr(_C.Tensor, _name, _method)
del FUNCTIONS, METHODS, _name, _method

strided, contiguous_format, preserve_format = "strided", "contiguous_format", "preserve_format"
channels_last = "channels_last"

_C._set_part("repr", lambda x: __import__("cairn._repr", fromlist=["repr"]).tensor_text(x))
_C.Tensor._repr_html_ = lambda x: __import__("cairn._repr", fromlist=["repr"]).tensor_html(x)

# Parts that are loaded when they are first used.
_PARTS = {name: name for name in (
    "nn", "optim", "utils", "autograd", "func", "linalg", "fft", "amp", "cuda", "accelerator", "backends", "profiler",
    "random", "distributed", "jit", "hub", "special", "vision", "micrograd", "serialization", "testing", "mps", "xpu",
    "onnx", "sparse", "distributions", "multiprocessing", "version")}
_FROM = {"save": "serialization", "load": "serialization", "vmap": "func", "set_printoptions": "_repr",
         "get_printoptions": "_repr", "printoptions": "_repr",
         "autocast": "amp", "compile": "compiler", "seed": "random", "get_rng_state": "random",
         "set_rng_state": "random",
         "Variable": "autograd"}


def __getattr__(name):
    import importlib
    if name in _FROM:
        value = getattr(importlib.import_module("cairn." + _FROM[name]), name)
    elif name in _PARTS:
        try:
            value = importlib.import_module("cairn." + name)
        except ModuleNotFoundError as error:
            if error.name != "cairn." + name:
                raise
            raise AttributeError(f"module 'cairn' has no attribute '{name}'") from None
    else:
        raise AttributeError(f"module 'cairn' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_PARTS, *_FROM})


def is_nonzero(input):
    """Whether the only element is not 0."""
    if input.numel() != 1:
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
    return input.item() != 0


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Results are the same for any number of threads in any case."""


def are_deterministic_algorithms_enabled():
    return True


def set_float32_matmul_precision(precision):
    """Products of float32 are computed in float32 in any case."""


def get_float32_matmul_precision():
    return "highest"


def set_num_interop_threads(n):
    """There is one pool of threads."""


def set_default_tensor_type(t):
    """set_default_tensor_type(cairn.DoubleTensor): the dtype of new floating tensors."""
    names = {"FloatTensor": _C.float32, "DoubleTensor": _C.float64, "HalfTensor": _C.float16}
    _C.set_default_dtype(names[(t if isinstance(t, str) else t.__name__).rsplit(".", 1)[-1]])


def typename(o):
    """The name of an object's type."""
    return o.type() if isinstance(o, _C.Tensor) else type(o).__name__
