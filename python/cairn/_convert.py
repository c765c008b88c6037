"""Copies and pickles of tensors. The type cairn.Tensor calls these functions."""

import copy as _copy

from . import _C


def _like(kind, value, requires_grad):
    """An object of the type `kind` with this value, a leaf."""
    if kind is not _C.Tensor:
        return _C._make_parameter(kind, value, requires_grad)
    return value.requires_grad_() if requires_grad else value


def _rebuild(kind, data, dtype, shape, requires_grad, device=None):
    """What a pickle calls. `data` are the bytes of the elements in row-major order."""
    value = _C._from_bytes(data, dtype, shape)
    if device is not None:
        value = value._to_context(device)
    return _like(kind, value, requires_grad)


def reduce(self, protocol):
    device = None if self.is_cpu else str(self.device)
    arguments = type(self), self._to_bytes(), self.dtype, tuple(self.shape), self.requires_grad, device
    return _rebuild, arguments, self.__dict__ or None


def copy(self):
    """Another object with the same value; it is not part of the graph."""
    made = _like(type(self), self.detach(), self.requires_grad)
    for name, value in self.__dict__.items():
        setattr(made, name, value)
    return made


def deepcopy(self, memo):
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol; "
                           "use x.detach() or x.clone()")
    made = _like(type(self), self.detach().clone(), self.requires_grad)
    memo[id(self)] = made
    if self.grad is not None:
        made.grad = self.grad.detach().clone()
    for name, value in self.__dict__.items():
        setattr(made, name, _copy.deepcopy(value, memo))
    return made
