"""einops for tensors of Cairn. einops itself must be installed.

    from cairn.einops import rearrange                  # for: from einops import rearrange
    from cairn.einops.layers.torch import Rearrange     # for: from einops.layers.torch import Rearrange

Once this module is imported, einops' own functions take these tensors, too.
"""

from einops import *  # noqa: F401,F403
from einops import __all__  # noqa: F401
from einops._backends import AbstractBackend

import cairn


class CairnBackend(AbstractBackend):
    """How einops calls Cairn. It finds this class by itself, among those that are derived from AbstractBackend."""

    framework_name = "cairn"

    def is_appropriate_type(self, tensor):
        return isinstance(tensor, cairn.Tensor)

    def from_numpy(self, x):
        x = cairn.from_numpy(x)
        return x.requires_grad_() if self.is_float_type(x) else x

    def to_numpy(self, x):
        return x.detach().cpu().numpy()

    def arange(self, start, stop):
        return cairn.arange(start, stop, dtype=cairn.int64)

    def reshape(self, x, shape):
        return x.reshape(shape)

    def transpose(self, x, axes):
        return x.permute(axes)

    def reduce(self, x, operation, axes):
        axes = tuple(sorted(axes))
        if operation in ("min", "max"):
            operation = "a" + operation
        if operation in ("amin", "amax", "sum", "mean"):
            return getattr(x, operation)(dim=axes)
        for axis in reversed(axes):  # prod, any and all take one axis
            x = getattr(x, operation)(dim=axis)
        return x

    def stack_on_zeroth_dimension(self, tensors):
        return cairn.stack(tensors)

    def add_axis(self, x, new_position):
        return x.unsqueeze(new_position)

    def add_axes(self, x, n_axes, pos2len):
        for place in pos2len:
            x = x.unsqueeze(place)
        return x.expand([pos2len.get(i, -1) for i in range(n_axes)])

    def tile(self, x, repeats):
        return x.repeat(repeats)

    def concat(self, tensors, axis):
        return cairn.cat(tensors, axis)

    def is_float_type(self, x):
        return x.is_floating_point()

    def layers(self):
        from .layers import torch
        return torch

    def einsum(self, pattern, *x):
        return cairn.einsum(pattern, *x)
