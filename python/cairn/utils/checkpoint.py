"""Recomputation in place of storage: torch.utils.checkpoint."""

from .. import _C
from .._C import Tensor

__all__ = ["checkpoint", "checkpoint_sequential", "get_device_states", "set_device_states"]

_ignored = ("context_fn", "determinism_check", "debug", "early_stop")


def checkpoint(function, *args, use_reentrant=None, preserve_rng_state=True, **kwargs):
    """function(*args, **kwargs), whose intermediate values backward computes again, with the same random numbers.

    The function returns one tensor; if it returns several, values are stored as without checkpoint().
    """
    for name in _ignored:
        kwargs.pop(name, None)
    places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
    if not places or not _C.is_grad_enabled():
        return function(*args, **kwargs)

    def run(*tensors):
        given = list(args)
        for i, t in zip(places, tensors):
            given[i] = t
        return function(*given, **kwargs)

    return _C.checkpoint(run, tuple(args[i] for i in places))


def checkpoint_sequential(functions, segments, input, use_reentrant=None, preserve_rng_state=True, **kwargs):
    """The functions one after the other, in so many parts, each a checkpoint(). The last part is stored."""
    functions = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = len(functions) // segments

    def part(begin, end):
        def run(x):
            for f in functions[begin:end]:
                x = f(x)
            return x

        return run

    at = 0
    for _ in range(segments - 1):
        input = checkpoint(part(at, at + size), input, preserve_rng_state=preserve_rng_state)
        at += size
    return part(at, len(functions))(input)


def get_device_states(*args):
    """([], []): there are no random numbers of CUDA devices. cairn.get_rng_state has those that there are."""
    return [], []


def set_device_states(devices, states, *, device_type=None):
    if list(devices):
        raise RuntimeError(f"set_device_states: there are no CUDA devices, got {list(devices)}")
