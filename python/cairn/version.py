"""The version of the package."""

from ._C import __version__  # noqa: F401

cuda = hip = xpu = git_version = None
debug = False
