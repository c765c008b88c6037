"""Parametrisations in common use: weight_norm, spectral_norm, orthogonal."""

import cairn

from .. import functional as F
from ..modules.module import Module
from ._weight_norm import _norm_except, _weight_norm
from .parametrize import register_parametrization


class _WeightNorm(Module):
    def __init__(self, dim=0):
        super().__init__()
        self.dim = None if dim is None or dim == -1 else dim

    def forward(self, weight_g, weight_v):
        return _weight_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight):
        return _norm_except(weight, self.dim), weight


def weight_norm(module, name="weight", dim=0):
    """weight = g · v/|v|: original0 is g, the lengths, original1 is v."""
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


class _SpectralNorm(Module):
    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        if n_power_iterations <= 0:
            raise ValueError("Expected n_power_iterations to be positive, but got n_power_iterations="
                             f"{n_power_iterations}")
        self.dim = dim if dim >= 0 else dim + weight.dim()
        self.eps = eps
        if weight.dim() > 1:
            self.n_power_iterations = n_power_iterations
            with cairn.no_grad():
                matrix = self._matrix(weight.detach())
                like = {"dtype": weight.dtype, "device": weight.device}
                self.register_buffer("_u", F.normalize(cairn.randn((matrix.shape[0],), **like), dim=0, eps=eps))
                self.register_buffer("_v", F.normalize(cairn.randn((matrix.shape[1],), **like), dim=0, eps=eps))
                self._iterate(matrix, 15)

    def _matrix(self, weight):
        if self.dim != 0:
            weight = weight.permute(self.dim, *(d for d in range(weight.dim()) if d != self.dim))
        return weight.flatten(1)

    def _iterate(self, matrix, n):
        with cairn.no_grad():
            matrix, u, v = matrix.detach(), self._u, self._v
            for _ in range(n):
                u = F.normalize(matrix.mv(v), dim=0, eps=self.eps)
                v = F.normalize(matrix.t().mv(u), dim=0, eps=self.eps)
            self._u.copy_(u)
            self._v.copy_(v)

    def forward(self, weight):
        if weight.dim() == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        u, v = self._u.detach().clone(), self._v.detach().clone()
        return weight / u.dot(matrix.mv(v))

    def right_inverse(self, value):
        return value


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """weight over its largest singular value."""
    weight = getattr(module, name, None)
    if not isinstance(weight, cairn.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = 1 if getattr(module, "transposed", False) else 0
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))


class _Orthogonal(Module):
    """The Q of a QR decomposition, with the signs that make it unique."""

    def forward(self, x):
        wide = x.shape[-2] < x.shape[-1]
        q, r = cairn.linalg.qr(x.transpose(-2, -1) if wide else x)
        q = q * r.diagonal(0, -2, -1).sign().unsqueeze(-2)
        return q.transpose(-2, -1) if wide else q

    def right_inverse(self, q):
        return q


def orthogonal(module, name="weight", orthogonal_map=None, *, use_trivialization=True):
    """weight with orthonormal rows or columns. The map is a QR decomposition."""
    weight = getattr(module, name, None)
    if not isinstance(weight, cairn.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map not in (None, "householder"):
        raise NotImplementedError(f"orthogonal_map '{orthogonal_map}': the map here is a QR decomposition, "
                                  "'householder'")
    return register_parametrization(module, name, _Orthogonal(), unsafe=True)
