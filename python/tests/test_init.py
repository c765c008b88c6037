"""Initial values: their formulas, their limits, and what the functions return."""

import math

import pytest

import cairn
from cairn import nn
from cairn.nn import init

np = pytest.importorskip("numpy")


@pytest.fixture(autouse=True)
def seed():
    cairn.manual_seed(1)


def numbers(t):
    return t.detach().numpy()


def test_returns_the_tensor_and_records_nothing():
    w = nn.Parameter(cairn.zeros(20, 30))
    for function in (init.uniform_, init.normal_, init.trunc_normal_, init.ones_, init.zeros_, init.eye_,
                     init.xavier_uniform_, init.xavier_normal_, init.kaiming_uniform_, init.kaiming_normal_,
                     init.orthogonal_):
        assert function(w) is w and w.is_leaf and w.requires_grad and w.grad_fn is None
    assert init.constant_(w, 2.5) is w and numbers(w).min() == numbers(w).max() == 2.5
    assert init.sparse_(w, 0.1) is w


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_dtypes_stay(dtype):
    w = cairn.zeros(8, 8, dtype=getattr(cairn, dtype))
    for function in (init.uniform_, init.normal_, init.trunc_normal_, init.orthogonal_, init.kaiming_uniform_):
        function(w)
        assert w.dtype == getattr(cairn, dtype)
        assert w.float().isfinite().all().item()


def test_uniform_and_normal():
    w = numbers(init.uniform_(cairn.zeros(200, 200), -3, 5))
    assert w.min() >= -3 and w.max() < 5 and abs(w.mean() - 1) < 0.1
    w = numbers(init.normal_(cairn.zeros(200, 200), 2, 0.5))
    assert abs(w.mean() - 2) < 0.02 and abs(w.std() - 0.5) < 0.02
    w = numbers(init.trunc_normal_(cairn.zeros(200, 200), 0, 1, -1, 0.5))
    assert w.min() >= -1 and w.max() <= 0.5 and w.std() > 0.3
    w = numbers(init.trunc_normal_(cairn.zeros(200, 200), std=0.02))
    assert abs(w.std() - 0.02) < 0.001


@pytest.mark.parametrize("shape", [(40, 60), (40, 20, 3, 5)])
def test_fans(shape):
    w = cairn.zeros(*shape)
    field = math.prod(shape[2:])
    fan_in, fan_out = shape[1] * field, shape[0] * field
    assert init._calculate_fan_in_and_fan_out(w) == (fan_in, fan_out)
    cases = [(init.xavier_uniform_, {"gain": 2}, 2 * math.sqrt(2 / (fan_in + fan_out))),
             (init.xavier_normal_, {}, math.sqrt(2 / (fan_in + fan_out))),
             (init.kaiming_uniform_, {"a": math.sqrt(5)}, math.sqrt(1 / 3 / fan_in)),
             (init.kaiming_normal_, {"mode": "fan_out", "nonlinearity": "relu"}, math.sqrt(2 / fan_out))]
    for function, options, std in cases:
        v = numbers(function(w, **options))
        assert abs(v.std() / std - 1) < 0.06 and abs(v.mean()) < std / 5
        if "uniform" in function.__name__:
            assert abs(v).max() <= math.sqrt(3) * std * 1.0001


def test_gains():
    assert init.calculate_gain("linear") == init.calculate_gain("sigmoid") == 1
    assert init.calculate_gain("tanh") == 5 / 3 and init.calculate_gain("selu") == 0.75
    assert init.calculate_gain("relu") == math.sqrt(2)
    assert init.calculate_gain("leaky_relu", 0.2) == math.sqrt(2 / 1.04)
    with pytest.raises(ValueError, match="Unsupported nonlinearity"):
        init.calculate_gain("swish")
    with pytest.raises(ValueError, match="fewer than 2 dimensions"):
        init.xavier_uniform_(cairn.zeros(3))
    with pytest.raises(ValueError, match="Mode"):
        init.kaiming_uniform_(cairn.zeros(3, 3), mode="fan")


@pytest.mark.parametrize("shape", [(5, 8), (8, 5), (4, 3, 2, 2)])
def test_orthogonal(shape):
    w = numbers(init.orthogonal_(cairn.zeros(*shape), gain=2)).reshape(shape[0], -1)
    product = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-4)


def test_sparse():
    w = numbers(init.sparse_(cairn.zeros(20, 7), 0.3))
    assert ((w == 0).sum(0) == 6).all()


def test_eye_and_dirac():
    assert init.eye_(cairn.zeros(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    conv = nn.Conv2d(4, 4, 3, padding=1, groups=2, bias=False)
    init.dirac_(conv.weight, groups=2)
    x = cairn.randn(1, 4, 5, 5)
    np.testing.assert_allclose(numbers(conv(x)), numbers(x), rtol=1e-6)
    with pytest.raises(ValueError, match="3, 4, or 5"):
        init.dirac_(cairn.zeros(2, 2))
    with pytest.raises(ValueError, match="2 dimensions"):
        init.eye_(cairn.zeros(2))


def test_former_names_warn():
    with pytest.warns(FutureWarning, match="uniform_"):
        init.uniform(cairn.zeros(2))


@pytest.mark.filterwarnings("ignore")
def test_empty_tensors():
    assert init.kaiming_uniform_(cairn.zeros(0, 3)).shape == (0, 3)
    assert init.orthogonal_(cairn.zeros(0, 3)).shape == (0, 3)


def test_layers_start_as_in_pytorch():
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    cairn.manual_seed(1)
    for make in (lambda n: n.Linear(300, 200), lambda n: n.Conv2d(16, 32, 3), lambda n: n.ConvTranspose2d(16, 32, 3),
                 lambda n: n.Embedding(300, 64), lambda n: n.LSTM(64, 128), lambda n: n.MultiheadAttention(64, 4),
                 lambda n: n.Bilinear(20, 30, 40), lambda n: n.PReLU(8), lambda n: n.BatchNorm2d(8),
                 lambda n: n.TransformerEncoderLayer(64, 4, 128), lambda n: n.EmbeddingBag(300, 64)):
        ours, theirs = make(nn), make(torch.nn)
        for (name, p), q in zip(ours.named_parameters(), theirs.parameters()):
            a, b = numbers(p), q.detach().numpy()
            spread = max(b.std(), 1e-3)
            assert abs(a.std() - b.std()) < 0.25 * spread, (make(nn), name)
            assert abs(abs(a).max() - abs(b).max()) < 0.35 * max(abs(b).max(), 1e-3), (make(nn), name)
