"""Padding: the last one, two or three axes made longer. padding: one number, or pairs, the last axis first."""

from .. import functional as F
from .module import Module
from .utils import _ntuple, _pair, _quadruple

__all__ = [kind + f"Pad{axes}d" for kind in ("Circular", "Constant", "Reflection", "Replication", "Zero")
           for axes in (1, 2, 3)]

_sextuple = _ntuple(6, "_sextuple")


class _PadNd(Module):
    """Sub-classes say how many numbers there are, and the mode."""

    _numbers = None
    _mode = "constant"

    def __init__(self, padding):
        super().__init__()
        self.padding = type(self)._numbers(padding)

    def forward(self, input):
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self):
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    _numbers = staticmethod(_pair)


class ConstantPad2d(_ConstantPadNd):
    _numbers = staticmethod(_quadruple)


class ConstantPad3d(_ConstantPadNd):
    _numbers = staticmethod(_sextuple)


class _ZeroPadNd(_ConstantPadNd):
    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class ZeroPad1d(_ZeroPadNd, ConstantPad1d):
    pass


class ZeroPad2d(_ZeroPadNd, ConstantPad2d):
    pass


class ZeroPad3d(_ZeroPadNd, ConstantPad3d):
    pass


class _ReflectionPadNd(_PadNd):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    _numbers = staticmethod(_pair)


class ReflectionPad2d(_ReflectionPadNd):
    _numbers = staticmethod(_quadruple)


class ReflectionPad3d(_ReflectionPadNd):
    _numbers = staticmethod(_sextuple)


class _ReplicationPadNd(_PadNd):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    _numbers = staticmethod(_pair)


class ReplicationPad2d(_ReplicationPadNd):
    _numbers = staticmethod(_quadruple)


class ReplicationPad3d(_ReplicationPadNd):
    _numbers = staticmethod(_sextuple)


class _CircularPadNd(_PadNd):
    _mode = "circular"


class CircularPad1d(_CircularPadNd):
    _numbers = staticmethod(_pair)


class CircularPad2d(_CircularPadNd):
    _numbers = staticmethod(_quadruple)


class CircularPad3d(_CircularPadNd):
    _numbers = staticmethod(_sextuple)
