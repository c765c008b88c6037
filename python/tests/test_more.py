"""The less common functions, beside PyTorch."""

import numpy as np
import pytest

import cairn

torch = pytest.importorskip("torch")

X = np.random.default_rng(1).standard_normal((3, 4)).astype("float32")
W = np.arange(1, 13).reshape(3, 4)

CALLS = {
    "fliplr": lambda t, x, w: t.fliplr(x), "flipud": lambda t, x, w: x.flipud(),
    "hsplit": lambda t, x, w: t.hsplit(x, 2)[1], "vsplit": lambda t, x, w: x.vsplit([1])[1],
    "select_scatter": lambda t, x, w: t.select_scatter(x, t.ones(4), 0, -1),
    "slice_scatter": lambda t, x, w: t.slice_scatter(x, t.ones(3, 2), 1, 0, 4, 2),
    "msort": lambda t, x, w: t.msort(x), "unravel_index": lambda t, x, w: t.unravel_index(w, (4, 5))[1],
    "combinations": lambda t, x, w: t.combinations(x[0], 2), "isin": lambda t, x, w: t.isin(w, t.tensor([2, 5])),
    "signbit": lambda t, x, w: t.signbit(x * 0 - 0.0), "ldexp": lambda t, x, w: t.ldexp(x, w),
    "gcd": lambda t, x, w: t.gcd(w, t.tensor(6)), "lcm": lambda t, x, w: t.lcm(w, t.tensor(4)),
    "dist": lambda t, x, w: t.dist(x, x * 2, 3), "pdist": lambda t, x, w: t.pdist(x),
    "renorm": lambda t, x, w: t.renorm(x, 2, 0, 0.5), "prelu": lambda t, x, w: t.prelu(x, t.full((4,), 0.3)),
    "hardshrink": lambda t, x, w: t.hardshrink(x, 0.3), "threshold": lambda t, x, w: t.threshold(x, 0.1, 9.0),
    "trapezoid": lambda t, x, w: t.trapezoid(x, dim=0), "trapz": lambda t, x, w: t.trapz(x[0], t.arange(4.0) * 2),
    "cumulative_trapezoid": lambda t, x, w: t.cumulative_trapezoid(x, dx=0.5),
    "hann_window": lambda t, x, w: t.hann_window(7),
    "hamming_window": lambda t, x, w: t.hamming_window(8, periodic=False),
    "blackman_window": lambda t, x, w: t.blackman_window(9), "bartlett_window": lambda t, x, w: t.bartlett_window(6),
    "sum_to_size": lambda t, x, w: x.sum_to_size(1, 4), "adjoint": lambda t, x, w: x.adjoint(),
    "clamp_min_": lambda t, x, w: x.clone().clamp_min_(0.2), "relu_": lambda t, x, w: t.relu_(x.clone()),
    "floor_divide_": lambda t, x, w: w.clone().floor_divide_(3),
    "constant_pad_nd": lambda t, x, w: t.constant_pad_nd(x, (1, 2), 3),
    "resize_as_": lambda t, x, w: x.clone().resize_as_(t.zeros(2, 6)),
}


@pytest.mark.parametrize("name", CALLS)
def test_as_in_pytorch(name):
    ours = CALLS[name](cairn, cairn.tensor(X), cairn.tensor(W))
    theirs = CALLS[name](torch, torch.tensor(X), torch.tensor(W))
    assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1] and tuple(ours.shape) == tuple(theirs.shape)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=2e-5, atol=2e-6)


def test_as_strided():
    x = cairn.arange(12.0).requires_grad_()
    for size, stride, offset in (((3, 4), (1, 3), 0), ((2, 3, 2), (4, 0, 1), 2), ((), (), 5), ((0, 2), (1, 1), 0)):
        flat = np.arange(12.0, dtype=np.float32)[offset:]
        want = np.lib.stride_tricks.as_strided(flat, size, [4 * s for s in stride])
        np.testing.assert_array_equal(cairn.as_strided(x, size, stride, offset).detach().numpy(), want)
    x.as_strided((3, 3), (1, 1)).sum().backward()
    assert x.grad.tolist() == [1, 2, 3, 2, 1] + [0] * 7
    for size, stride in (((3,), (6,)), ((3,), (1, 1)), ((2,), (-1,))):
        with pytest.raises(RuntimeError):
            x.as_strided(size, stride)
