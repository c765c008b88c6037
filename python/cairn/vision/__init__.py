"""Images: datasets on local files, transforms, grids. torchvision's names.

An image is a tensor, uint8 (channels, height, width) from a file, or float32 from 0 to 1 after ToTensor. Where Pillow
is installed, its images are accepted as well.
"""

import importlib

_modules = ("datasets", "io", "transforms", "utils")


def __getattr__(name):
    if name in _modules:
        return importlib.import_module("." + name, __name__)
    if name in ("models", "ops"):
        raise AttributeError(f"cairn.vision.{name} is not there: write the model with cairn.nn, and load its weights "
                             "with cairn.load")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return list(_modules)
