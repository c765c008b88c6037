"""Tools: data loading, recomputation. torch.utils."""

_modules = ("checkpoint", "data", "progress", "tensorboard")


def __getattr__(name):
    if name in _modules:
        import importlib

        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return list(_modules)
