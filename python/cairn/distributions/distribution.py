"""What distributions share."""

import cairn
from cairn import Tensor


def tensors(*values):
    """Parameters as tensors of one shape: numbers are of the dtype of the tensors, or of the default dtype."""
    like = next((v for v in values if isinstance(v, Tensor)), None)
    dtype = cairn.get_default_dtype() if like is None else like.dtype
    made = [v if isinstance(v, Tensor) else cairn.tensor(float(v), dtype=dtype) for v in values]
    return cairn.broadcast_tensors(*made)


class Distribution:
    """A shape of independent draws (batch_shape), each of which is of a shape (event_shape)."""

    has_rsample = False
    _validate = __debug__

    def __init__(self, batch_shape=(), event_shape=(), validate_args=None):
        self._batch_shape, self._event_shape = cairn.Size(batch_shape), cairn.Size(event_shape)
        self._checks = Distribution._validate if validate_args is None else validate_args

    @staticmethod
    def set_default_validate_args(value):
        Distribution._validate = bool(value)

    @property
    def batch_shape(self):
        return self._batch_shape

    @property
    def event_shape(self):
        return self._event_shape

    @property
    def stddev(self):
        return self.variance.sqrt()

    def _extended_shape(self, sample_shape=()):
        return tuple(sample_shape) + tuple(self._batch_shape) + tuple(self._event_shape)

    def _require(self, ok, what):
        """Raises ValueError where a check of parameters or values, a tensor of bools, is not true everywhere."""
        if self._checks and not bool(ok.all()):
            raise ValueError(f"{type(self).__name__}: {what}")

    def rsample(self, sample_shape=()):
        raise NotImplementedError(f"{type(self).__name__} has no rsample: its samples carry no gradient; use sample")

    def sample(self, sample_shape=()):
        with cairn.no_grad():
            return self.rsample(sample_shape)

    def sample_n(self, n):
        return self.sample((n,))

    def log_prob(self, value):
        raise NotImplementedError(f"{type(self).__name__} has no log_prob")

    def entropy(self):
        raise NotImplementedError(f"{type(self).__name__} has no entropy")

    def cdf(self, value):
        raise NotImplementedError(f"{type(self).__name__} has no cdf")

    def icdf(self, value):
        raise NotImplementedError(f"{type(self).__name__} has no icdf")

    def perplexity(self):
        return self.entropy().exp()

    def expand(self, batch_shape):
        """The same distribution with parameters of a larger batch shape."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        old = len(self._batch_shape)
        for name, value in self.__dict__.items():
            if isinstance(value, Tensor):
                rest = tuple(value.shape)[old:] if value.ndim >= old else ()
                setattr(made, name, value.expand(tuple(batch_shape) + rest))
        made._batch_shape = cairn.Size(batch_shape)
        return made

    def __repr__(self):
        parts = ", ".join(f"{name}: {value if value.numel() == 1 else tuple(value.shape)}"
                          for name, value in self.__dict__.items() if isinstance(value, Tensor) and name[0] != "_")
        return f"{type(self).__name__}({parts})"


class Independent(Distribution):
    """The last axes of the batch become axes of the event: their log_probs are added."""

    def __init__(self, base_distribution, reinterpreted_batch_ndims, validate_args=None):
        batch, event = tuple(base_distribution.batch_shape), tuple(base_distribution.event_shape)
        n = reinterpreted_batch_ndims
        if n > len(batch):
            raise ValueError(f"Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), got {n} and "
                             f"{len(batch)}")
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, n
        self.has_rsample = base_distribution.has_rsample
        super().__init__(batch[: len(batch) - n], batch[len(batch) - n :] + event, validate_args)

    def _added(self, x):
        n = self.reinterpreted_batch_ndims
        return x.sum(tuple(range(-n, 0))) if n else x

    mean = property(lambda self: self.base_dist.mean)
    variance = property(lambda self: self.base_dist.variance)
    mode = property(lambda self: self.base_dist.mode)

    def sample(self, sample_shape=()):
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape=()):
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value):
        return self._added(self.base_dist.log_prob(value))

    def entropy(self):
        return self._added(self.base_dist.entropy())

    def expand(self, batch_shape):
        n = self.reinterpreted_batch_ndims
        inner = tuple(self._event_shape)[:n]
        return Independent(self.base_dist.expand(tuple(batch_shape) + inner), n)

    def __repr__(self):
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"
