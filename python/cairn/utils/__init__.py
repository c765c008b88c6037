"""Tools: data loading, recomputation. torch.utils."""

_modules = ("_pytree", "checkpoint", "data", "hooks", "model_zoo", "progress", "tensorboard")


def __getattr__(name):
    if name in _modules:
        import importlib

        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return [name for name in _modules if name[0] != "_"]
