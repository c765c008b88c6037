"""Layers, losses, optimizers and schedules against formulas written out with NumPy: no other framework is needed."""

import math

import numpy as np
import pytest

import cairn
import cairn.nn.functional as F
from cairn import nn, optim


def numbers(x):
    return x.detach().numpy().astype(np.float64)


# ---- optimizers: a parameter w with the gradient 2 (w - 3), in float64 ----


def plain(kind, steps, lr=0.1, **o):
    """The published update rules, one parameter at a time."""
    w, m, v, largest = np.array([1.0, -2.0, 0.5]), 0.0, 0.0, 0.0
    for t in range(1, steps + 1):
        g = 2 * (w - 3) + (o.get("weight_decay", 0) * w if kind != "AdamW" else 0)
        if kind == "SGD":
            m = g if t == 1 else o.get("momentum", 0) * m + g
            w = w - lr * (g + o.get("momentum", 0) * m if o.get("nesterov") else m if o.get("momentum") else g)
        elif kind in ("Adam", "AdamW"):
            if kind == "AdamW":
                w = w * (1 - lr * o.get("weight_decay", 0.01))
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            largest = np.maximum(largest, v)
            second = (largest if o.get("amsgrad") else v) / (1 - 0.999 ** t)
            w = w - lr * (m / (1 - 0.9 ** t)) / (np.sqrt(second) + 1e-8)
        elif kind == "RMSprop":
            v = 0.99 * v + 0.01 * g * g
            w = w - lr * g / (np.sqrt(v) + 1e-8)
        elif kind == "Adagrad":
            v = v + g * g
            w = w - lr * g / (np.sqrt(v) + 1e-10)
        elif kind == "Adamax":
            m, v = 0.9 * m + 0.1 * g, np.maximum(0.999 * v, np.abs(g) + 1e-8)
            w = w - lr / (1 - 0.9 ** t) * m / v
    return w


@pytest.mark.parametrize("kind, more", [
    ("SGD", {}), ("SGD", {"momentum": 0.9}), ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("Adam", {}), ("Adam", {"amsgrad": True}), ("Adam", {"weight_decay": 0.1}), ("AdamW", {"weight_decay": 0.2}), ("RMSprop", {}),
    ("Adagrad", {}), ("Adamax", {})])
def test_update_rules(kind, more):
    w = nn.Parameter(cairn.tensor([1.0, -2.0, 0.5], dtype=cairn.float64))
    opt = getattr(optim, kind)([w], lr=0.1, **more)
    for _ in range(12):
        opt.zero_grad()
        ((w - 3) ** 2).sum().backward()
        opt.step()
    np.testing.assert_allclose(numbers(w), plain(kind, 12, **more), rtol=1e-9)


def test_groups_and_numbers_that_change():
    a, b = (nn.Parameter(cairn.zeros(1)) for _ in range(2))
    opt = optim.SGD([{"params": [a]}, {"params": [b], "lr": 0.5}], lr=0.1)
    for lr in (0.1, 0.2):
        opt.param_groups[0]["lr"] = lr
        opt.zero_grad()
        (a + b).sum().backward()
        opt.step()
    assert math.isclose(a.item(), -0.3, rel_tol=1e-6) and math.isclose(b.item(), -1.0, rel_tol=1e-6)


def test_states_are_saved_and_go_on():
    def run(steps, state=None):
        cairn.manual_seed(3)
        m = nn.Linear(4, 3)
        opt = optim.Adam(m.parameters(), lr=0.05)
        x, y = cairn.randn(8, 4), cairn.randn(8, 3)
        if state:
            m.load_state_dict(state[0])
            opt.load_state_dict(state[1])
        for _ in range(steps):
            opt.zero_grad()
            F.mse_loss(m(x), y).backward()
            opt.step()
        return m.state_dict(), opt.state_dict()
    whole, parted = run(6)[0], run(2, run(4))[0]
    for name in whole:
        np.testing.assert_array_equal(numbers(whole[name]), numbers(parted[name]))


# ---- schedules ----


@pytest.mark.parametrize("make, wanted", [
    (lambda o: optim.lr_scheduler.StepLR(o, 3, 0.1), lambda t: 0.1 ** (t // 3)),
    (lambda o: optim.lr_scheduler.MultiStepLR(o, [2, 5], 0.5), lambda t: 0.5 ** ((t >= 2) + (t >= 5))),
    (lambda o: optim.lr_scheduler.ExponentialLR(o, 0.9), lambda t: 0.9 ** t),
    (lambda o: optim.lr_scheduler.CosineAnnealingLR(o, 8), lambda t: (1 + math.cos(math.pi * t / 8)) / 2),
    (lambda o: optim.lr_scheduler.LambdaLR(o, lambda t: 1 / (t + 1)), lambda t: 1 / (t + 1)),
    (lambda o: optim.lr_scheduler.LinearLR(o, 0.5, 1.0, 4), lambda t: 0.5 + 0.5 * min(t, 4) / 4),
    (lambda o: optim.lr_scheduler.PolynomialLR(o, 6, 2.0), lambda t: max(0, 1 - t / 6) ** 2)])
def test_schedules(make, wanted):
    opt = optim.SGD([nn.Parameter(cairn.zeros(1))], lr=1.0)
    schedule = make(opt)
    for t in range(8):
        assert math.isclose(opt.param_groups[0]["lr"], wanted(t), rel_tol=1e-9, abs_tol=1e-12), t
        opt.step()
        schedule.step()


# ---- layers and losses ----


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_linear_and_norms():
    cairn.manual_seed(1)
    x = cairn.randn(5, 6)
    m, n = nn.Linear(6, 4), nn.LayerNorm(6)
    np.testing.assert_allclose(numbers(m(x)), numbers(x) @ numbers(m.weight).T + numbers(m.bias), rtol=1e-5, atol=1e-6)
    v = numbers(x)
    wanted = (v - v.mean(-1, keepdims=True)) / np.sqrt(v.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(numbers(n(x)), wanted, rtol=1e-4, atol=1e-5)
    bn = nn.BatchNorm1d(6)
    np.testing.assert_allclose(numbers(bn(x)), (v - v.mean(0)) / np.sqrt(v.var(0) + 1e-5), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(numbers(bn.running_mean), 0.1 * v.mean(0), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(numbers(bn.running_var), 0.9 + 0.1 * v.var(0, ddof=1), rtol=1e-4)
    bn.eval()
    wanted = (v - numbers(bn.running_mean)) / np.sqrt(numbers(bn.running_var) + 1e-5)
    np.testing.assert_allclose(numbers(bn(x)), wanted, rtol=1e-4, atol=1e-5)


def test_convolution_by_its_definition():
    cairn.manual_seed(2)
    m, x = nn.Conv2d(2, 3, 3, stride=2, padding=1), cairn.randn(2, 2, 7, 6)
    v, w, b = np.pad(numbers(x), ((0, 0), (0, 0), (1, 1), (1, 1))), numbers(m.weight), numbers(m.bias)
    out = numbers(m(x))
    assert out.shape == (2, 3, 4, 3)
    for i in range(4):
        for j in range(3):
            window = v[:, :, 2 * i:2 * i + 3, 2 * j:2 * j + 3]
            np.testing.assert_allclose(out[:, :, i, j], np.einsum("ncij,ocij->no", window, w) + b, rtol=1e-4, atol=1e-5)


def test_lstm_by_its_definition():
    cairn.manual_seed(3)
    m, x = nn.LSTM(3, 4, batch_first=True), cairn.randn(2, 5, 3)
    y, (h, c) = m(x)
    w, u, b = numbers(m.weight_ih_l0), numbers(m.weight_hh_l0), numbers(m.bias_ih_l0) + numbers(m.bias_hh_l0)
    hidden = cell = np.zeros((2, 4))
    for t in range(5):
        i, f, g, o = np.split(numbers(x)[:, t] @ w.T + hidden @ u.T + b, 4, 1)
        sigmoid = lambda z: 1 / (1 + np.exp(-z))  # noqa: E731
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        hidden = sigmoid(o) * np.tanh(cell)
        np.testing.assert_allclose(numbers(y)[:, t], hidden, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(numbers(h)[0], hidden, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(numbers(c)[0], cell, rtol=1e-4, atol=1e-5)


def test_attention_by_its_definition():
    cairn.manual_seed(4)
    q, k, v = (cairn.randn(2, 3, 5, 4) for _ in range(3))
    scores = np.einsum("bhid,bhjd->bhij", numbers(q), numbers(k)) / 2 + np.triu(np.full((5, 5), -1e30), 1)
    wanted = np.einsum("bhij,bhjd->bhid", softmax(scores), numbers(v))
    found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    np.testing.assert_allclose(numbers(found), wanted, rtol=1e-4, atol=1e-5)


def test_losses():
    cairn.manual_seed(5)
    x, y = cairn.randn(6, 4), cairn.tensor([0, 3, 1, -100, 2, 2])
    p, kept = softmax(numbers(x)), [0, 1, 2, 4, 5]
    wanted = -np.mean([np.log(p[i, int(y[i])]) for i in kept])
    assert math.isclose(F.cross_entropy(x, y).item(), wanted, rel_tol=1e-5)
    t = cairn.rand(6, 4)
    assert math.isclose(nn.MSELoss()(x, t).item(), ((numbers(x) - numbers(t)) ** 2).mean(), rel_tol=1e-5)
    s = 1 / (1 + np.exp(-numbers(x)))
    wanted = -(numbers(t) * np.log(s) + (1 - numbers(t)) * np.log(1 - s)).sum()
    assert math.isclose(F.binary_cross_entropy_with_logits(x, t, reduction="sum").item(), wanted, rel_tol=1e-5)
    assert math.isclose(F.nll_loss(F.log_softmax(x, 1), y).item(), F.cross_entropy(x, y).item(), rel_tol=1e-6)


def test_a_network_learns_and_its_gradients_agree_with_differences():
    cairn.manual_seed(6)
    m = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1)).double()
    x = cairn.rand(64, 2, dtype=cairn.float64) * 2 - 1
    y = ((x[:, 0] * x[:, 1]) > 0).double()[:, None]
    assert cairn.autograd.gradcheck(lambda w: F.mse_loss(F.linear(x[:4], w, m[0].bias).tanh().sum(1), y[:4, 0]),
                                    (m[0].weight.detach().requires_grad_(),))
    opt = optim.AdamW(m.parameters(), lr=0.03)
    first = last = F.binary_cross_entropy_with_logits(m(x), y).item()
    for _ in range(200):
        opt.zero_grad()
        loss = F.binary_cross_entropy_with_logits(m(x), y)
        loss.backward()
        opt.step()
    last = loss.item()
    assert last < 0.3 * first
