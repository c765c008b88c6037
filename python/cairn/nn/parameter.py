"""Tensors that modules find by themselves: parameters, which are trained, and buffers, which are only saved."""

import cairn
from cairn import _C
from cairn import Tensor


class Parameter(Tensor):
    """A tensor that a module lists among its parameters when it is assigned to an attribute.

    ``data`` gives the first value; the parameter is a new leaf, which requires a gradient unless told otherwise.
    """

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = cairn.empty(0)
        return _C._make_parameter(cls, data, requires_grad)

    def __deepcopy__(self, memo):
        known = memo.get(id(self))
        if known is not None:
            return known
        copy = type(self)(self.detach().clone(), self.requires_grad)
        memo[id(self)] = copy
        copy.__dict__.update(self.__dict__)
        return copy

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol):
        return _rebuild_parameter, (self.detach(), self.requires_grad, dict(self.__dict__))


def _rebuild_parameter(data, requires_grad, state=None):
    parameter = Parameter(data, requires_grad)
    if isinstance(state, dict) and state:
        parameter.__dict__.update(state)
    return parameter


class _BufferType(type(Tensor)):
    def __instancecheck__(cls, instance):
        return type.__instancecheck__(cls, instance) or (
            isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)
        )


class Buffer(Tensor, metaclass=_BufferType):
    """A tensor that a module lists among its buffers when it is assigned to an attribute.

    ``persistent`` says whether the module's ``state_dict`` has it.
    """

    def __new__(cls, data=None, *, persistent=True):
        if data is None:
            data = cairn.empty(0)
        buffer = data.detach().requires_grad_(data.requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer


class UninitializedParameter:
    """PyTorch's parameter without a shape. Cairn's layers know their sizes when they are made."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("a parameter without a shape: give the layer its sizes, for example nn.Linear(8, 2)")


UninitializedBuffer = UninitializedParameter


def is_lazy(param):
    return False
