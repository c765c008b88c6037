"""Instance normalisation: each channel of each sample by its own statistics."""

import warnings

from .. import functional as F
from .batchnorm import _lazy, _NormBase

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
           "LazyInstanceNorm3d"]


class _InstanceNorm(_NormBase):
    _axes = 0  # of an input without a batch axis

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False, device=None,
                 dtype=None, *, bias=True):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _check_input_dim(self, input):
        if input.dim() not in (self._axes, self._axes + 1):
            raise ValueError(f"expected {self._axes}D or {self._axes + 1}D input (got {input.dim()}D input)")

    def forward(self, input):
        self._check_input_dim(input)
        single = input.dim() == self._axes
        if input.shape[0 if single else 1] != self.num_features:
            if self.affine:
                raise ValueError(f"expected input's size at dim={0 if single else 1} to match num_features "
                                 f"({self.num_features}), but got: {input.shape[0 if single else 1]}.")
            warnings.warn(f"input's size at dim={0 if single else 1} does not match num_features. You can silence this "
                          "warning by not passing in num_features, which is not used because affine=False",
                          stacklevel=2)
        result = F.instance_norm(input.unsqueeze(0) if single else input, self.running_mean, self.running_var,
                                 self.weight, self.bias, self.training or not self.track_running_stats,
                                 self.momentum if self.momentum is not None else 0.0, self.eps)
        return result.squeeze(0) if single else result


class InstanceNorm1d(_InstanceNorm):
    """(N, C, L) or (C, L)."""

    _axes = 2


class InstanceNorm2d(_InstanceNorm):
    """(N, C, H, W) or (C, H, W)."""

    _axes = 3


class InstanceNorm3d(_InstanceNorm):
    """(N, C, D, H, W) or (C, D, H, W)."""

    _axes = 4


LazyInstanceNorm1d, LazyInstanceNorm2d = _lazy(InstanceNorm1d), _lazy(InstanceNorm2d)
LazyInstanceNorm3d = _lazy(InstanceNorm3d)
