"""Distributions: torch.distributions. Samples of rsample carry gradients to the parameters."""

from .distribution import Distribution, Independent
from .continuous import Exponential, Laplace, LogNormal, MultivariateNormal, Normal, Uniform
from .discrete import Bernoulli, Categorical, Geometric, OneHotCategorical, OneHotCategoricalStraightThrough
from .kl import kl_divergence, register_kl

__all__ = ["Bernoulli", "Categorical", "Distribution", "Exponential", "Geometric", "Independent", "Laplace",
           "LogNormal", "MultivariateNormal", "Normal", "OneHotCategorical", "OneHotCategoricalStraightThrough",
           "Uniform", "kl_divergence", "register_kl"]

_ABSENT = ("Beta", "Binomial", "Cauchy", "Chi2", "ContinuousBernoulli", "Dirichlet", "Gamma", "Gumbel", "HalfNormal",
           "Kumaraswamy", "MixtureSameFamily", "Multinomial", "NegativeBinomial", "Pareto", "Poisson",
           "RelaxedBernoulli", "RelaxedOneHotCategorical", "StudentT", "TransformedDistribution", "VonMises", "Weibull")


def __getattr__(name):
    if name in _ABSENT:
        raise NotImplementedError(f"distributions.{name} is not there; there are {', '.join(__all__[:-2])}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
