"""TorchScript is not there: functions stay Python functions, and programs are not saved."""

__all__ = ["Final", "export", "ignore", "interface", "is_scripting", "is_tracing", "load", "save", "script",
           "script_if_tracing", "trace", "unused"]

try:
    from typing import Final
except ImportError:
    Final = None


def script(obj=None, *args, **kwargs):
    """Returns its argument: see cairn.compile."""
    return obj


def trace(func, example_inputs=None, *args, **kwargs):
    """Returns its argument: see cairn.compile."""
    return func


def ignore(drop=False, **kwargs):
    """A decorator, with arguments or without, that returns the function as it is."""
    return drop if callable(drop) else lambda fn: fn


def export(fn):
    return fn


unused = script_if_tracing = interface = export


def is_scripting():
    return False


is_tracing = is_scripting


def annotate(the_type, the_value):
    return the_value


def isinstance(obj, target_type):
    import builtins

    return builtins.isinstance(obj, target_type)


class ScriptModule:
    def __init__(self, *args, **kwargs):
        raise NotImplementedError("cairn.jit.ScriptModule is not there; derive from cairn.nn.Module")


def save(m, f, **kwargs):
    raise NotImplementedError("cairn.jit.save: programs are not saved; save m.state_dict() with cairn.save")


def load(f, map_location=None, **kwargs):
    raise NotImplementedError(
        "cairn.jit.load: a file of torch.jit.save is a program; save model.state_dict() with torch.save, and load that"
    )
