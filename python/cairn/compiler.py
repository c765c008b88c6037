"""torch.compile has nothing left to do: from the second step on a program runs as compiled plans."""

import functools

__all__ = ["compile", "disable", "is_compiling", "reset"]


def compile(model=None, *, fullgraph=False, dynamic=None, backend="inductor", mode=None, options=None, disable=False):
    """Returns its argument, a function or a module.

    Every evaluation already runs as a plan: operations that are pending are fused, placed in memory and kept, and the
    same graph finds its plan again. There is no second engine that could be asked for.
    """
    if model is None:
        return functools.partial(compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode,
                                 options=options, disable=disable)
    if not callable(model):
        raise TypeError(f"compile: a function or a module is required, got {type(model).__name__}")
    return model


def disable(fn=None, recursive=True, *, reason=None):
    """Returns the function as it is."""
    return functools.partial(disable, recursive=recursive) if fn is None else fn


def is_compiling():
    return False


is_dynamo_compiling = is_compiling


def reset():
    """There is nothing to forget."""


def allow_in_graph(fn):
    return fn


def cudagraph_mark_step_begin():
    """There are no graphs of CUDA."""
