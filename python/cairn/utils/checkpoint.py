"""Recomputation in place of storage."""

from .. import _C
from .._C import Tensor

__all__ = ["checkpoint", "checkpoint_sequential"]


def checkpoint(function, *args, use_reentrant=None, preserve_rng_state=True, **kwargs):
    """function(*args), whose intermediate values are computed again for the gradient. PyTorch's torch.utils.checkpoint.

    Values are not stored before something needs them, and backward writes the graph of gradients before anything is
    computed: the function simply runs.
    """
    for name in ("context_fn", "determinism_check", "debug", "early_stop"):
        kwargs.pop(name, None)
    return function(*args, **kwargs)


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """All functions, one after the other."""
    for f in functions:
        input = f(input)
    return input
