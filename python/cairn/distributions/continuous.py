"""Distributions of real numbers."""

import math

import cairn

from .distribution import Distribution, tensors


class Normal(Distribution):
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = tensors(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)
        self._require(self.scale > 0, "scale must be > 0")

    mean = mode = property(lambda self: self.loc)
    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.scale ** 2)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return self.loc + cairn.randn(shape, dtype=self.loc.dtype, device=self.loc.device) * self.scale

    def log_prob(self, value):
        return -((value - self.loc) ** 2) / (2 * self.scale ** 2) - self.scale.log() - 0.5 * math.log(2 * math.pi)

    def cdf(self, value):
        return 0.5 * (1 + cairn.erf((value - self.loc) / (self.scale * math.sqrt(2))))

    def icdf(self, value):
        return self.loc + self.scale * cairn.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self):
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()


class LogNormal(Normal):
    """exp of a normal variable."""

    mean = property(lambda self: (self.loc + self.scale ** 2 / 2).exp())
    mode = property(lambda self: (self.loc - self.scale ** 2).exp())
    variance = property(lambda self: ((self.scale ** 2).exp() - 1) * (2 * self.loc + self.scale ** 2).exp())
    stddev = property(lambda self: self.variance.sqrt())

    def rsample(self, sample_shape=()):
        return super().rsample(sample_shape).exp()

    def log_prob(self, value):
        return super().log_prob(value.log()) - value.log()

    def cdf(self, value):
        return super().cdf(value.log())

    def icdf(self, value):
        return super().icdf(value).exp()

    def entropy(self):
        return super().entropy() + self.loc


class Uniform(Distribution):
    has_rsample = True

    def __init__(self, low, high, validate_args=None):
        self.low, self.high = tensors(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        self._require(self.low < self.high, "low must be < high")

    mean = property(lambda self: (self.high + self.low) / 2)
    variance = property(lambda self: (self.high - self.low) ** 2 / 12)
    mode = property(lambda self: self.low * math.nan)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return self.low + cairn.rand(shape, dtype=self.low.dtype, device=self.low.device) * (self.high - self.low)

    def log_prob(self, value):
        inside = (self.low <= value) & (self.high > value)
        return inside.to(self.low.dtype).log() - (self.high - self.low).log()

    def cdf(self, value):
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value):
        return value * (self.high - self.low) + self.low

    def entropy(self):
        return (self.high - self.low).log()


class Exponential(Distribution):
    has_rsample = True

    def __init__(self, rate, validate_args=None):
        self.rate, = tensors(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)
        self._require(self.rate > 0, "rate must be > 0")

    mean = stddev = property(lambda self: 1 / self.rate)
    variance = property(lambda self: self.rate ** -2)
    mode = property(lambda self: cairn.zeros_like(self.rate))

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return -cairn.log1p(-cairn.rand(shape, dtype=self.rate.dtype, device=self.rate.device)) / self.rate

    def log_prob(self, value):
        return self.rate.log() - self.rate * value

    def cdf(self, value):
        return 1 - (-self.rate * value).exp()

    def icdf(self, value):
        return -cairn.log1p(-value) / self.rate

    def entropy(self):
        return 1 - self.rate.log()


class Laplace(Distribution):
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = tensors(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)
        self._require(self.scale > 0, "scale must be > 0")

    mean = mode = property(lambda self: self.loc)
    variance = property(lambda self: 2 * self.scale ** 2)
    stddev = property(lambda self: math.sqrt(2) * self.scale)

    def rsample(self, sample_shape=()):
        u = cairn.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device) - 0.5
        return self.icdf(u + 0.5)

    def log_prob(self, value):
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value):
        x = value - self.loc
        return 0.5 - 0.5 * x.sign() * cairn.expm1(-x.abs() / self.scale)

    def icdf(self, value):
        term = value - 0.5
        return self.loc - self.scale * term.sign() * cairn.log1p(-2 * term.abs())

    def entropy(self):
        return 1 + (2 * self.scale).log()


class MultivariateNormal(Distribution):
    """A normal vector; one of the three matrices is given."""

    has_rsample = True

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        given = [m for m in (covariance_matrix, precision_matrix, scale_tril) if m is not None]
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        if precision_matrix is not None:
            covariance_matrix = cairn.linalg.inv(precision_matrix)
        tril = cairn.linalg.cholesky(covariance_matrix) if scale_tril is None else scale_tril
        batch = tuple(cairn.broadcast_shapes(tuple(tril.shape)[:-2], tuple(loc.shape)[:-1]))
        n = loc.shape[-1]
        self.loc, self.scale_tril = loc.expand((*batch, n)), tril.expand((*batch, n, n))
        super().__init__(batch, (n,), validate_args)

    mean = mode = property(lambda self: self.loc)
    covariance_matrix = property(lambda self: self.scale_tril @ self.scale_tril.transpose(-2, -1))
    precision_matrix = property(lambda self: cairn.linalg.inv(self.covariance_matrix))
    variance = property(lambda self: (self.scale_tril ** 2).sum(-1))

    def rsample(self, sample_shape=()):
        draws = cairn.randn(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + (self.scale_tril @ draws.unsqueeze(-1)).squeeze(-1)

    def _log_scale(self):
        return self.scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value):
        x = (value - self.loc).unsqueeze(-1)
        lead = tuple(cairn.broadcast_shapes(tuple(x.shape)[:-2], tuple(self.scale_tril.shape)[:-2]))
        n = self._event_shape[0]
        tril = self.scale_tril.expand((*lead, n, n))
        turned = cairn.linalg.solve_triangular(tril, x.expand((*lead, n, 1)), upper=False).squeeze(-1)
        return -0.5 * (n * math.log(2 * math.pi) + (turned ** 2).sum(-1)) - self._log_scale()

    def entropy(self):
        return 0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi)) + self._log_scale()
