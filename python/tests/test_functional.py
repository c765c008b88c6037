"""cairn.nn.functional against torch.nn.functional: values, gradients, errors and signatures."""

import inspect
import math

import pytest

import cairn
import cairn.nn.functional as F

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

import torch.nn.functional as T  # noqa: E402


def floats(*shape):
    return np.random.RandomState(sum(shape)).randn(*shape).astype(np.float32)


def unit(*shape):
    return np.random.RandomState(sum(shape)).rand(*shape).astype(np.float32)


def whole(high, *shape):
    return np.random.RandomState(sum(shape)).randint(0, high, shape)


def signs(*shape):
    return np.where(floats(*shape) > 0, 1, -1).astype(np.float32)


def leaves(result):
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in leaves(part)]
    return [] if result is None else [result]


def given(value, library, grad):
    if isinstance(value, np.ndarray):
        t = library.tensor(value)
        return t.requires_grad_() if grad and value.dtype.kind == "f" else t
    if isinstance(value, list) and value and isinstance(value[0], np.ndarray):
        return [given(v, library, grad) for v in value]
    return value


def both(name, *args, tolerance=1e-5, grad=True, **kwargs):
    """Calls the function of either library and compares its results and the gradients of its arguments."""
    sides = []
    for library, module in ((cairn, F), (torch, T)):
        values = [given(v, library, grad) for v in args]
        named = {k: given(v, library, False) for k, v in kwargs.items()}
        results = leaves(getattr(module, name)(*values, **named))
        number = sum(((r * r).sum() + r.sum() for r in results if r.is_floating_point() and r.requires_grad), 0)
        if not isinstance(number, int):
            number.backward()
        sides.append((results, [v for v in values if isinstance(v, library.Tensor)]))
    (a, x), (b, y) = sides
    assert len(a) == len(b)
    for p, q in zip(a, b):
        p, q = p.detach().numpy(), q.detach().numpy()
        assert p.shape == q.shape and p.dtype == q.dtype
        np.testing.assert_allclose(p, q, rtol=tolerance * 10, atol=tolerance)
    for p, q in zip(x, y):
        if q.grad is not None:
            np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=tolerance * 20, atol=tolerance * 10)


X, PLANES, LINE, CUBE = floats(3, 4), floats(2, 3, 6, 7), floats(2, 3, 9), floats(1, 2, 4, 5, 6)

CALLS = [
    ("linear", X, floats(5, 4), floats(5)), ("linear", X, floats(5, 4)), ("linear", floats(2, 3, 4), floats(5, 4)),
    ("bilinear", floats(6, 3), floats(6, 4), floats(5, 3, 4), floats(5)),
    ("conv1d", LINE, floats(4, 3, 3), floats(4), {"stride": 2, "padding": (1,)}),
    ("conv1d", LINE, floats(4, 3, 2), {"padding": "same"}), ("conv2d", PLANES, floats(4, 3, 3, 2)),
    ("conv2d", PLANES, floats(6, 1, 3, 3), {"groups": 3, "dilation": 2, "padding": [2, 1]}),
    ("conv2d", PLANES, floats(4, 3, 2, 3), {"padding": "same", "dilation": (1, 2)}),
    ("conv2d", PLANES, floats(4, 3, 2, 3), {"padding": "valid"}),
    ("conv3d", CUBE, floats(3, 2, 2, 2, 2), {"stride": (1, 2, 1)}),
    ("conv_transpose1d", LINE, floats(3, 4, 3), {"stride": 2, "output_padding": 1}),
    ("conv_transpose2d", PLANES, floats(3, 4, 3, 3), floats(4), {"stride": (2, 1), "padding": 1}),
    ("conv_transpose3d", CUBE, floats(2, 3, 2, 2, 2)),
    ("conv_tbc", floats(6, 2, 3), floats(2, 3, 4), floats(4), {"pad": 1}),
    ("unfold", PLANES, (2, 3), {"stride": 2, "padding": 1}), ("fold", floats(2, 12, 12), (4, 5), 2),
    ("max_pool1d", LINE, 3), ("max_pool2d", PLANES, 2, {"stride": 1, "padding": 1, "ceil_mode": True}),
    ("max_pool2d", PLANES, (2, 3), {"return_indices": True}), ("max_pool3d", CUBE, 2),
    ("avg_pool1d", LINE, 3, 2), ("avg_pool2d", PLANES, 3, 2, 1, True, False), ("avg_pool3d", CUBE, (1, 2, 3)),
    ("adaptive_avg_pool1d", LINE, 4), ("adaptive_avg_pool2d", PLANES, (None, 3)), ("adaptive_avg_pool3d", CUBE, 2),
    ("adaptive_max_pool1d", LINE, 4), ("adaptive_max_pool2d", PLANES, 2, {"return_indices": True}),
    ("adaptive_max_pool3d", CUBE, (2, 2, 3)), ("lp_pool1d", LINE, 2, 3), ("lp_pool2d", PLANES, 2.0, 2, 1),
    ("relu", X), ("relu6", X * 5), ("leaky_relu", X, 0.3), ("elu", X, 0.7), ("celu", X, 0.7), ("selu", X), ("silu", X),
    ("mish", X), ("hardtanh", X, -0.3, 0.4), ("hardsigmoid", X * 3), ("hardswish", X * 3), ("threshold", X, 0.2, -1),
    ("gelu", X), ("gelu", X, {"approximate": "tanh"}), ("prelu", X, floats(4)), ("prelu", X, floats(1)), ("rrelu", X),
    ("glu", X), ("glu", floats(4, 3), 0), ("logsigmoid", X), ("softsign", X), ("tanh", X), ("sigmoid", X),
    ("softplus", X, 3, 2), ("tanhshrink", X), ("softshrink", X, 0.3), ("hardshrink", X, 0.3), ("softmax", X, 1),
    ("softmax", X, 0, {"dtype": "float64"}), ("softmin", X, -1), ("log_softmax", X, {"dim": 0}),
    ("dropout", X, 0.5, False), ("dropout", X, 0.0), ("alpha_dropout", X), ("dropout2d", PLANES, 0.4, False),
    ("embedding", whole(5, 3, 4), floats(5, 2)), ("embedding", whole(5, 3, 4), floats(5, 2), 1),
    ("embedding_bag", whole(5, 3, 4), floats(5, 2)),
    ("embedding_bag", whole(5, 6), floats(5, 2), np.array([0, 2, 2]), {"mode": "sum", "per_sample_weights": unit(6)}),
    ("one_hot", whole(5, 3)), ("one_hot", whole(5, 3, 2), 7),
    ("layer_norm", X, (4,), floats(4), floats(4), 1e-3), ("layer_norm", floats(2, 3, 4), [3, 4]),
    ("rms_norm", X, (4,), floats(4)), ("rms_norm", X, (4,), {"eps": 0.1}),
    ("group_norm", floats(2, 6, 5), 3, floats(6), floats(6)),
    ("batch_norm", PLANES, None, None, floats(3), floats(3), True),
    ("instance_norm", PLANES), ("local_response_norm", floats(2, 6, 4), 3, 0.2), ("normalize", X),
    ("normalize", X, 1.0, 0),
    ("normalize", PLANES, 2.0, (2, 3)), ("cosine_similarity", X, floats(3, 4) * 2, {"dim": 0}),
    ("pairwise_distance", X, floats(3, 4) * 2), ("pdist", floats(5, 3)),
    ("pixel_shuffle", floats(2, 8, 3, 3), 2), ("pixel_unshuffle", floats(2, 2, 4, 6), 2),
    ("pad", PLANES, (1, 2, 0, 3)), ("pad", PLANES, (1, 2), {"value": 3.5}), ("pad", PLANES, (-1, 2)),
    ("pad", PLANES, (1, 2, 0, 3), "reflect"), ("pad", PLANES, (1, 2, 0, 3), "replicate"),
    ("pad", LINE, (2, 1), "circular"),
    ("interpolate", PLANES, {"size": 9}), ("interpolate", PLANES, {"scale_factor": 2.0}),
    ("interpolate", PLANES, {"size": (4, 9), "mode": "bilinear"}),
    ("interpolate", PLANES, {"scale_factor": (1.5, 2.2)}),
    ("interpolate", PLANES, {"scale_factor": (1.5, 0.7), "mode": "bilinear"}),
    ("interpolate", PLANES, {"scale_factor": 0.6, "mode": "bilinear", "recompute_scale_factor": True}),
    ("interpolate", PLANES, {"size": (3, 3), "mode": "bilinear", "antialias": True}),
    ("interpolate", PLANES, {"size": (9, 4), "mode": "bicubic", "align_corners": True}),
    ("interpolate", PLANES, {"size": 3, "mode": "area"}), ("interpolate", PLANES, {"size": 5, "mode": "nearest-exact"}),
    ("interpolate", LINE, {"size": 4, "mode": "linear"}),
    ("interpolate", CUBE, {"scale_factor": 2, "mode": "trilinear"}),
    ("grid_sample", PLANES, np.tanh(floats(2, 4, 4, 2)), {"align_corners": False}),
    ("grid_sample", PLANES, np.tanh(floats(2, 4, 4, 2)), {"mode": "nearest", "padding_mode": "border",
     "align_corners": True}),
    ("affine_grid", floats(2, 2, 3), (2, 3, 4, 5), {"align_corners": False}),
    ("cross_entropy", X, whole(4, 3)), ("cross_entropy", X, whole(4, 3), {"weight": unit(4), "label_smoothing": 0.2}),
    ("cross_entropy", X, unit(3, 4)),
    ("cross_entropy", PLANES, whole(3, 2, 6, 7), {"reduction": "sum", "ignore_index": 1}),
    ("cross_entropy", floats(4), np.array(2)), ("nll_loss", X, whole(4, 3), {"reduction": "none"}),
    ("mse_loss", X, unit(3, 4)), ("l1_loss", X, unit(3, 4), {"reduction": "sum"}),
    ("smooth_l1_loss", X, unit(3, 4), {"beta": 0.0}),
    ("smooth_l1_loss", X, unit(3, 4), {"beta": 0.5, "reduction": "none"}),
    ("huber_loss", X, unit(3, 4), {"delta": 0.4}),
    ("mse_loss", X, unit(3, 4), {"weight": unit(3, 4) + 1}),
    ("binary_cross_entropy", unit(3, 4), unit(4, 3).T.copy()),
    ("binary_cross_entropy", unit(3, 4), unit(4, 3).T.copy(), {"weight": unit(4)}),
    ("binary_cross_entropy_with_logits", X, unit(3, 4), {"pos_weight": unit(4), "reduction": "sum"}),
    ("kl_div", X, unit(3, 4), {"reduction": "batchmean"}),
    ("kl_div", X, floats(3, 4), {"reduction": "sum", "log_target": True}),
    ("gaussian_nll_loss", X, unit(3, 4), unit(3, 1) + 0.5), ("poisson_nll_loss", X, unit(3, 4) * 4, {"full": True}),
    ("hinge_embedding_loss", X, signs(3, 4), {"margin": 0.5}), ("soft_margin_loss", X, {"target": signs(3, 4)}),
    ("margin_ranking_loss", floats(4), floats(4) * 2, signs(4), 0.3),
    ("cosine_embedding_loss", X, floats(3, 4) * 2 + 1, signs(3), 0.2),
    ("multi_margin_loss", X, whole(4, 3), {"p": 2}),
    ("multilabel_margin_loss", X[:2], np.array([[3, 0, -1, 1], [1, -1, 0, 0]])),
    ("multilabel_soft_margin_loss", X, whole(2, 3, 4).astype(np.float32), {"reduction": "none"}),
    ("triplet_margin_loss", X, X * 2, X + 1, {"swap": True}),
    ("triplet_margin_with_distance_loss", X, X * 2, X + 1, {"margin": 0.5}),
    ("scaled_dot_product_attention", floats(2, 2, 4, 3), floats(2, 2, 5, 3), floats(2, 2, 5, 3)),
    ("scaled_dot_product_attention", floats(2, 2, 4, 3), floats(2, 2, 4, 3), floats(2, 2, 4, 3), {"is_causal": True,
     "scale": 0.3}),
    ("scaled_dot_product_attention", floats(2, 2, 4, 3), floats(2, 2, 5, 3), floats(2, 2, 5, 3), floats(4, 5)),
    ("scaled_dot_product_attention", floats(2, 4, 4, 3), floats(2, 2, 5, 3), floats(2, 2, 5, 3), {"enable_gqa": True}),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS, ids=lambda c: c[0])
def test_function(call):
    name, *args = call
    kwargs = args.pop() if isinstance(args[-1], dict) else {}
    if isinstance(kwargs.get("dtype"), str):
        ours, theirs = getattr(cairn, kwargs["dtype"]), getattr(torch, kwargs["dtype"])
        a, b = getattr(F, name)(cairn.tensor(args[0]), *args[1:], dtype=ours), getattr(T, name)(
            torch.tensor(args[0]), *args[1:], dtype=theirs)
        np.testing.assert_allclose(a.numpy(), b.numpy())
        return
    both(name, *args, **kwargs)


def test_inplace_gives_the_input_the_result():
    for name in ("relu", "relu6", "leaky_relu", "elu", "selu", "silu", "hardswish", "hardtanh"):
        x, y = cairn.tensor(X), torch.tensor(X)
        a, b = getattr(F, name)(x, inplace=True), getattr(T, name)(y, inplace=True)
        assert a is x
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-5, atol=1e-6)
        del a, b
    x = cairn.tensor(X)
    assert F.relu_(x) is x and x.min().item() >= 0
    w = cairn.tensor(X, requires_grad=True)
    F.relu(w * 2, inplace=True).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), 2.0 * (X > 0))


def test_running_statistics():
    x = floats(4, 3, 5)
    means, variances = (cairn.zeros(3), torch.zeros(3)), (cairn.ones(3), torch.ones(3))
    for momentum in (0.3, 0.0):
        for function in ("batch_norm", "instance_norm"):
            extra = {"training": True} if function == "batch_norm" else {}
            a = getattr(F, function)(cairn.tensor(x), means[0], variances[0], momentum=momentum, **extra)
            b = getattr(T, function)(torch.tensor(x), means[1], variances[1], momentum=momentum, **extra)
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(means[0].numpy(), means[1].numpy(), rtol=1e-5)
            np.testing.assert_allclose(variances[0].numpy(), variances[1].numpy(), rtol=1e-5)


def test_embedding_max_norm_changes_the_rows_that_are_used():
    w, v = floats(5, 3) * 2, whole(3, 4)
    ours, theirs = cairn.tensor(w), torch.tensor(w)
    a, b = F.embedding(cairn.tensor(v), ours, max_norm=1.0), T.embedding(torch.tensor(v), theirs, max_norm=1.0)
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5)


def test_dropout_keeps_the_mean():
    cairn.manual_seed(0)
    x = cairn.ones(200, 200)
    y = F.dropout(x, 0.25).numpy()
    assert abs(y.mean() - 1) < 0.02 and set(np.unique(y.round(4))) == {0.0, np.float32(1.3333)}
    y = F.dropout2d(cairn.ones(20, 30, 4, 4), 0.5).numpy()
    assert (y == y[:, :, :1, :1]).all() and 0 < (y == 0).mean() < 1
    y = F.dropout1d(cairn.ones(30, 40), 0.5).numpy()
    assert (y == y[:, :1]).all()
    x = cairn.randn(300, 300)
    y = F.alpha_dropout(x, 0.2, training=True).numpy()
    assert abs(y.mean()) < 0.05 and abs(y.std() - 1) < 0.05
    y = F.feature_alpha_dropout(cairn.randn(20, 30, 8), 0.2, training=True)
    assert y.shape == (20, 30, 8)
    with pytest.raises(ValueError, match="between 0 and 1"):
        F.dropout(x, 1.5)
    assert F.dropout(x, 0.5, training=False) is x


def test_rrelu_and_gumbel():
    cairn.manual_seed(0)
    y = F.rrelu(-cairn.ones(100, 100), training=True).numpy()
    assert -1 / 3 <= y.min() < -0.3 and -0.15 < y.max() <= -1 / 8
    logits = cairn.randn(50, 4, requires_grad=True)
    soft, hard = F.gumbel_softmax(logits), F.gumbel_softmax(logits, tau=0.5, hard=True)
    np.testing.assert_allclose(soft.sum(1).detach().numpy(), np.ones(50), rtol=1e-5)
    np.testing.assert_allclose(sorted(np.unique(hard.detach().numpy().round(5))), [0, 1])
    (hard * cairn.randn(50, 4)).sum().backward()
    assert logits.grad.abs().sum().item() > 0


def test_former_reductions():
    x, y = cairn.tensor(X), cairn.zeros(3, 4)
    with pytest.warns(UserWarning, match="reduction instead"):
        assert F.mse_loss(x, y, size_average=False).item() == pytest.approx((X ** 2).sum(), rel=1e-5)
    with pytest.warns(UserWarning):
        assert F.mse_loss(x, y, reduce=False).shape == (3, 4)


def test_losses_broadcast_with_a_warning():
    with pytest.warns(UserWarning, match="different to the input size"):
        a = F.mse_loss(cairn.tensor(X), cairn.ones(4))
    assert a.item() == pytest.approx(((X - 1) ** 2).mean(), rel=1e-5)


@pytest.mark.parametrize("call, error, words", [
    (lambda: F.cross_entropy(cairn.zeros(2, 3), cairn.zeros(2, dtype=cairn.int64), reduction="all"), ValueError, "all"),
    (lambda: F.binary_cross_entropy(cairn.zeros(2), cairn.zeros(3)), ValueError, "target size"),
    (lambda: F.interpolate(cairn.zeros(1, 1, 2, 2)), ValueError, "either size or scale_factor"),
    (lambda: F.interpolate(cairn.zeros(1, 1, 2, 2), 3, 2.0), ValueError, "only one of size or scale_factor"),
    (lambda: F.interpolate(cairn.zeros(1, 1, 2, 2), 3, align_corners=True), ValueError, "align_corners"),
    (lambda: F.gelu(cairn.zeros(2), approximate="erf"), RuntimeError, "none or tanh"),
    (lambda: F.conv2d(cairn.zeros(1, 1, 4, 4), cairn.zeros(1, 1, 3, 3), stride=2, padding="same"), RuntimeError,
     "strided"),
    (lambda: F.layer_norm(cairn.zeros(2, 3), (4,)), RuntimeError, "normalized_shape"),
    (lambda: F.batch_norm(cairn.zeros(1, 3), None, None, training=True), ValueError, "more than 1 value"),
    (lambda: F.glu(cairn.zeros(3)), RuntimeError, "must be even"),
    (lambda: F.embedding(cairn.zeros(1, dtype=cairn.int64), cairn.zeros(2, 2), padding_idx=5), AssertionError,
     "within"),
    (lambda: F.pad(cairn.zeros(2, 2), (1, 1, 1, 1, 1, 1), "reflect"), NotImplementedError, "non-constant"),
    (lambda: F.fractional_max_pool2d(cairn.zeros(1, 4, 4), 2, 2), NotImplementedError, "adaptive_max_pool2d"),
])
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.filterwarnings("ignore")
def test_softmax_without_an_axis():
    for shape in ((3,), (3, 4), (2, 3, 4), (2, 3, 4, 5)):
        x = floats(*shape)
        np.testing.assert_allclose(F.softmax(cairn.tensor(x)).numpy(), T.softmax(torch.tensor(x)).numpy(), rtol=1e-5)


def test_float64_stays_float64():
    x = cairn.tensor(X, dtype=cairn.float64)
    for y in (F.gelu(x), F.threshold(x, 0, 1), F.hardshrink(x), F.rrelu(x, training=True), F.dropout(x, 0.5), F.prelu(
            x, cairn.tensor([0.1], dtype=cairn.float64)), F.mse_loss(x, x), F.softshrink(x), F.normalize(x)):
        assert y.dtype == cairn.float64


# Functions of torch.nn.functional without a counterpart: what they are for does not exist here.
ABSENT = {"assert_int_or_pair", "boolean_dispatch", "handle_torch_function", "has_torch_function",
          "has_torch_function_unary", "has_torch_function_variadic", "grouped_mm", "scaled_mm", "scaled_grouped_mm",
          "scaled_addmm", "scaled_addmm_", "linear_cross_entropy"}


def test_every_name_of_pytorch():
    names = {n for n in dir(T) if n[0] != "_" and n.islower() and callable(getattr(T, n))}
    assert {n for n in names if not hasattr(F, n)} <= ABSENT


def test_parameters_have_the_names_of_pytorch():
    for name in dir(F):
        ours, theirs = getattr(F, name), getattr(T, name, None)
        if name[0] == "_" or not inspect.isfunction(ours) or not inspect.isfunction(theirs) or name in (
                "boolean_dispatch",):
            continue
        a, b = (list(inspect.signature(f).parameters) for f in (ours, theirs))
        if a[:1] == ["args"] or b[:1] == ["args"] or a == ["input", "args", "kwargs"]:
            continue
        assert [n for n in b if n not in a] == [], name
        assert [n for n in a if n in b] == b, name
    assert math.isclose(inspect.signature(F.rrelu).parameters["lower"].default, 1 / 8)
