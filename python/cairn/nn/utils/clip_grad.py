"""Gradients kept within limits."""

import math

import cairn


def _list_of(parameters):
    return [parameters] if isinstance(parameters, cairn.Tensor) else list(parameters)


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of all tensors together, as if they were one vector."""
    tensors, norm_type = _list_of(tensors), float(norm_type)
    if not tensors:
        return cairn.tensor(0.0)
    first = tensors[0]
    if norm_type == math.inf:
        norms = [t.detach().abs().max().to(first.device) for t in tensors]
        total = norms[0] if len(norms) == 1 else cairn.stack(norms).max()
    else:
        norms = [t.detach().norm(norm_type).to(first.device) for t in tensors]
        total = norms[0] if len(norms) == 1 else cairn.stack(norms).norm(norm_type)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it "
                           "cannot be clipped. To disable this error and scale the gradients by the non-finite norm "
                           "anyway, set `error_if_nonfinite=False`")
    return total


def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scales gradients by max_norm/total_norm if this is below 1. Nothing is read: the factor is part of the graph."""
    with cairn.no_grad():
        scale = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for p in _list_of(parameters):
            if p.grad is not None:
                p.grad.mul_(scale.to(p.grad.device))


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scales all gradients so that their norm together is at most max_norm. Returns the norm before."""
    parameters = _list_of(parameters)
    with cairn.no_grad():
        total = get_total_norm([p.grad for p in parameters if p.grad is not None], norm_type, error_if_nonfinite)
        clip_grads_with_norm_(parameters, max_norm, total)
    return total


def clip_grad_norm(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The former name of clip_grad_norm_."""
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters, clip_value, foreach=None):
    """Limits every element of the gradients to ±clip_value."""
    clip_value = float(clip_value)
    with cairn.no_grad():
        for p in _list_of(parameters):
            if p.grad is not None:
                p.grad.clamp_(-clip_value, clip_value)


_get_total_norm, _clip_grads_with_norm_ = get_total_norm, clip_grads_with_norm_
