"""Derivatives of functions at a place: torch.autograd.functional. The inputs are a tensor, or a tuple of tensors."""

from .. import _C
from .._C import Tensor
from .._device import enable_grad
from . import _tuple, grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _leaves(inputs, create_graph):
    """The inputs as tensors to differentiate by."""
    return tuple(x.view(tuple(x.shape)) if create_graph and x.requires_grad else x.detach().requires_grad_()
                 for x in _tuple(inputs))


def _called(func, xs):
    """The results of func as a tuple, and whether it returned a single tensor."""
    with enable_grad():
        y = func(*xs)
    return _tuple(y), isinstance(y, Tensor)


def _vectors(v, like, what):
    """The given vectors, one for each tensor; None is 1 for a single number."""
    if v is None:
        if any(y.numel() != 1 for y in like):
            raise RuntimeError(f"The vector v can only be None if {what}")
        return tuple(_C.ones_like(y) for y in like)
    v = _tuple(v)
    if [tuple(g.shape) for g in v] != [tuple(y.shape) for y in like]:
        raise RuntimeError(f"v has invalid size: should be {[tuple(y.shape) for y in like]}, "
                           f"got {[tuple(g.shape) for g in v]}")
    return v


def _grads(ys, xs, seeds=None, create_graph=False):
    """Gradients of the results that have any; zeros where there is none."""
    found = [(y, g) for y, g in zip(ys, seeds or [None] * len(ys)) if y.requires_grad]
    if not found:
        return tuple(_C.zeros_like(x) for x in xs)
    return grad([y for y, _ in found], xs, None if seeds is None else [g for _, g in found], retain_graph=True,
                create_graph=create_graph, materialize_grads=True)


def _finished(values, create_graph):
    return tuple(v if create_graph else v.detach() for v in values)


def _like(values, single):
    return values[0] if single else values


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """All derivatives of all elements: (result's shape, input's shape), for each result and each input."""
    single, xs = isinstance(inputs, Tensor), _leaves(inputs, create_graph)
    ys, one = _called(func, xs)
    rows = []
    for y in ys:
        flat = y.reshape(-1)
        each = [_grads([flat[i]], xs, create_graph=create_graph) for i in range(y.numel())]
        parts = [_C.stack([g[i] for g in each]) if each else _C.zeros((0, *x.shape), dtype=x.dtype)
                 for i, x in enumerate(xs)]
        parts = _finished([p.reshape(tuple(y.shape) + tuple(x.shape)) for p, x in zip(parts, xs)], create_graph)
        rows.append(_like(parts, single))
    return _like(tuple(rows), one)


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """The second derivatives of a single number."""
    single = isinstance(inputs, Tensor)

    def first(*xs):
        ys, one = _called(func, xs)
        if not one or ys[0].numel() != 1:
            raise RuntimeError("The function given to hessian should return a single element")
        return _like(_grads(ys, xs, create_graph=True), single)

    return jacobian(first, inputs, create_graph=create_graph)


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """(the result, v times the Jacobian)"""
    single, xs = isinstance(inputs, Tensor), _leaves(inputs, create_graph)
    ys, one = _called(func, xs)
    seeds = _vectors(v, ys, "the user-provided function returns a single Tensor with a single element.")
    found = _finished(_grads(ys, xs, seeds, create_graph), create_graph)
    return _like(_finished(ys, create_graph), one), _like(found, single)


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """(the result, the Jacobian times v)"""
    xs = _leaves(inputs, create_graph)
    v = _vectors(v, xs, "the input to the user-provided function is a single Tensor with a single element.")
    ys, one = _called(func, xs)
    # what is linear in the seeds of a vjp is differentiated by them
    seeds = tuple(_C.zeros_like(y).requires_grad_() for y in ys)
    with enable_grad():
        turned = _grads(ys, xs, seeds, create_graph=True)
    found = _grads(turned, seeds, v, create_graph)
    return _like(_finished(ys, create_graph), one), _like(_finished(found, create_graph), one)


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """(the result, v times the Hessian)"""
    single, xs = isinstance(inputs, Tensor), _leaves(inputs, create_graph)
    v = _vectors(v, xs, "the input to the user-provided function is a single Tensor with a single element.")
    ys, one = _called(func, xs)
    if not one or ys[0].numel() != 1:
        raise RuntimeError("The function given to vhp should return a single element")
    first = _grads(ys, xs, create_graph=True)
    found = _finished(_grads(first, xs, v, create_graph), create_graph)
    return _finished(ys, create_graph)[0], _like(found, single)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """(the result, the Hessian times v): the Hessian is symmetric"""
    return vhp(func, inputs, v, create_graph, strict)
