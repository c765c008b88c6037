"""Modules against PyTorch: names, shapes, texts, values and gradients; and what modules do by themselves."""

import copy
import gc
import pickle
import weakref
from collections import OrderedDict

import pytest

import cairn
import cairn.nn as nn
import cairn.nn.functional as F

np = pytest.importorskip("numpy")

try:
    import torch
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")


def array(t):
    return t.detach().numpy()


def close(a, b, tolerance=1e-5):
    """Compares results: tensors, None, or (nested) tuples of them."""
    if isinstance(b, (tuple, list)):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            close(x, y, tolerance)
    elif b is None:
        assert a is None
    else:
        a, b = array(a), b.detach().numpy()
        assert a.shape == b.shape and a.dtype == b.dtype
        largest = max(1.0, float(np.abs(b).max(initial=0)))
        np.testing.assert_allclose(a, b, rtol=tolerance * 10, atol=tolerance * largest)


def floats(*shape):
    return np.random.randn(*shape).astype(np.float32)


def whole(high, *shape):
    return np.random.randint(0, high, shape)


def both(value, grad=True):
    """The same array as a tensor of Cairn and of PyTorch; floats require gradients."""
    if not isinstance(value, np.ndarray):
        return value, value
    ours, theirs = cairn.tensor(value), torch.tensor(value)
    if grad and value.dtype.kind == "f":
        ours.requires_grad_()
        theirs.requires_grad_()
    return ours, theirs


def leaves(result):
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in leaves(part)]
    return [] if result is None else [result]


def total(result):
    """One number from all floating results, with other factors for each element."""
    return sum(((leaf * leaf).sum() + leaf.sum() for leaf in leaves(result) if leaf.is_floating_point()))


def compare(make, *inputs, eval=False, gradients=True, tolerance=1e-5, **kwargs):
    """make(nn) gives the layer of either side. Compares its state, its text, its results and its gradients."""
    np.random.seed(0)
    inputs = [value() if callable(value) else value for value in inputs]
    ours, theirs = make(nn), make(torch.nn)
    assert repr(ours) == repr(theirs)
    state = theirs.state_dict()
    assert list(ours.state_dict()) == list(state)
    assert [tuple(t.shape) for t in ours.state_dict().values()] == [tuple(t.shape) for t in state.values()]
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    assert [n for n, _ in ours.named_buffers()] == [n for n, _ in theirs.named_buffers()]
    ours.load_state_dict({name: cairn.tensor(t.numpy()) for name, t in state.items()})
    if eval:
        ours.eval()
        theirs.eval()
    pairs = [both(value) for value in inputs]
    named = {name: both(value, False) for name, value in kwargs.items()}
    a = ours(*(p[0] for p in pairs), **{name: p[0] for name, p in named.items()})
    b = theirs(*(p[1] for p in pairs), **{name: p[1] for name, p in named.items()})
    close(a, b, tolerance)
    if not gradients:
        return ours, theirs
    total(a).backward()
    total(b).backward()
    for x, y in pairs:
        if isinstance(x, cairn.Tensor) and x.requires_grad and y.grad is not None:
            close(x.grad, y.grad, tolerance * 5)
    for (name, p), q in zip(ours.named_parameters(), theirs.parameters()):
        assert (p.grad is None) == (q.grad is None), name
        if q.grad is not None:
            close(p.grad, q.grad, tolerance * 5)
    close([t for t in ours.buffers()], [t for t in theirs.buffers()], tolerance)
    return ours, theirs


LAYERS = {
    "linear": (lambda n: n.Linear(5, 3), floats(4, 5)),
    "linear no bias": (lambda n: n.Linear(5, 3, bias=False), floats(2, 4, 5)),
    "bilinear": (lambda n: n.Bilinear(3, 4, 5), floats(6, 3), floats(6, 4)),
    "bilinear no bias": (lambda n: n.Bilinear(3, 4, 5, bias=False), floats(2, 3, 3), floats(2, 3, 4)),
    "identity": (lambda n: n.Identity(54, unused=1), floats(2, 3)),
    "conv1d": (lambda n: n.Conv1d(4, 6, 3, stride=2, padding=1), floats(2, 4, 9)),
    "conv1d same": (lambda n: n.Conv1d(4, 6, 4, padding="same", dilation=2), floats(2, 4, 9)),
    "conv1d circular": (lambda n: n.Conv1d(4, 6, 3, padding=2, padding_mode="circular"), floats(2, 4, 9)),
    "conv2d": (lambda n: n.Conv2d(3, 8, 3), floats(2, 3, 7, 8)),
    "conv2d options": (lambda n: n.Conv2d(4, 8, (3, 2), (2, 1), (1, 2), (1, 2), 2, False), floats(2, 4, 9, 8)),
    "conv2d same": (lambda n: n.Conv2d(3, 4, (3, 4), padding="same"), floats(2, 3, 7, 8)),
    "conv2d valid": (lambda n: n.Conv2d(3, 4, 3, padding="valid"), floats(2, 3, 7, 8)),
    "conv2d reflect": (lambda n: n.Conv2d(3, 4, 3, padding=(1, 2), padding_mode="reflect"), floats(2, 3, 7, 8)),
    "conv2d replicate same": (lambda n: n.Conv2d(3, 4, 3, padding="same", padding_mode="replicate"),
                              floats(2, 3, 7, 8)),
    "conv2d single": (lambda n: n.Conv2d(3, 4, 3, padding=1), floats(3, 7, 8)),
    "conv3d": (lambda n: n.Conv3d(2, 3, (1, 2, 3), padding=1), floats(2, 2, 4, 5, 6)),
    "conv_transpose1d": (lambda n: n.ConvTranspose1d(4, 6, 3, 2, 1, 1, 2), floats(2, 4, 9)),
    "conv_transpose2d": (lambda n: n.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1),
                         floats(2, 4, 5, 6)),
    "conv_transpose2d dilation": (lambda n: n.ConvTranspose2d(4, 2, (3, 2), dilation=(1, 2), bias=False),
                                  floats(2, 4, 5, 6)),
    "conv_transpose3d": (lambda n: n.ConvTranspose3d(2, 3, 2, 2), floats(1, 2, 3, 3, 3)),
    "max_pool1d": (lambda n: n.MaxPool1d(3, 2), floats(2, 3, 9)),
    "max_pool2d": (lambda n: n.MaxPool2d(2), floats(2, 3, 8, 8)),
    "max_pool2d options": (lambda n: n.MaxPool2d((3, 2), (2, 1), 1, ceil_mode=True), floats(2, 3, 8, 8)),
    "max_pool2d indices": (lambda n: n.MaxPool2d(2, return_indices=True), floats(2, 3, 8, 8)),
    "max_pool3d": (lambda n: n.MaxPool3d(2), floats(1, 2, 4, 4, 6)),
    "avg_pool1d": (lambda n: n.AvgPool1d(3, 2, 1), floats(2, 3, 9)),
    "avg_pool2d": (lambda n: n.AvgPool2d(2), floats(2, 3, 8, 8)),
    "avg_pool2d options": (lambda n: n.AvgPool2d(3, 2, 1, True, False), floats(2, 3, 8, 8)),
    "avg_pool2d divisor": (lambda n: n.AvgPool2d(3, 2, divisor_override=2), floats(2, 3, 8, 8)),
    "avg_pool3d": (lambda n: n.AvgPool3d(2), floats(1, 2, 4, 4, 6)),
    "adaptive_avg_pool1d": (lambda n: n.AdaptiveAvgPool1d(4), floats(2, 3, 9)),
    "adaptive_avg_pool2d": (lambda n: n.AdaptiveAvgPool2d((3, None)), floats(2, 3, 8, 7)),
    "adaptive_avg_pool2d one": (lambda n: n.AdaptiveAvgPool2d(1), floats(2, 3, 8, 7)),
    "adaptive_avg_pool3d": (lambda n: n.AdaptiveAvgPool3d((1, 2, 2)), floats(2, 3, 3, 4, 5)),
    "adaptive_max_pool1d": (lambda n: n.AdaptiveMaxPool1d(4), floats(2, 3, 9)),
    "adaptive_max_pool2d": (lambda n: n.AdaptiveMaxPool2d((3, 2), return_indices=True), floats(2, 3, 8, 7)),
    "adaptive_max_pool3d": (lambda n: n.AdaptiveMaxPool3d(2), floats(2, 3, 3, 4, 5)),
    "lp_pool1d": (lambda n: n.LPPool1d(2, 3), floats(2, 3, 9)),
    "lp_pool2d": (lambda n: n.LPPool2d(2, 3, stride=2), floats(2, 3, 8, 8)),
    "lp_pool3d": (lambda n: n.LPPool3d(2, 2), floats(1, 2, 4, 4, 4)),
    "batch_norm1d": (lambda n: n.BatchNorm1d(5), floats(6, 5)),
    "batch_norm1d sequence": (lambda n: n.BatchNorm1d(5, eps=1e-3, momentum=0.3), floats(6, 5, 4)),
    "batch_norm2d": (lambda n: n.BatchNorm2d(3), floats(4, 3, 5, 6)),
    "batch_norm2d plain": (lambda n: n.BatchNorm2d(3, affine=False, track_running_stats=False), floats(4, 3, 5, 6)),
    "batch_norm2d mean": (lambda n: n.BatchNorm2d(3, momentum=None), floats(4, 3, 5, 6)),
    "batch_norm3d": (lambda n: n.BatchNorm3d(2), floats(2, 2, 3, 4, 5)),
    "instance_norm1d": (lambda n: n.InstanceNorm1d(3), floats(2, 3, 7)),
    "instance_norm2d": (lambda n: n.InstanceNorm2d(3, affine=True, track_running_stats=True), floats(2, 3, 5, 6)),
    "instance_norm2d single": (lambda n: n.InstanceNorm2d(3), floats(3, 5, 6)),
    "instance_norm3d": (lambda n: n.InstanceNorm3d(3), floats(2, 3, 3, 4, 5)),
    "layer_norm": (lambda n: n.LayerNorm(6), floats(2, 5, 6)),
    "layer_norm shape": (lambda n: n.LayerNorm((5, 6), bias=False), floats(2, 5, 6)),
    "layer_norm plain": (lambda n: n.LayerNorm([5, 6], elementwise_affine=False), floats(2, 5, 6)),
    "rms_norm": (lambda n: n.RMSNorm(6), floats(2, 5, 6)),
    "rms_norm eps": (lambda n: n.RMSNorm((5, 6), eps=1e-3), floats(2, 5, 6)),
    "group_norm": (lambda n: n.GroupNorm(2, 6), floats(2, 6, 4, 3)),
    "local_response_norm": (lambda n: n.LocalResponseNorm(3, 0.1), floats(2, 6, 4, 3)),
    "embedding": (lambda n: n.Embedding(7, 4), whole(7, 3, 5)),
    "embedding padding": (lambda n: n.Embedding(7, 4, padding_idx=-2), whole(7, 3, 5)),
    "embedding max_norm": (lambda n: n.Embedding(7, 4, max_norm=1.0), whole(4, 3, 2)),
    "embedding_bag": (lambda n: n.EmbeddingBag(7, 4), whole(7, 3, 5)),
    "embedding_bag sum": (lambda n: n.EmbeddingBag(7, 4, mode="sum"), whole(7, 6), np.array([0, 2, 5])),
    "embedding_bag max": (lambda n: n.EmbeddingBag(7, 4, mode="max", padding_idx=1), whole(7, 3, 5)),
    "dropout": (lambda n: n.Dropout(0.3, inplace=False), floats(3, 4)),
    "dropout1d": (lambda n: n.Dropout1d(0.3), floats(3, 4, 5)),
    "dropout2d": (lambda n: n.Dropout2d(0.3), floats(3, 4, 5, 5)),
    "dropout3d": (lambda n: n.Dropout3d(0.3), floats(3, 4, 5, 5, 2)),
    "alpha_dropout": (lambda n: n.AlphaDropout(0.3), floats(3, 4)),
    "feature_alpha_dropout": (lambda n: n.FeatureAlphaDropout(0.3), floats(3, 4)),
    "relu": (lambda n: n.ReLU(), floats(3, 4)),
    "relu6": (lambda n: n.ReLU6(), floats(3, 4) * 5),
    "leaky_relu": (lambda n: n.LeakyReLU(0.2), floats(3, 4)),
    "prelu": (lambda n: n.PReLU(), floats(3, 4)),
    "prelu channels": (lambda n: n.PReLU(4), floats(3, 4, 5)),
    "rrelu": (lambda n: n.RReLU(), floats(3, 4)),
    "elu": (lambda n: n.ELU(0.5), floats(3, 4)),
    "celu": (lambda n: n.CELU(0.5), floats(3, 4)),
    "selu": (lambda n: n.SELU(), floats(3, 4)),
    "gelu": (lambda n: n.GELU(), floats(3, 4)),
    "gelu tanh": (lambda n: n.GELU(approximate="tanh"), floats(3, 4)),
    "silu": (lambda n: n.SiLU(), floats(3, 4)),
    "mish": (lambda n: n.Mish(), floats(3, 4)),
    "sigmoid": (lambda n: n.Sigmoid(), floats(3, 4)),
    "log_sigmoid": (lambda n: n.LogSigmoid(), floats(3, 4)),
    "hardsigmoid": (lambda n: n.Hardsigmoid(), floats(3, 4) * 4),
    "hardswish": (lambda n: n.Hardswish(), floats(3, 4) * 4),
    "tanh": (lambda n: n.Tanh(), floats(3, 4)),
    "tanhshrink": (lambda n: n.Tanhshrink(), floats(3, 4)),
    "hardtanh": (lambda n: n.Hardtanh(-0.5, 0.7), floats(3, 4)),
    "softplus": (lambda n: n.Softplus(2, 3), floats(3, 4) * 3),
    "softsign": (lambda n: n.Softsign(), floats(3, 4)),
    "softshrink": (lambda n: n.Softshrink(), floats(3, 4)),
    "hardshrink": (lambda n: n.Hardshrink(), floats(3, 4)),
    "threshold": (lambda n: n.Threshold(0.1, 20), floats(3, 4)),
    "glu": (lambda n: n.GLU(), floats(3, 4)),
    "softmax": (lambda n: n.Softmax(dim=1), floats(3, 4)),
    "log_softmax": (lambda n: n.LogSoftmax(dim=-1), floats(3, 4)),
    "softmin": (lambda n: n.Softmin(dim=0), floats(3, 4)),
    "softmax2d": (lambda n: n.Softmax2d(), floats(2, 3, 4, 5)),
    "flatten": (lambda n: n.Flatten(), floats(2, 3, 4, 5)),
    "unflatten": (lambda n: n.Unflatten(1, (3, 4)), floats(2, 12, 5)),
    "fold": (lambda n: n.Fold((4, 5), (2, 2)), floats(2, 12, 12)),
    "unfold": (lambda n: n.Unfold((2, 3), padding=1, stride=2), floats(2, 3, 6, 7)),
    "pixel_shuffle": (lambda n: n.PixelShuffle(2), floats(2, 8, 3, 4)),
    "pixel_unshuffle": (lambda n: n.PixelUnshuffle(2), floats(2, 3, 4, 6)),
    "channel_shuffle": (lambda n: n.ChannelShuffle(2), floats(2, 6, 3, 4)),
    "upsample": (lambda n: n.Upsample(scale_factor=2), floats(2, 3, 4, 5)),
    "upsample size": (lambda n: n.Upsample(size=(7, 9), mode="bilinear"), floats(2, 3, 4, 5)),
    "upsample pair": (lambda n: n.Upsample(scale_factor=(2, 3), mode="bilinear"), floats(2, 3, 4, 5)),
    "upsample corners": (lambda n: n.Upsample(scale_factor=2, mode="bilinear", align_corners=True), floats(2, 3, 4, 5)),
    "upsample bicubic": (lambda n: n.Upsample(scale_factor=1.5, mode="bicubic"), floats(2, 3, 4, 5)),
    "upsample bicubic pair": (lambda n: n.Upsample(scale_factor=(1.5, 2.2), mode="bicubic"), floats(2, 3, 4, 5)),
    "upsample linear": (lambda n: n.Upsample(scale_factor=1.7, mode="linear"), floats(2, 3, 5)),
    "upsample trilinear": (lambda n: n.Upsample(scale_factor=2, mode="trilinear"), floats(1, 2, 3, 3, 3)),
    "upsampling_nearest2d": (lambda n: n.UpsamplingNearest2d(scale_factor=3), floats(2, 3, 4, 5)),
    "upsampling_bilinear2d": (lambda n: n.UpsamplingBilinear2d(size=(6, 6)), floats(2, 3, 4, 5)),
    "zero_pad1d": (lambda n: n.ZeroPad1d((1, 2)), floats(2, 3, 4)),
    "zero_pad2d": (lambda n: n.ZeroPad2d(1), floats(2, 3, 4, 4)),
    "zero_pad3d": (lambda n: n.ZeroPad3d(1), floats(1, 2, 3, 4, 4)),
    "constant_pad1d": (lambda n: n.ConstantPad1d(2, 3.5), floats(2, 3, 4)),
    "constant_pad2d": (lambda n: n.ConstantPad2d((1, 2, 0, 3), -1), floats(2, 3, 4, 4)),
    "constant_pad3d": (lambda n: n.ConstantPad3d(1, 2.0), floats(1, 2, 3, 4, 4)),
    "reflection_pad1d": (lambda n: n.ReflectionPad1d(2), floats(2, 3, 4)),
    "reflection_pad2d": (lambda n: n.ReflectionPad2d((1, 2, 0, 3)), floats(2, 3, 4, 4)),
    "reflection_pad3d": (lambda n: n.ReflectionPad3d(1), floats(1, 2, 3, 4, 4)),
    "replication_pad1d": (lambda n: n.ReplicationPad1d(2), floats(2, 3, 4)),
    "replication_pad2d": (lambda n: n.ReplicationPad2d((1, 2, 0, 3)), floats(2, 3, 4, 4)),
    "replication_pad3d": (lambda n: n.ReplicationPad3d(1), floats(1, 2, 3, 4, 4)),
    "circular_pad1d": (lambda n: n.CircularPad1d(2), floats(2, 3, 4)),
    "circular_pad2d": (lambda n: n.CircularPad2d((1, 2, 0, 3)), floats(2, 3, 4, 4)),
    "circular_pad3d": (lambda n: n.CircularPad3d(1), floats(1, 2, 3, 4, 4)),
    "cosine_similarity": (lambda n: n.CosineSimilarity(), floats(3, 4), floats(3, 4)),
    "pairwise_distance": (lambda n: n.PairwiseDistance(p=1, keepdim=True), floats(3, 4), floats(3, 4)),
    "rnn": (lambda n: n.RNN(3, 4), floats(5, 2, 3)),
    "rnn relu": (lambda n: n.RNN(3, 4, 2, nonlinearity="relu", bias=False, batch_first=True), floats(2, 5, 3)),
    "lstm": (lambda n: n.LSTM(3, 4), floats(5, 2, 3)),
    "lstm deep": (lambda n: n.LSTM(3, 4, num_layers=2, batch_first=True, bidirectional=True), floats(2, 5, 3)),
    "lstm projected": (lambda n: n.LSTM(3, 6, 2, bidirectional=True, proj_size=2), floats(5, 2, 3)),
    "lstm single": (lambda n: n.LSTM(3, 4, bias=False), floats(5, 3)),
    "gru": (lambda n: n.GRU(3, 4), floats(5, 2, 3)),
    "gru deep": (lambda n: n.GRU(3, 4, 2, bidirectional=True), floats(5, 2, 3), floats(4, 2, 4)),
    "rnn_cell": (lambda n: n.RNNCell(3, 4), floats(2, 3)),
    "rnn_cell relu": (lambda n: n.RNNCell(3, 4, nonlinearity="relu"), floats(2, 3), floats(2, 4)),
    "lstm_cell": (lambda n: n.LSTMCell(3, 4), floats(2, 3)),
    "gru_cell": (lambda n: n.GRUCell(3, 4, bias=False), floats(3), floats(4)),
    "attention": (lambda n: n.MultiheadAttention(8, 2), floats(4, 3, 8), floats(5, 3, 8), floats(5, 3, 8)),
    "attention widths": (lambda n: n.MultiheadAttention(8, 2, kdim=5, vdim=6, batch_first=True, bias=False),
                         floats(3, 4, 8), floats(3, 5, 5), floats(3, 5, 6)),
    "attention more keys": (lambda n: n.MultiheadAttention(8, 4, add_bias_kv=True, add_zero_attn=True),
                            floats(4, 3, 8), floats(5, 3, 8), floats(5, 3, 8)),
    "attention single": (lambda n: n.MultiheadAttention(8, 2), floats(4, 8), floats(5, 8), floats(5, 8)),
    "adaptive_log_softmax": (lambda n: n.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 12], 2.0), floats(6, 8),
                             np.array([0, 4, 5, 11, 12, 19])),
}
RANDOM = {"dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout", "rrelu"}


@needs_torch
@pytest.mark.parametrize("name", LAYERS)
def test_layer(name):
    make, *inputs = LAYERS[name]
    compare(make, *inputs, eval=name in RANDOM)


@needs_torch
@pytest.mark.parametrize("name", ["batch_norm1d", "batch_norm2d mean", "batch_norm2d plain", "instance_norm2d", "lstm"])
def test_layer_in_evaluation(name):
    make, *inputs = LAYERS[name]
    compare(make, *inputs, eval=True)


LOSSES = {
    "L1Loss": (lambda n, **o: n.L1Loss(**o), floats(3, 4), floats(3, 4)),
    "MSELoss": (lambda n, **o: n.MSELoss(**o), floats(3, 4), floats(3, 4)),
    "SmoothL1Loss": (lambda n, **o: n.SmoothL1Loss(beta=0.5, **o), floats(3, 4), floats(3, 4)),
    "HuberLoss": (lambda n, **o: n.HuberLoss(delta=0.5, **o), floats(3, 4), floats(3, 4)),
    "CrossEntropyLoss": (lambda n, **o: n.CrossEntropyLoss(ignore_index=1, label_smoothing=0.1, **o), floats(5, 4),
                         np.array([0, 1, 3, 2, 0])),
    "CrossEntropyLoss planes": (lambda n, **o: n.CrossEntropyLoss(**o), floats(2, 4, 3, 3), whole(4, 2, 3, 3)),
    "NLLLoss": (lambda n, **o: n.NLLLoss(**o), floats(5, 4), whole(4, 5)),
    "BCELoss": (lambda n, **o: n.BCELoss(**o), np.random.rand(3, 4).astype(np.float32),
                np.random.rand(3, 4).astype(np.float32)),
    "BCEWithLogitsLoss": (lambda n, **o: n.BCEWithLogitsLoss(**o), floats(3, 4),
                          np.random.rand(3, 4).astype(np.float32)),
    "KLDivLoss": (lambda n, **o: n.KLDivLoss(log_target=True, **o), floats(3, 4), floats(3, 4)),
    "PoissonNLLLoss": (lambda n, **o: n.PoissonNLLLoss(full=True, **o), floats(3, 4), np.abs(floats(3, 4)) * 3),
    "GaussianNLLLoss": (lambda n, **o: n.GaussianNLLLoss(**o), floats(3, 4), floats(3, 4), np.abs(floats(3, 4)) + 1),
    "HingeEmbeddingLoss": (lambda n, **o: n.HingeEmbeddingLoss(**o), floats(3, 4), np.sign(floats(3, 4)), "signs"),
    "SoftMarginLoss": (lambda n, **o: n.SoftMarginLoss(**o), floats(3, 4), np.sign(floats(3, 4)), "signs"),
    "MultiLabelMarginLoss": (lambda n, **o: n.MultiLabelMarginLoss(**o), floats(2, 4),
                             np.array([[3, 0, -1, 1], [1, -1, 0, 0]])),
    "MultiLabelSoftMarginLoss": (lambda n, **o: n.MultiLabelSoftMarginLoss(**o), floats(3, 4),
                                 whole(2, 3, 4).astype(np.float32), "signs"),
    "MultiMarginLoss": (lambda n, **o: n.MultiMarginLoss(p=2, margin=0.5, **o), floats(5, 4), whole(4, 5)),
    "MarginRankingLoss": (lambda n, **o: n.MarginRankingLoss(0.2, **o), floats(5), floats(5), np.sign(floats(5)),
                          "signs"),
    "CosineEmbeddingLoss": (lambda n, **o: n.CosineEmbeddingLoss(0.1, **o), floats(5, 3), floats(5, 3),
                            np.sign(floats(5)), "signs"),
    "TripletMarginLoss": (lambda n, **o: n.TripletMarginLoss(swap=True, **o), floats(5, 3), floats(5, 3), floats(5, 3)),
    "TripletMarginWithDistanceLoss": (lambda n, **o: n.TripletMarginWithDistanceLoss(margin=0.5, **o), floats(5, 3),
                                      floats(5, 3), floats(5, 3)),
}


@needs_torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_loss(name, reduction):
    make, *inputs = LOSSES[name]
    signs = isinstance(inputs[-1], str)
    inputs = inputs[:-1] if signs else inputs
    ours, theirs = make(nn, reduction=reduction), make(torch.nn, reduction=reduction)
    assert repr(ours) == repr(theirs)
    last = len(inputs) - 1
    pairs = [both(value, not (signs and i == last) and i == 0) for i, value in enumerate(inputs)]
    a, b = ours(*(p[0] for p in pairs)), theirs(*(p[1] for p in pairs))
    close(a, b)
    a.sum().backward()
    b.sum().backward()
    close(pairs[0][0].grad, pairs[0][1].grad)


@needs_torch
def test_loss_weights():
    x, w = floats(5, 4), np.random.rand(4).astype(np.float32)
    target = whole(4, 5)
    ours = nn.CrossEntropyLoss(weight=cairn.tensor(w))
    assert list(ours.state_dict()) == ["weight"]
    close(ours(cairn.tensor(x), cairn.tensor(target)),
          torch.nn.CrossEntropyLoss(weight=torch.tensor(w))(torch.tensor(x), torch.tensor(target)))
    y = (floats(5, 4) > 0).astype(np.float32)
    close(nn.BCEWithLogitsLoss(pos_weight=cairn.tensor(w))(cairn.tensor(x), cairn.tensor(y)),
          torch.nn.BCEWithLogitsLoss(pos_weight=torch.tensor(w))(torch.tensor(x), torch.tensor(y)))


@needs_torch
def test_ctc_loss():
    x = floats(12, 3, 5)
    targets, steps, lengths = whole(4, 3, 4) + 1, (12, 10, 9), (4, 3, 2)
    pairs = both(x)
    a = nn.CTCLoss()(F.log_softmax(pairs[0], 2), cairn.tensor(targets), steps, lengths)
    b = torch.nn.CTCLoss()(pairs[1].log_softmax(2), torch.tensor(targets), steps, lengths)
    close(a, b)
    a.backward()
    b.backward()
    close(pairs[0].grad, pairs[1].grad)


@needs_torch
def test_unpool():
    x = floats(2, 3, 8, 8)
    a = nn.MaxUnpool2d(2)(*nn.MaxPool2d(2, return_indices=True)(cairn.tensor(x)))
    b = torch.nn.MaxUnpool2d(2)(*torch.nn.MaxPool2d(2, return_indices=True)(torch.tensor(x)))
    close(a, b)
    assert repr(nn.MaxUnpool2d(2)) == repr(torch.nn.MaxUnpool2d(2))


@needs_torch
def test_transposed_output_size():
    ours, theirs = nn.ConvTranspose2d(2, 3, 3, stride=2), torch.nn.ConvTranspose2d(2, 3, 3, stride=2)
    ours.load_state_dict({k: cairn.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    x = floats(1, 2, 4, 4)
    close(ours(cairn.tensor(x), output_size=(10, 9)), theirs(torch.tensor(x), output_size=(10, 9)))
    with pytest.raises(ValueError, match="requested an output size"):
        ours(cairn.tensor(x), output_size=(20, 9))


# ---- attention and transformers ----


@needs_torch
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("average", [True, False])
def test_attention_masks(need_weights, average):
    mask = np.triu(np.ones((4, 5), bool), 2)
    padding = np.zeros((3, 5), bool)
    padding[1, 4] = True
    compare(lambda n: n.MultiheadAttention(8, 2), floats(4, 3, 8), floats(5, 3, 8), floats(5, 3, 8), attn_mask=mask,
            key_padding_mask=padding, need_weights=need_weights, average_attn_weights=average)


@needs_torch
def test_attention_causal():
    mask = np.triu(np.full((4, 4), -np.inf, np.float32), 1)
    x = floats(4, 3, 8)
    compare(lambda n: n.MultiheadAttention(8, 2), x, x, x, attn_mask=mask, is_causal=True, need_weights=False)
    each = np.zeros((6, 4, 4), np.float32)
    each[1] = -1
    compare(lambda n: n.MultiheadAttention(8, 2), x, x, x, attn_mask=each)


@needs_torch
@pytest.mark.parametrize("options", [{}, {"norm_first": True, "batch_first": True},
                                     {"activation": "gelu", "bias": False}])
def test_encoder(options):
    def make(n):
        layer = n.TransformerEncoderLayer(8, 2, 16, dropout=0.0, **options)
        return n.TransformerEncoder(layer, 2, n.LayerNorm(8), enable_nested_tensor=False)

    ours, theirs = compare(make, floats(4, 3, 8))
    mask = np.triu(np.ones((4, 4), bool), 1)
    x = floats(4, 4, 8)
    close(ours(cairn.tensor(x), mask=cairn.tensor(mask)), theirs(torch.tensor(x), mask=torch.tensor(mask)))


@needs_torch
@pytest.mark.parametrize("norm_first", [False, True])
def test_transformer(norm_first):
    compare(lambda n: n.Transformer(8, 2, 2, 1, 16, dropout=0.0, norm_first=norm_first), floats(4, 3, 8),
            floats(5, 3, 8),
            tgt_mask=np.triu(np.full((5, 5), -np.inf, np.float32), 1), tolerance=5e-5)
    close(nn.Transformer.generate_square_subsequent_mask(3), torch.nn.Transformer.generate_square_subsequent_mask(3))


# ---- recurrent layers ----


@needs_torch
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("options", [{}, {"bidirectional": True, "num_layers": 2}])
def test_packed(kind, options):
    np.random.seed(1)
    lengths, x = [3, 5, 1], floats(5, 3, 2)
    ours, theirs = getattr(nn, kind)(2, 4, **options), getattr(torch.nn, kind)(2, 4, **options)
    ours.load_state_dict({k: cairn.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    results = []
    for layer, rnn, value in ((ours, nn.utils.rnn, both(x)[0]), (theirs, torch.nn.utils.rnn, both(x)[1])):
        packed = rnn.pack_padded_sequence(value, lengths, enforce_sorted=False)
        y, state = layer(packed)
        padded, n = rnn.pad_packed_sequence(y, total_length=6)
        loss = total((padded, state))
        loss.backward()
        results.append(((padded, n, state, packed.data, packed.batch_sizes), value.grad,
                        [p.grad for p in layer.parameters()]))
    for a, b in zip(*results):
        close(a, b, 3e-5)


@needs_torch
def test_packed_projection():
    lengths, x, h0, c0 = [2, 5, 4], floats(3, 5, 2), floats(2, 3, 2), floats(2, 3, 4)
    options = {"bidirectional": True, "proj_size": 2, "batch_first": True}
    ours, theirs = nn.LSTM(2, 4, **options), torch.nn.LSTM(2, 4, **options)
    ours.load_state_dict({k: cairn.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    results = []
    for layer, rnn, make in ((ours, nn.utils.rnn, cairn.tensor), (theirs, torch.nn.utils.rnn, torch.tensor)):
        packed = rnn.pack_padded_sequence(make(x), lengths, batch_first=True, enforce_sorted=False)
        y, states = layer(packed, (make(h0), make(c0)))
        results.append((rnn.pad_packed_sequence(y, batch_first=True)[0], states))
    close(*results)


@needs_torch
def test_sequences():
    parts = [floats(n, 2) for n in (4, 2, 3)]
    ours, theirs = [cairn.tensor(p) for p in parts], [torch.tensor(p) for p in parts]
    for options in ({}, {"batch_first": True, "padding_value": -1.0}, {"padding_side": "left"}):
        close(nn.utils.rnn.pad_sequence(ours, **options), torch.nn.utils.rnn.pad_sequence(theirs, **options))
    a = nn.utils.rnn.pack_sequence(ours, enforce_sorted=False)
    b = torch.nn.utils.rnn.pack_sequence(theirs, enforce_sorted=False)
    close(tuple(a), tuple(b))
    close(nn.utils.rnn.unpack_sequence(a), torch.nn.utils.rnn.unpack_sequence(b))
    with pytest.raises(RuntimeError, match="sorted in decreasing order"):
        nn.utils.rnn.pack_padded_sequence(cairn.zeros(3, 2, 1), [1, 3])


def test_recurrent_errors():
    lstm = nn.LSTM(3, 4)
    with pytest.raises(RuntimeError, match=r"Expected hidden\[0\] size \(1, 2, 4\), got \[1, 5, 4\]"):
        lstm(cairn.zeros(6, 2, 3), (cairn.zeros(1, 5, 4), cairn.zeros(1, 2, 4)))
    with pytest.raises(RuntimeError, match="Expected 3, got 2"):
        lstm(cairn.zeros(6, 2, 2))
    with pytest.raises(ValueError, match="proj_size has to be smaller"):
        nn.LSTM(3, 4, proj_size=4)


# ---- Module ----


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(3, 4)
        self.down = nn.Linear(4, 2)
        self.scale = nn.Parameter(cairn.ones(2))
        self.register_buffer("steps", cairn.tensor(0))
        self.register_buffer("hidden", cairn.zeros(2), persistent=False)

    def forward(self, x):
        return self.down(F.relu(self.up(x))) * self.scale


def test_parts():
    m = Net()
    assert [n for n, _ in m.named_parameters()] == ["scale", "up.weight", "up.bias", "down.weight", "down.bias"]
    assert [n for n, _ in m.named_buffers()] == ["steps", "hidden"]
    assert [n for n, _ in m.named_children()] == ["up", "down"]
    assert [n for n, _ in m.named_modules()] == ["", "up", "down"]
    assert list(m.state_dict()) == ["scale", "steps", "up.weight", "up.bias", "down.weight", "down.bias"]
    assert m.get_submodule("up") is m.up and m.get_parameter("up.bias") is m.up.bias
    assert m.get_buffer("steps") is m.steps
    assert "scale" in dir(m) and "up" in dir(m)
    assert len(list(m.parameters(recurse=False))) == 1
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'other'"):
        m.other
    with pytest.raises(TypeError, match="cannot assign"):
        m.scale = 3
    with pytest.raises(KeyError, match="already exists"):
        m.register_buffer("forward", cairn.zeros(1))
    del m.scale
    assert not hasattr(m, "scale")
    m.scale = cairn.zeros(1)
    assert "scale" not in m._parameters and "scale" not in m._buffers
    m.extra = nn.Buffer(cairn.zeros(1), persistent=False)
    assert "extra" in m._buffers and "extra" not in m.state_dict()


def test_shared_parameters_count_once():
    m = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    m[1].weight = m[0].weight
    assert len(list(m.parameters())) == 3
    assert len(list(m.named_parameters(remove_duplicate=False))) == 4
    assert list(m.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]


def test_assignment_before_init():
    class Early(nn.Module):
        def __init__(self):
            self.weight = nn.Parameter(cairn.zeros(1))

    with pytest.raises(AttributeError, match="cannot assign parameters before Module.__init__"):
        Early()


def test_parameter_is_a_new_leaf():
    x = cairn.ones(3)
    p = nn.Parameter(x)
    assert isinstance(p, cairn.Tensor) and isinstance(p, nn.Parameter)
    assert p.requires_grad and p.is_leaf and not x.requires_grad
    assert repr(p) == "Parameter containing:\ntensor([1., 1., 1.], requires_grad=True)"
    assert not nn.Parameter(x, requires_grad=False).requires_grad
    (p * 2).sum().backward()
    assert p.grad.tolist() == [2, 2, 2]
    q = copy.deepcopy(p)
    assert isinstance(q, nn.Parameter) and q is not p and q.tolist() == p.tolist()
    assert isinstance(pickle.loads(pickle.dumps(p)), nn.Parameter)
    y = p * 2
    assert not isinstance(y, nn.Parameter)


def test_load_errors():
    m = nn.Linear(3, 2)
    with pytest.raises(RuntimeError) as error:
        m.load_state_dict({"weight": cairn.zeros(2, 4), "more": cairn.zeros(1)})
    text = str(error.value)
    assert text.startswith("Error(s) in loading state_dict for Linear:\n\t")
    assert 'Missing key(s) in state_dict: "bias". ' in text
    assert 'Unexpected key(s) in state_dict: "more". ' in text
    assert "size mismatch for weight: copying a param with shape" in text
    found = m.load_state_dict({"weight": cairn.zeros(2, 3), "more": cairn.zeros(1)}, strict=False)
    assert found.missing_keys == ["bias"] and found.unexpected_keys == ["more"]
    assert m.weight.tolist() == [[0, 0, 0], [0, 0, 0]]
    assert repr(m.load_state_dict(m.state_dict())) == "<All keys matched successfully>"
    with pytest.raises(TypeError, match="dict-like"):
        m.load_state_dict([1])


def test_load_keeps_the_object_and_assign_replaces_it():
    m = nn.Linear(3, 2)
    old = m.weight
    given = {"weight": cairn.ones(2, 3), "bias": cairn.zeros(2)}
    m.load_state_dict(given)
    assert m.weight is old and old.sum().item() == 6
    m.load_state_dict({k: v.double() for k, v in given.items()}, assign=True)
    assert m.weight is not old and m.weight.dtype == cairn.float64 and isinstance(m.weight, nn.Parameter)


def test_state_dict_is_detached_and_prefixed():
    m = nn.Linear(2, 2)
    state = m.state_dict(prefix="a.")
    assert list(state) == ["a.weight", "a.bias"] and not state["a.weight"].requires_grad
    assert state._metadata["a"] == {"version": 1}
    assert m.state_dict(keep_vars=True)["weight"] is m.weight


def test_state_dict_hooks_and_extra_state():
    class Counted(nn.Linear):
        count = 7

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    m = Counted(2, 2)
    seen = []
    m.register_state_dict_pre_hook(lambda module, prefix, keep: seen.append("pre"))
    m.register_state_dict_post_hook(lambda module, state, prefix, meta: seen.append("post"))
    m.register_load_state_dict_pre_hook(lambda module, state, *rest: seen.append("load"))
    m.register_load_state_dict_post_hook(lambda module, keys: seen.append("loaded"))
    state = m.state_dict()
    m.count = 0
    m.load_state_dict(state)
    assert m.count == 7 and seen == ["pre", "post", "load", "loaded"]


def test_modes_types_and_gradients():
    m = Net()
    assert m.training and not m.eval().training and not m.up.training and m.train() is m
    m(cairn.ones(1, 3)).sum().backward()
    assert m.up.weight.grad is not None
    m.zero_grad()
    assert m.up.weight.grad is None
    weight = m.up.weight
    assert m.double().up.weight.dtype == cairn.float64 and m.up.weight is weight
    assert m.steps.dtype == cairn.int64 and m.hidden.dtype == cairn.float64
    assert m(cairn.ones(1, 3, dtype=cairn.float64)).dtype == cairn.float64
    assert m.to(cairn.float16).scale.dtype == cairn.float16
    assert m.to("cpu", cairn.float32).scale.dtype == cairn.float32
    assert m.bfloat16().scale.dtype == cairn.bfloat16 and m.float().scale.dtype == cairn.float32
    assert m.to(cairn.zeros(1, dtype=cairn.float64)).scale.dtype == cairn.float64
    with pytest.raises(TypeError):
        m.to(cairn.int64)
    m.requires_grad_(False)
    assert not any(p.requires_grad for p in m.parameters())
    names = []
    assert m.apply(lambda module: names.append(type(module).__name__)) is m
    assert names == ["Linear", "Linear", "Net"]
    assert m.compile() is m


def test_gradients_survive_a_change_of_type():
    m = nn.Linear(2, 1)
    m(cairn.ones(1, 2)).sum().backward()
    m.double()
    assert m.weight.grad.dtype == cairn.float64 and m.weight.grad.tolist() == [[1, 1]]


def test_copies_and_pickles():
    m = Net()
    m.register_forward_hook(forward_hook)
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert other is not m and other.up is not m.up
        x = cairn.ones(2, 3)
        assert other(x).tolist() == m(x).tolist()
        with cairn.no_grad():
            other.up.weight.zero_()
        assert m.up.weight.abs().sum().item() != 0
    tied = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    tied[1].weight = tied[0].weight
    other = copy.deepcopy(tied)
    assert other[1].weight is other[0].weight


def forward_hook(module, args, output):
    return None


def test_forward_hooks():
    m, seen = nn.Linear(2, 2), []
    first = m.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    second = m.register_forward_hook(lambda module, args, output: seen.append(args[0].tolist()) or output + 1)
    x = cairn.ones(1, 2)
    y = m(x)
    assert seen == [[[2, 2]]]
    first.remove()
    with second:
        pass
    assert not m._forward_hooks and not m._forward_pre_hooks
    np.testing.assert_allclose(array(m(x * 2) + 1), array(y), rtol=1e-6)
    m.register_forward_pre_hook(lambda module, args, kwargs: (args, {"input": kwargs["input"] * 3}), with_kwargs=True)
    m.register_forward_hook(lambda module, args, kwargs, out: (kwargs["input"], out), with_kwargs=True)
    assert m(input=x)[0].tolist() == [[3, 3]]


def test_hooks_order_and_always_call():
    m, seen = nn.Identity(), []
    m.register_forward_hook(lambda *a: seen.append("b"))
    m.register_forward_hook(lambda *a: seen.append("a"), prepend=True)
    m(cairn.ones(1))
    assert seen == ["a", "b"]

    class Fails(nn.Module):
        def forward(self):
            raise ValueError("no")

    m, seen = Fails(), []
    m.register_forward_hook(lambda *a: seen.append("always"), always_call=True)
    m.register_forward_hook(lambda *a: seen.append("never"))
    with pytest.raises(ValueError):
        m()
    assert seen == ["always"]


def test_hooks_of_all_modules():
    seen = []
    with nn.modules.module.register_module_forward_hook(lambda m, args, out: seen.append(type(m).__name__)):
        nn.Sequential(nn.ReLU(), nn.Tanh())(cairn.ones(1))
    nn.ReLU()(cairn.ones(1))
    assert seen == ["ReLU", "Tanh", "Sequential"]


@needs_torch
def test_backward_hooks():
    results, state = [], {k: v.numpy() for k, v in nn.Bilinear(2, 3, 2).state_dict().items()}
    for library, layers in ((cairn, nn), (torch, torch.nn)):
        seen = []
        m = layers.Bilinear(2, 3, 2)
        m.load_state_dict({k: library.tensor(v) for k, v in state.items()})
        m.register_full_backward_pre_hook(lambda module, grads: (grads[0] * 2,))
        m.register_full_backward_hook(
            lambda module, into, out: seen.append([g.tolist() for g in into + out]) or (into[0] * 10, into[1]))
        a = library.tensor([[1.0, 2]], requires_grad=True)
        b = library.tensor([[3.0, 4, 5]], requires_grad=True)
        (m(a, b) * library.tensor([1.0, 3])).sum().backward()
        results.append(seen[0] + [a.grad.tolist(), b.grad.tolist(), m.weight.grad.tolist()])
    for x, y in zip(*results):
        np.testing.assert_allclose(x, y, rtol=1e-4)


def test_backward_hook_without_gradients_of_inputs():
    m, seen = nn.Linear(2, 1), []
    m.register_full_backward_hook(lambda module, into, out: seen.append((into, out[0].tolist())))
    m(cairn.ones(1, 2)).sum().backward()
    assert seen == [((None,), [[1.0]])]


def test_functional_call():
    m = nn.Linear(2, 2)
    state = {"weight": cairn.ones(2, 2), "bias": cairn.zeros(2)}
    y = nn.utils.stateless.functional_call(m, state, cairn.ones(1, 2))
    assert y.tolist() == [[2, 2]] and m.weight is not state["weight"]


def test_modules_leave_nothing():
    def use():
        m = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))
        m.register_full_backward_hook(lambda module, into, out: None)
        x = cairn.randn(5, 3, requires_grad=True)
        m(x).sum().backward()
        return [weakref.ref(o) for o in (m, m[0], m[0].weight, m[1].running_mean, x)]

    refs = use()
    gc.collect()
    assert [r() for r in refs] == [None] * len(refs)


def test_layers_without_hooks_need_no_collector():
    gc.disable()
    try:
        m = nn.Linear(3, 2)
        refs = [weakref.ref(m), weakref.ref(m.weight)]
        m(cairn.ones(1, 3)).sum().backward()
        del m
        assert [r() for r in refs] == [None, None]
    finally:
        gc.enable()


def test_notebook_text():
    assert "8 parameters" in nn.Linear(3, 2)._repr_html_() and "in_features=3" in nn.Linear(3, 2)._repr_html_()


# ---- containers ----


def test_sequential():
    m = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    assert len(m) == 3 and isinstance(m[1], nn.ReLU) and m[-1] is m[2] and len(m[:2]) == 2
    m.append(nn.Tanh()).insert(1, nn.Dropout(0.0))
    assert [type(x).__name__ for x in m] == ["Linear", "Dropout", "ReLU", "Linear", "Tanh"]
    del m[1]
    assert list(m._modules) == ["0", "1", "2", "3"] and isinstance(m.pop(-1), nn.Tanh)
    assert len(m + nn.Sequential(nn.ReLU())) == 4 and len(m * 2) == 6
    m[1] = nn.Sigmoid()
    assert isinstance(m[1], nn.Sigmoid)
    assert m(cairn.ones(4, 2)).shape == (4, 1)
    named = nn.Sequential(OrderedDict([("first", nn.Linear(2, 2)), ("second", nn.ReLU())]))
    assert list(named.state_dict()) == ["first.weight", "first.bias"] and isinstance(named.second, nn.ReLU)
    with pytest.raises(IndexError):
        m[10]
    with pytest.raises(TypeError):
        nn.Sequential(3)


def test_module_list():
    m = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
    m += [nn.ReLU()]
    m.insert(0, nn.Tanh())
    assert len(m) == 5 and isinstance(m[0], nn.Tanh) and isinstance(m[-1], nn.ReLU) and len(m[1:4]) == 3
    del m[0]
    assert list(m._modules) == ["0", "1", "2", "3"]
    assert len(m + nn.ModuleList([nn.ReLU()])) == 5
    del m[1:3]
    assert len(m) == 2
    with pytest.raises(NotImplementedError, match="missing the required"):
        m(1)


def test_module_dict():
    m = nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.ReLU()})
    m["c"] = nn.Tanh()
    m.update([("d", nn.Sigmoid())])
    assert list(m) == ["a", "b", "c", "d"] and "c" in m and len(m) == 4
    assert isinstance(m.pop("c"), nn.Tanh) and list(m.keys()) == ["a", "b", "d"]
    assert [type(v).__name__ for v in m.values()] == ["Linear", "ReLU", "Sigmoid"]


@needs_torch
def test_parameter_lists_and_dicts():
    for library, layers in ((cairn, nn), (torch, torch.nn)):
        p = layers.ParameterList([layers.Parameter(library.zeros(2)), library.zeros(3)])
        p.append(layers.Parameter(library.ones(1)))
        assert len(p) == 3 and isinstance(p[1], layers.Parameter) and len(p[1:]) == 2
        d = layers.ParameterDict({"b": library.zeros(2, 2), "a": layers.Parameter(library.zeros(1))})
        d["c"] = layers.Parameter(library.zeros(3))
        assert list(p.state_dict()) == ["0", "1", "2"] and list(d.state_dict()) == ["a", "b", "c"]
        assert d.pop("b").shape == (2, 2) and "b" not in d and [k for k, _ in d.items()] == ["a", "c"]
    ours = nn.ParameterList([nn.Parameter(cairn.zeros(2))])
    theirs = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(2))])
    assert repr(ours).replace("cairn.", "torch.") == repr(theirs)
    ours, theirs = nn.ParameterDict({"w": cairn.zeros(2, 3)}), torch.nn.ParameterDict({"w": torch.zeros(2, 3)})
    assert repr(ours).replace("cairn.", "torch.") == repr(theirs)


@needs_torch
def test_texts_of_trees():
    def make(n):
        return n.Sequential(n.Linear(2, 3), n.ModuleList([n.ReLU(), n.ReLU(), n.Tanh()]),
                            n.ModuleDict({"x": n.Sequential(n.Dropout(0.1)), "y": n.Identity()}), n.ModuleList())

    assert repr(make(nn)) == repr(make(torch.nn))
    assert repr(nn.Transformer(8, 2, 2, 2, 8)) == repr(torch.nn.Transformer(8, 2, 2, 2, 8))


# ---- tools ----


@needs_torch
@pytest.mark.parametrize("norm", [2.0, 1.0, float("inf")])
def test_clip(norm):
    grads = [floats(3, 2), floats(4)]
    results = []
    for library, layers in ((cairn, nn), (torch, torch.nn)):
        ps = [layers.Parameter(library.zeros(*g.shape)) for g in grads]
        for p, g in zip(ps, grads):
            p.grad = library.tensor(g)
        total_norm = layers.utils.clip_grad_norm_(ps, 0.5, norm)
        clipped = [p.grad.tolist() for p in ps]
        layers.utils.clip_grad_value_(ps, 0.05)
        results.append((total_norm.item(), *clipped, *(p.grad.tolist() for p in ps)))
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_vectors():
    m = nn.Linear(2, 3)
    v = nn.utils.parameters_to_vector(m.parameters())
    assert v.shape == (9,)
    nn.utils.vector_to_parameters(cairn.arange(9, dtype=cairn.float32), m.parameters())
    assert m.weight.tolist() == [[0, 1], [2, 3], [4, 5]] and m.bias.tolist() == [6, 7, 8] and m.weight.requires_grad


@needs_torch
@pytest.mark.filterwarnings("ignore")
def test_weight_norm():
    x = floats(4, 3)
    ours, theirs = nn.utils.weight_norm(nn.Linear(3, 2)), torch.nn.utils.weight_norm(torch.nn.Linear(3, 2))
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict({k: cairn.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    a, b = ours(cairn.tensor(x)), theirs(torch.tensor(x))
    close(a, b)
    total(a).backward()
    total(b).backward()
    close([p.grad for p in ours.parameters()], [p.grad for p in theirs.parameters()])
    nn.utils.remove_weight_norm(ours)
    assert sorted(n for n, _ in ours.named_parameters()) == ["bias", "weight"]
    close(ours(cairn.tensor(x)), b)


@needs_torch
@pytest.mark.filterwarnings("ignore")
def test_spectral_norm():
    x = floats(4, 3)
    ours, theirs = nn.utils.spectral_norm(nn.Linear(3, 2)), torch.nn.utils.spectral_norm(torch.nn.Linear(3, 2))
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict({k: cairn.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    for _ in range(2):
        close(ours(cairn.tensor(x)), theirs(torch.tensor(x)))
    total(ours(cairn.tensor(x))).backward()
    total(theirs(torch.tensor(x))).backward()
    close([p.grad for p in ours.parameters()], [p.grad for p in theirs.parameters()])


@needs_torch
def test_parametrizations():
    x = floats(4, 3)
    for name in ("weight_norm", "spectral_norm"):
        ours = getattr(nn.utils.parametrizations, name)(nn.Linear(3, 2))
        theirs = getattr(torch.nn.utils.parametrizations, name)(torch.nn.Linear(3, 2))
        assert list(ours.state_dict()) == list(theirs.state_dict())
        ours.load_state_dict({k: cairn.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
        close(ours(cairn.tensor(x)), theirs(torch.tensor(x)))
    m = nn.utils.parametrizations.orthogonal(nn.Linear(4, 3))
    np.testing.assert_allclose(array(m.weight @ m.weight.t()), np.eye(3), atol=1e-5)
    nn.utils.parametrize.remove_parametrizations(m, "weight")
    assert type(m) is nn.Linear and isinstance(m.weight, nn.Parameter)


def test_fusion():
    conv, norm = nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)
    norm(conv(cairn.randn(4, 2, 6, 6)))
    conv.eval()
    norm.eval()
    x = cairn.randn(2, 2, 6, 6)
    np.testing.assert_allclose(array(nn.utils.fuse_conv_bn_eval(conv, norm)(x)), array(norm(conv(x))), atol=1e-5)


def test_parallel():
    m = nn.DataParallel(nn.Linear(2, 2))
    assert list(m.state_dict()) == ["module.weight", "module.bias"] and m(cairn.ones(1, 2)).shape == (1, 2)
    state = m.state_dict()
    nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == ["weight", "bias"]
    with pytest.raises(NotImplementedError):
        nn.parallel.DistributedDataParallel(m)


def test_sync_batch_norm():
    m = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2)))
    assert isinstance(m[1], nn.SyncBatchNorm) and m(cairn.randn(2, 1, 3, 3)).shape == (2, 2, 3, 3)


@pytest.mark.parametrize("make", [lambda: nn.LazyLinear(3), lambda: nn.LazyConv2d(3, 3), lambda: nn.LazyBatchNorm1d(),
                                  lambda: nn.FractionalMaxPool2d(2, 2)])
def test_what_is_not_there_says_so(make):
    with pytest.raises(NotImplementedError, match="nn."):
        make()


@needs_torch
def test_every_name_of_pytorch():
    """Every class and function of torch.nn has a counterpart, except those named here."""
    missing = [n for n in dir(torch.nn) if n[0].isupper() and not hasattr(nn, n)]
    assert set(missing) <= {"LinearCrossEntropyLoss", "LinearCrossEntropyOptions"}
