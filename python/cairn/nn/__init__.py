"""PyTorch's torch.nn: modules, their functions, initial values and tools."""

from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
from .modules import *
from .modules import Module
from .modules.utils import consume_prefix_in_state_dict_if_present
from . import functional, init, modules, parallel, utils
from .parallel import DataParallel


def factory_kwargs(kwargs):
    """The device and dtype of a module's arguments."""
    if kwargs is None:
        return {}
    unexpected = set(kwargs) - {"device", "dtype", "memory_format", "factory_kwargs"}
    if unexpected:
        raise TypeError(f"unexpected kwargs {unexpected}")
    return {**kwargs.get("factory_kwargs", {}), **{k: v for k, v in kwargs.items() if k != "factory_kwargs"}}


def __getattr__(name):
    if name in ("attention", "grad"):
        import importlib
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module 'cairn.nn' has no attribute '{name}'")
