"""The Kullback-Leibler divergence of two distributions."""

import math

import cairn

from .continuous import Exponential, Laplace, MultivariateNormal, Normal, Uniform
from .discrete import Bernoulli, Categorical, OneHotCategorical
from .distribution import Independent

_RULES = {}  # (type, type): a function


def register_kl(type_p, type_q):
    """A decorator of a function (p, q) for these types and those derived from them."""
    def register(function):
        _RULES[type_p, type_q] = function
        return function
    return register


def kl_divergence(p, q):
    """KL(p ‖ q), by the rule for the nearest types."""
    for a in type(p).__mro__:
        for b in type(q).__mro__:
            if (a, b) in _RULES:
                return _RULES[a, b](p, q)
    raise NotImplementedError(f"No KL(p || q) is implemented for p type {type(p).__name__} and q type "
                              f"{type(q).__name__}; register_kl adds one")


@register_kl(Normal, Normal)
def _normal(p, q):
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - ratio.log())


@register_kl(Laplace, Laplace)
def _laplace(p, q):
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * (-distance / p.scale).exp() - 1


@register_kl(Exponential, Exponential)
def _exponential(p, q):
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Uniform, Uniform)
def _uniform(p, q):
    value = ((q.high - q.low) / (p.high - p.low)).log()
    return cairn.where((q.low > p.low) | (q.high < p.high), cairn.full_like(value, math.inf), value)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p, q):
    softplus = cairn.nn.functional.softplus
    return (p.probs * (softplus(-q.logits) - softplus(-p.logits))
            + (1 - p.probs) * (softplus(q.logits) - softplus(p.logits)))


@register_kl(Categorical, Categorical)
def _categorical(p, q):
    terms = p.probs * (p.logits - q.logits)
    terms = cairn.where(q.probs == 0, cairn.full_like(terms, math.inf), terms)
    return cairn.where(p.probs == 0, cairn.zeros_like(terms), terms).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p, q):
    return _categorical(p._categorical, q._categorical)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(f"kl_divergence: event shapes must be equal, got {p.event_shape} and {q.event_shape}")
    turned = cairn.linalg.solve_triangular(q.scale_tril, p.scale_tril, upper=False)
    distance = cairn.linalg.solve_triangular(q.scale_tril, (q.loc - p.loc).unsqueeze(-1), upper=False)
    return (q._log_scale() - p._log_scale()
            + 0.5 * ((turned ** 2).sum((-2, -1)) + (distance ** 2).sum((-2, -1)) - p.event_shape[0]))


@register_kl(Independent, Independent)
def _independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("kl_divergence: two Independents with different numbers of axes")
    return p._added(kl_divergence(p.base_dist, q.base_dist))
