"""Distributions: values beside PyTorch's, samples by their moments, gradients of rsample."""

import math

import pytest

import cairn
from cairn import distributions as D

CASES = [
    ("Normal", [[0.5, -1.0], [0.7, 2.0]], [0.3, 1.5]),
    ("LogNormal", [[0.5, -1.0], [0.7, 0.4]], [0.3, 1.5]),
    ("Laplace", [[0.5, -1.0], [0.7, 2.0]], [0.3, 1.5]),
    ("Uniform", [[-1.0, 0.0], [2.0, 0.5]], [0.3, 0.4]),
    ("Exponential", [[0.5, 2.0]], [0.3, 1.5]),
    ("Bernoulli", [[0.2, 0.9]], [0.0, 1.0]),
    ("Geometric", [[0.2, 0.9]], [3.0, 0.0]),
    ("Categorical", [[[0.2, 0.5, 0.3], [1.0, 1.0, 2.0]]], [2, 0]),
    ("OneHotCategorical", [[[0.2, 0.5, 0.3], [1.0, 1.0, 2.0]]], [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
]


def made(module, name, parameters, tensor):
    return getattr(module, name)(*(tensor(p) for p in parameters))


def close(a, b):
    a, b = a.detach(), b.detach()
    assert tuple(a.shape) == tuple(b.shape)
    for x, y in zip(a.flatten().tolist(), b.flatten().tolist()):
        assert x == pytest.approx(y, rel=1e-4, abs=1e-5, nan_ok=True)


@pytest.mark.parametrize("name, parameters, value", CASES)
def test_values_are_those_of_pytorch(name, parameters, value):
    torch = pytest.importorskip("torch")
    mine = made(D, name, parameters, cairn.tensor)
    other = made(torch.distributions, name, parameters, torch.tensor)
    assert mine.batch_shape == tuple(other.batch_shape) and mine.event_shape == tuple(other.event_shape)
    assert mine.has_rsample == other.has_rsample
    close(mine.log_prob(cairn.tensor(value)), other.log_prob(torch.tensor(value)))
    for what in ("mean", "variance", "stddev", "mode"):
        close(getattr(mine, what).to(cairn.float32), getattr(other, what).to(torch.float32))
    for what in ("cdf", "icdf"):
        try:
            want = getattr(other, what)(torch.tensor([0.2, 0.45]))
        except NotImplementedError:
            continue
        close(getattr(mine, what)(cairn.tensor([0.2, 0.45])), want)
    close(mine.entropy(), other.entropy())
    assert mine.sample((3, 4)).shape == tuple(other.sample((3, 4)).shape)
    assert mine.sample().shape == tuple(other.sample().shape)
    assert mine.expand((5, 2)).sample().shape == tuple(other.expand((5, 2)).sample().shape)
    close(mine.expand((5, 2)).log_prob(cairn.tensor(value)), other.expand((5, 2)).log_prob(torch.tensor(value)))


@pytest.mark.parametrize("name, parameters, value", [c for c in CASES if "Categorical" not in c[0]])
def test_moments_of_samples(name, parameters, value):
    cairn.manual_seed(0)
    d = made(D, name, parameters, cairn.tensor)
    x = d.sample((20000,))
    for mean, spread, want in zip(x.mean(0).tolist(), d.stddev.tolist(), d.mean.tolist()):
        assert abs(mean - want) < 5 * spread / math.sqrt(20000)


def test_classes_are_drawn_by_their_probabilities():
    cairn.manual_seed(0)
    d = D.Categorical(logits=cairn.tensor([[0.0, math.log(3.0)], [-math.inf, 0.0]]))
    x = d.sample((4000,)).float().mean(0).tolist()
    assert x[0] == pytest.approx(0.75, abs=0.04) and x[1] == 1
    assert d.log_prob(cairn.tensor([1, 1])).exp().tolist() == pytest.approx([0.75, 1])
    assert D.OneHotCategorical(probs=cairn.tensor([0.0, 1.0])).sample((2,)).tolist() == [[0, 1], [0, 1]]


def test_gradients_reach_parameters():
    loc, scale = cairn.zeros(3, requires_grad=True), cairn.ones(3, requires_grad=True)
    d = D.Normal(loc, scale)
    assert not d.sample().requires_grad
    x = d.rsample()
    x.sum().backward()
    assert loc.grad.tolist() == [1, 1, 1] and scale.grad.tolist() == pytest.approx(x.tolist())
    logits = cairn.zeros(2, 3, requires_grad=True)
    action = D.Categorical(logits=logits).sample()
    D.Categorical(logits=logits).log_prob(action).sum().backward()
    assert logits.grad.sum(-1).tolist() == pytest.approx([0, 0], abs=1e-6)
    with pytest.raises(NotImplementedError, match="rsample"):
        D.Categorical(logits=logits).rsample()


def test_multivariate_normal_and_independent():
    torch = pytest.importorskip("torch")
    c, x = [[2.0, 0.5], [0.5, 1.0]], [[0.1, 0.2], [1.0, -1.0]]
    mine = D.MultivariateNormal(cairn.tensor([0.0, 1.0]), cairn.tensor(c))
    other = torch.distributions.MultivariateNormal(torch.tensor([0.0, 1.0]), torch.tensor(c))
    close(mine.log_prob(cairn.tensor(x)), other.log_prob(torch.tensor(x)))
    close(mine.entropy(), other.entropy())
    close(mine.precision_matrix, other.precision_matrix)
    assert mine.sample((7,)).shape == (7, 2)
    a = D.Independent(D.Normal(cairn.zeros(3, 2), cairn.ones(3, 2)), 1)
    assert a.batch_shape == (3,) and a.event_shape == (2,) and a.log_prob(cairn.zeros(3, 2)).shape == (3,)
    assert a.expand((4, 3)).sample().shape == (4, 3, 2)
    assert D.kl_divergence(a, a).tolist() == [0, 0, 0]
    q = torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
    close(D.kl_divergence(mine, D.MultivariateNormal(cairn.zeros(2), cairn.eye(2))),
          torch.distributions.kl_divergence(other, q))


@pytest.mark.parametrize("name, p, q", [
    ("Normal", [[0.5], [0.7]], [[0.0], [2.0]]), ("Laplace", [[0.5], [0.7]], [[0.0], [2.0]]),
    ("Uniform", [[0.0], [1.0]], [[-1.0], [2.0]]), ("Uniform", [[0.0], [1.0]], [[0.5], [2.0]]),
    ("Exponential", [[0.5]], [[2.0]]), ("Bernoulli", [[0.2]], [[0.7]]),
    ("Categorical", [[0.2, 0.8, 0.0]], [[0.5, 0.25, 0.25]]), ("OneHotCategorical", [[0.2, 0.8]], [[0.5, 0.5]]),
])
def test_divergences(name, p, q):
    torch = pytest.importorskip("torch")
    close(D.kl_divergence(made(D, name, p, cairn.tensor), made(D, name, q, cairn.tensor)),
          torch.distributions.kl_divergence(made(torch.distributions, name, p, torch.tensor),
                                            made(torch.distributions, name, q, torch.tensor)))


def test_mistakes():
    with pytest.raises(ValueError, match="scale"):
        D.Normal(0.0, -1.0)
    with pytest.raises(ValueError, match="not both"):
        D.Bernoulli(probs=0.5, logits=0.0)
    with pytest.raises(ValueError, match="0 to 1"):
        D.Bernoulli(1.5)
    with pytest.raises(NotImplementedError, match="register_kl"):
        D.kl_divergence(D.Normal(0.0, 1.0), D.Uniform(0.0, 1.0))
    with pytest.raises(NotImplementedError, match="Gamma"):
        D.Gamma
