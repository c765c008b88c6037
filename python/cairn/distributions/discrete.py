"""Distributions of whole numbers and classes. Those of two and more kinds take probs, or logits."""

import math

import cairn
from cairn.nn import functional as F

from .distribution import Distribution, tensors


def _one_of(probs, logits):
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class _Coins(Distribution):
    """A probability for each element, kept as it was given; the other form is computed."""

    def __init__(self, probs=None, logits=None, validate_args=None):
        _one_of(probs, logits)
        self._given = "probs" if logits is None else "logits"
        self._param, = tensors(probs if logits is None else logits)
        super().__init__(self._param.shape, validate_args=validate_args)
        if logits is None:
            self._require((self._param >= 0) & (self._param <= 1), "probs must be 0 to 1")

    @property
    def probs(self):
        return self._param if self._given == "probs" else self._param.sigmoid()

    @property
    def logits(self):
        if self._given == "logits":
            return self._param
        eps = cairn.finfo(self._param.dtype).eps
        p = self._param.clamp(eps, 1 - eps)
        return p.log() - cairn.log1p(-p)

    def __repr__(self):
        return f"{type(self).__name__}({self._given}: {self._param if self._param.numel() == 1 else self._param.shape})"


class Bernoulli(_Coins):
    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    @property
    def mode(self):
        return cairn.where(self.probs == 0.5, self.probs * math.nan, (self.probs >= 0.5).to(self.probs.dtype))

    def sample(self, sample_shape=()):
        with cairn.no_grad():
            return cairn.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        logits, value = cairn.broadcast_tensors(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value.to(logits.dtype), reduction="none")

    def entropy(self):
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")


class Geometric(_Coins):
    """Failures before the first success."""

    mean = property(lambda self: 1 / self.probs - 1)
    variance = property(lambda self: (1 / self.probs - 1) / self.probs)
    mode = property(lambda self: cairn.zeros_like(self.probs))

    def sample(self, sample_shape=()):
        with cairn.no_grad():
            shape = self._extended_shape(sample_shape)
            u = cairn.rand(shape, dtype=self._param.dtype, device=self._param.device)
            return (cairn.log1p(-u) / cairn.log1p(-self.probs.expand(shape))).floor()

    def log_prob(self, value):
        return value * cairn.log1p(-self.probs) + self.probs.log()

    def entropy(self):
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs


class Categorical(Distribution):
    """A class, by probabilities (..., classes) that need not add up to 1, or by logits."""

    def __init__(self, probs=None, logits=None, validate_args=None):
        _one_of(probs, logits)
        given = logits if probs is None else probs
        if given.ndim < 1:
            raise ValueError(f"`{'logits' if probs is None else 'probs'}` parameter must be at least one-dimensional.")
        super().__init__(tuple(given.shape)[:-1], validate_args=validate_args)
        if probs is None:
            self.logits = logits - logits.logsumexp(-1, keepdim=True)
            self.probs = self.logits.softmax(-1)
        else:
            self._require(probs >= 0, "probs must be >= 0")
            self.probs = probs / probs.sum(-1, keepdim=True)
            eps = cairn.finfo(probs.dtype).eps
            self.logits = self.probs.clamp(eps, 1 - eps).log()
        self._num_events = given.shape[-1]

    mode = property(lambda self: self.probs.argmax(-1))
    mean = variance = property(lambda self: cairn.full(self._extended_shape(), math.nan, dtype=self.probs.dtype))
    param_shape = property(lambda self: self.probs.shape)

    def sample(self, sample_shape=()):
        with cairn.no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            n = math.prod(sample_shape)
            drawn = cairn.multinomial(rows, n, True) if n else rows[:, :0].long()
            return drawn.t().reshape(self._extended_shape(sample_shape))

    def log_prob(self, value):
        value = value.long().unsqueeze(-1)
        shape = tuple(cairn.broadcast_shapes(tuple(value.shape)[:-1], tuple(self._batch_shape)))
        logits = self.logits.expand((*shape, self._num_events))
        return logits.gather(-1, value.expand((*shape, 1))).squeeze(-1)

    def entropy(self):
        least = cairn.finfo(self.logits.dtype).min
        return -(self.logits.clamp(min=least) * self.probs).sum(-1)


class OneHotCategorical(Distribution):
    """A class as a vector with one 1."""

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits, validate_args)
        shape = tuple(self._categorical.param_shape)
        super().__init__(shape[:-1], shape[-1:], validate_args)

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    def _vectors(self, classes):
        return F.one_hot(classes, self._event_shape[0]).to(self.probs.dtype)

    mode = property(lambda self: self._vectors(self._categorical.mode))

    def sample(self, sample_shape=()):
        return self._vectors(self._categorical.sample(sample_shape))

    def log_prob(self, value):
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self):
        return self._categorical.entropy()

    def expand(self, batch_shape):
        made = object.__new__(type(self))
        made._categorical = self._categorical.expand(batch_shape)
        Distribution.__init__(made, batch_shape, self._event_shape, self._checks)
        return made


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """Samples whose gradients are those of the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape=()):
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
