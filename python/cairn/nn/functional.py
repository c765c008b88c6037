"""PyTorch's torch.nn.functional: layers without state, losses, and what else takes and returns tensors.

Most functions are operators of Cairn under PyTorch's names. ``inplace`` is accepted everywhere: a value never changes,
so the result is a new tensor; where PyTorch would overwrite the input, the input object gets the new value.
"""

import math
import warnings

import cairn
from cairn import _C

from ._losses import *  # noqa: F403
from ._losses import _reduction  # noqa: F401
from .modules.utils import _list_with_default, _single

# ---- helpers ----


def _into(input, result, inplace):
    """The result, or with inplace the input, which gets its value."""
    return input.copy_(result) if inplace else result


def _probability(p):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return p


# ---- linear, convolutions ----

linear = _C.linear


def bilinear(input1, input2, weight, bias=None):
    """y_o = x1 · W_o · x2 + b_o; weight (out, in1, in2)."""
    # (.., in1) · (in1, out·in2) -> (.., out, in2), then · (.., in2, 1)
    out, in1, in2 = weight.shape
    left = input1.matmul(weight.permute(1, 0, 2).reshape(in1, out * in2))
    left = left.reshape(*input1.shape[:-1], out, in2)
    result = left.matmul(input2.unsqueeze(-1)).squeeze(-1)
    return result if bias is None else result + bias


def _convolution(function, axes):
    def conv(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        if not isinstance(padding, str):
            return function(input, weight, bias, stride, padding, dilation, groups)
        if padding == "valid":
            return function(input, weight, bias, stride, 0, dilation, groups)
        if padding != "same":
            raise RuntimeError(f"Invalid padding string: '{padding}'")
        strides = stride if hasattr(stride, "__iter__") else (stride,)
        if any(s != 1 for s in strides):
            raise RuntimeError("padding='same' is not supported for strided convolutions")
        dilations = tuple(dilation) if hasattr(dilation, "__iter__") else (dilation,) * axes
        if len(dilations) == 1:
            dilations *= axes
        total = [d * (k - 1) for d, k in zip(dilations, weight.shape[-axes:])]
        if any(t % 2 for t in total):  # an uneven rest goes behind the end
            pairs = [n for t in reversed(total) for n in (t // 2, t - t // 2)]
            return function(_C.pad(input, pairs), weight, bias, 1, 0, dilation, groups)
        return function(input, weight, bias, 1, [t // 2 for t in total], dilation, groups)

    conv.__name__ = conv.__qualname__ = f"conv{axes}d"
    return conv


conv1d = _convolution(_C.conv1d, 1)
conv2d = _convolution(_C.conv2d, 2)
conv3d = _convolution(_C.conv3d, 3)
conv_transpose1d = _C.conv_transpose1d
conv_transpose2d = _C.conv_transpose2d
conv_transpose3d = _C.conv_transpose3d


def conv_tbc(input, weight, bias, pad=0):
    """conv1d of (T, B, C) with weight (k, in, out)."""
    return conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    return _C.im2col(input, kernel_size, dilation, padding, stride)


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    return _C.col2im(input, output_size, kernel_size, dilation, padding, stride)


# ---- pooling ----


def _max_pooling(plain, both, name):
    def with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=True):
        return both(input, kernel_size, stride or None, padding, dilation, ceil_mode)

    def pool(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        return (both if return_indices else plain)(input, kernel_size, stride or None, padding, dilation, ceil_mode)

    pool.__name__ = pool.__qualname__ = name
    with_indices.__name__ = with_indices.__qualname__ = name + "_with_indices"
    return pool, with_indices


max_pool1d, max_pool1d_with_indices = _max_pooling(_C.max_pool1d, _C.max_pool1d_with_indices, "max_pool1d")
max_pool2d, max_pool2d_with_indices = _max_pooling(_C.max_pool2d, _C.max_pool2d_with_indices, "max_pool2d")
max_pool3d, max_pool3d_with_indices = _max_pooling(_C.max_pool3d, _C.max_pool3d_with_indices, "max_pool3d")


def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    return _C.avg_pool1d(input, kernel_size, stride or None, padding, ceil_mode, count_include_pad)


def avg_pool2d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
               divisor_override=None):
    return _C.avg_pool2d(input, kernel_size, stride or None, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
               divisor_override=None):
    return _C.avg_pool3d(input, kernel_size, stride or None, padding, ceil_mode, count_include_pad, divisor_override)


def adaptive_avg_pool1d(input, output_size):
    return _C.adaptive_avg_pool1d(input, _single(output_size)[0])


def adaptive_avg_pool2d(input, output_size):
    return _C.adaptive_avg_pool2d(input, _list_with_default(output_size, input.shape))


def adaptive_avg_pool3d(input, output_size):
    return _C.adaptive_avg_pool3d(input, _list_with_default(output_size, input.shape))


def adaptive_max_pool1d_with_indices(input, output_size, return_indices=True):
    return _C.adaptive_max_pool1d_with_indices(input, _single(output_size)[0])


def adaptive_max_pool1d(input, output_size, return_indices=False):
    function = _C.adaptive_max_pool1d_with_indices if return_indices else _C.adaptive_max_pool1d
    return function(input, _single(output_size)[0])


def adaptive_max_pool2d_with_indices(input, output_size, return_indices=True):
    return _C.adaptive_max_pool2d_with_indices(input, _list_with_default(output_size, input.shape))


def adaptive_max_pool2d(input, output_size, return_indices=False):
    function = _C.adaptive_max_pool2d_with_indices if return_indices else _C.adaptive_max_pool2d
    return function(input, _list_with_default(output_size, input.shape))


def adaptive_max_pool3d_with_indices(input, output_size, return_indices=True):
    return _C.adaptive_max_pool3d_with_indices(input, _list_with_default(output_size, input.shape))


def adaptive_max_pool3d(input, output_size, return_indices=False):
    function = _C.adaptive_max_pool3d_with_indices if return_indices else _C.adaptive_max_pool3d
    return function(input, _list_with_default(output_size, input.shape))


def _unpooling(function, name, axes):
    def unpool(input, indices, kernel_size, stride=None, padding=0, output_size=None):
        if output_size is not None and len(output_size) == axes + 2:
            output_size = output_size[2:]
        return function(input, indices, kernel_size, stride or None, padding,
                        None if output_size is None else list(output_size))

    unpool.__name__ = unpool.__qualname__ = name
    return unpool


max_unpool1d = _unpooling(_C.max_unpool1d, "max_unpool1d", 1)
max_unpool2d = _unpooling(_C.max_unpool2d, "max_unpool2d", 2)
max_unpool3d = _unpooling(_C.max_unpool3d, "max_unpool3d", 3)


def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    return _C.lp_pool1d(input, norm_type, kernel_size, stride or None, ceil_mode)


def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    return _C.lp_pool2d(input, norm_type, kernel_size, stride or None, ceil_mode)


def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    return _C.lp_pool3d(input, norm_type, kernel_size, stride or None, ceil_mode)


def _no_fractional(name, instead):
    def missing(*args, **kwargs):
        raise NotImplementedError(f"{name}: windows at random places; the nearest is {instead}")

    missing.__name__ = missing.__qualname__ = name
    return missing


fractional_max_pool2d = _no_fractional("fractional_max_pool2d", "adaptive_max_pool2d")
fractional_max_pool3d = _no_fractional("fractional_max_pool3d", "adaptive_max_pool3d")
fractional_max_pool2d_with_indices = _no_fractional("fractional_max_pool2d_with_indices",
                                                    "adaptive_max_pool2d_with_indices")
fractional_max_pool3d_with_indices = _no_fractional("fractional_max_pool3d_with_indices",
                                                    "adaptive_max_pool3d_with_indices")

# ---- activations ----


def relu(input, inplace=False):
    return _into(input, _C.relu(input), True) if inplace else _C.relu(input)


def relu6(input, inplace=False):
    return _into(input, _C.hardtanh(input, 0.0, 6.0), inplace)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    return _into(input, _C.leaky_relu(input, negative_slope), inplace)


def elu(input, alpha=1.0, inplace=False):
    return _into(input, _C.elu(input, alpha), inplace)


def celu(input, alpha=1.0, inplace=False):
    return _into(input, _C.celu(input, alpha), inplace)


def selu(input, inplace=False):
    return _into(input, _C.selu(input), inplace)


def silu(input, inplace=False):
    return _into(input, _C.silu(input), inplace)


def mish(input, inplace=False):
    return _into(input, _C.mish(input), inplace)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _into(input, _C.hardtanh(input, min_val, max_val), inplace)


def hardsigmoid(input, inplace=False):
    return _into(input, _C.hardsigmoid(input), inplace)


def hardswish(input, inplace=False):
    return _into(input, _C.hardswish(input), inplace)


def threshold(input, threshold, value, inplace=False):
    """x where it is above the threshold, else the value."""
    return _into(input, _C.where(input > threshold, input, _full_as(input, value)), inplace)


def _full_as(input, value):
    return cairn.full((), value, dtype=input.dtype, device=input.device)


def gelu(input, approximate="none"):
    if approximate == "none":
        return _C.gelu(input)
    if approximate == "tanh":
        return _C.gelu_tanh(input)
    raise RuntimeError("approximate argument must be either none or tanh.")


def prelu(input, weight):
    """x where it is positive, else weight·x; weight has one element, or one for each index of axis 1."""
    if weight.numel() != 1:
        if input.dim() == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input.shape[1] if input.dim() > 1 else 1
        if weight.dim() == 1 and weight.numel() != channels:
            raise RuntimeError(f"Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                               f"{weight.numel()} and channel size = {channels}.")
        shape = [1] * input.dim()
        shape[1 if input.dim() > 1 else 0] = weight.numel()
        weight = weight.reshape(shape)
    return _C.where(input > 0, input, weight.reshape(()) * input if weight.numel() == 1 else weight * input)


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """Below 0 each element has a slope of its own: drawn from [lower, upper) in training, else their mean."""
    if lower > upper:
        raise ValueError(f"Lower bound should be less than or equal to the upper bound, got {lower} and {upper}")
    if not training:
        return _into(input, _C.leaky_relu(input, (lower + upper) / 2), inplace)
    slope = cairn.rand_like(input) * (upper - lower) + lower
    return _into(input, _C.where(input >= 0, input, slope * input), inplace)


def glu(input, dim=-1):
    """The first half times the sigmoid of the second."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    if input.shape[dim] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {input.shape[dim]}")
    first, second = input.chunk(2, dim)
    return first * _C.sigmoid(second)


logsigmoid = _C.log_sigmoid
softsign = _C.softsign
tanh = _C.tanh
sigmoid = _C.sigmoid


def softplus(input, beta=1.0, threshold=20.0):
    return _C.softplus(input, beta, threshold)


def tanhshrink(input):
    return input - _C.tanh(input)


def softshrink(input, lambd=0.5):
    """x moved towards 0 by lambd."""
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    return input - _C.clamp(input, -lambd, lambd)


def hardshrink(input, lambd=0.5):
    """x, and 0 within ±lambd."""
    return _C.where((input >= -lambd) & (input <= lambd), _full_as(input, 0), input)


def _axis(dim, name, ndim):
    if dim is None:
        warnings.warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as "
                      "an argument.", stacklevel=4)
        return 0 if ndim in (0, 1, 3) else 1
    return dim


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    dim = dim if dim is not None else _axis(dim, "softmax", input.dim())
    return _C.softmax(input if dtype is None else input.to(dtype), dim)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    dim = dim if dim is not None else _axis(dim, "softmin", input.dim())
    return _C.softmax(-(input if dtype is None else input.to(dtype)), dim)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    dim = dim if dim is not None else _axis(dim, "log_softmax", input.dim())
    return _C.log_softmax(input if dtype is None else input.to(dtype), dim)


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """A sample of the Gumbel-softmax distribution; hard: one-hot, with the gradient of the soft sample."""
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    uniform = cairn.rand_like(logits).clamp(min=1e-20 if logits.dtype in (cairn.float32, cairn.float64) else 1e-7)
    gumbels = -(-uniform.log()).log()
    soft = _C.softmax((logits + gumbels) / tau, dim)
    if not hard:
        return soft
    index = soft.detach().argmax(dim, keepdim=True)
    one = cairn.zeros_like(logits).scatter(dim, index, 1.0)
    return one - soft.detach() + soft


def _in_place(function):
    def call(input, *args, **kwargs):
        return function(input, *args, **kwargs, inplace=True)

    call.__name__ = call.__qualname__ = function.__name__ + "_"
    call.__doc__ = f"{function.__name__}; the input gets the result."
    return call


relu_ = _in_place(relu)
leaky_relu_ = _in_place(leaky_relu)
elu_ = _in_place(elu)
celu_ = _in_place(celu)
selu_ = _in_place(selu)
rrelu_ = _in_place(rrelu)
hardtanh_ = _in_place(hardtanh)
threshold_ = _in_place(threshold)

# ---- dropout ----


def dropout(input, p=0.5, training=True, inplace=False):
    if training and p:
        return _into(input, _C.dropout(input, _probability(p), True), inplace)
    _probability(p)
    return input


def _feature_mask(input, p, axes):
    """One number for each channel: 0 with probability p, else 1/(1 - p). The first `axes` axes have channels."""
    shape = tuple(input.shape[:axes]) + (1,) * (input.dim() - axes)
    return _C.dropout(cairn.ones(shape, dtype=input.dtype, device=input.device), p, True)


def _feature_dropout(input, p, training, inplace, axes):
    _probability(p)
    if not training or p == 0:
        return input
    return _into(input, input * _feature_mask(input, p, axes), inplace)


def dropout1d(input, p=0.5, training=True, inplace=False):
    """Whole channels of (N, C, L) or (C, L)."""
    if input.dim() not in (2, 3):
        raise RuntimeError(f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. Note that "
                           "dropout1d exists to provide channel-wise dropout on inputs with 1 spatial dimension, a "
                           "channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs).")
    return _feature_dropout(input, p, training, inplace, input.dim() - 1)


def dropout2d(input, p=0.5, training=True, inplace=False):
    """Whole channels of (N, C, H, W)."""
    if input.dim() not in (3, 4):
        warnings.warn(f"dropout2d: Received a {input.dim()}-D input to dropout2d, which is deprecated and will result "
                      "in an error in a future release.", stacklevel=2)
    return _feature_dropout(input, p, training, inplace, min(2, input.dim()))


def dropout3d(input, p=0.5, training=True, inplace=False):
    """Whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    if input.dim() not in (4, 5):
        warnings.warn(f"dropout3d: Received a {input.dim()}-D input to dropout3d, which is deprecated and will result "
                      "in an error in a future release.", stacklevel=2)
    return _feature_dropout(input, p, training, inplace, 1 if input.dim() == 4 else min(2, input.dim()))


def _alpha(input, p, keep):
    """keep is 1 where an element stays, else 0; dropped ones become the limit of selu, then mean and variance are
    restored."""
    limit = -1.7580993408473766
    a = ((1 - p) * (1 + p * limit * limit)) ** -0.5
    return (input * keep + limit * (1 - keep)) * a - a * p * limit


def alpha_dropout(input, p=0.5, training=False, inplace=False):
    _probability(p)
    if not training or p == 0:
        return input
    if p == 1:
        return _into(input, input * 0, inplace)
    return _into(input, _alpha(input, p, (cairn.rand_like(input) >= p).to(input.dtype)), inplace)


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    _probability(p)
    if not training or p == 0:
        return input
    if p == 1:
        return _into(input, input * 0, inplace)
    shape = tuple(input.shape[:2]) + (1,) * (input.dim() - 2)
    keep = (cairn.rand(shape, device=input.device) >= p).to(input.dtype)
    return _into(input, _alpha(input, p, keep), inplace)


# ---- embeddings ----


def _renormalise(weight, indices, max_norm, norm_type):
    """Rows that are looked up and longer than max_norm are scaled to it, in place."""
    with cairn.no_grad():
        at = indices.reshape(-1)
        rows = _C.embedding(weight.detach(), at)
        length = rows.norm(norm_type, 1, True)
        # A row that is named twice is written twice, with the same numbers.
        weight.index_put_((at,), _C.where(length > max_norm, rows * (max_norm / (length + 1e-7)), rows))


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    if scale_grad_by_freq:
        raise NotImplementedError("embedding: scale_grad_by_freq; divide the loss by the counts of cairn.bincount")
    if padding_idx is not None:
        rows = weight.shape[0]
        if not -rows <= padding_idx < rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= rows
    if max_norm is not None:
        _renormalise(weight, input, max_norm, norm_type)
    result = _C.embedding(weight, input)
    if padding_idx is None or not weight.requires_grad:
        return result
    return _C.where((input == padding_idx).unsqueeze(-1), result.detach(), result)  # the row of padding has no gradient


def embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode="mean",
                  sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=None):
    if weight.dtype == cairn.int64 and input.is_floating_point():
        warnings.warn("Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, "
                      "...)` is deprecated, and should now be `embedding_bag(input, weight, ...)`.", stacklevel=2)
        weight, input = input, weight
    if per_sample_weights is not None and per_sample_weights.shape != input.shape:
        raise ValueError(f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must "
                         f"have the same shape as the input ({input.shape})")
    if scale_grad_by_freq:
        raise NotImplementedError("embedding_bag: scale_grad_by_freq; divide the loss by the counts of cairn.bincount")
    if max_norm is not None:
        _renormalise(weight, input, max_norm, norm_type)
    return _C.embedding_bag(weight, input, offsets, mode=mode, per_sample_weights=per_sample_weights,
                            include_last_offset=include_last_offset, padding_idx=padding_idx)


def one_hot(tensor, num_classes=-1):
    return _C.one_hot(tensor, num_classes)


# ---- normalisation ----


def _check_normalized(input, normalized_shape):
    shape = tuple(normalized_shape)
    if not shape or tuple(input.shape[-len(shape):]) != shape:
        wanted = "".join(f", {n}" for n in shape)
        raise RuntimeError(f"Given normalized_shape={list(shape)}, expected input with shape [*{wanted}], but got "
                           f"input of size{list(input.shape)}")
    return len(shape)


# An eps of 0 means the default to some operators.
def _eps(eps):
    return eps if eps > 0 else 1e-300


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05):
    return _C.layer_norm(input, _check_normalized(input, normalized_shape), weight, bias, _eps(eps))


def rms_norm(input, normalized_shape, weight=None, eps=None):
    if eps is None:
        eps = 2.220446049250313e-16 if input.dtype == cairn.float64 else 1.1920928955078125e-07
    return _C.rms_norm(input, _check_normalized(input, normalized_shape), weight, _eps(eps))


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-05):
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    return _C.group_norm(input, num_groups, weight, bias, _eps(eps))


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-05):
    if training:
        size = input.shape
        count = size[0]
        for n in size[2:]:
            count *= n
        if count == 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")
        if momentum == 0:  # running statistics stay as they are
            running_mean = running_var = None
    return _C.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, _eps(eps))


def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True,
                  momentum=0.1, eps=1e-05):
    if not use_input_stats:
        return _C.batch_norm(input, running_mean, running_var, weight, bias, False, 0.1, _eps(eps))
    space = list(range(2, input.dim()))
    count = 1
    for axis in space:
        count *= input.shape[axis]
    if count == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    if momentum and running_mean is not None:
        with cairn.no_grad():
            running_mean.copy_(running_mean * (1 - momentum) + input.mean(space).mean(0) * momentum)
            running_var.copy_(running_var * (1 - momentum) + input.var(space).mean(0) * momentum)
    return _C.instance_norm(input, weight, bias, _eps(eps))


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    if input.dim() < 3:
        raise ValueError(f"Expected 3D or higher dimensionality                          input (got {input.dim()} "
                         "dimensions)")
    return _C.local_response_norm(input, size, alpha, beta, k)


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    if not isinstance(dim, int):
        norm = input.norm(p, tuple(dim), True).clamp(min=eps)
        return input / norm
    return _C.normalize(input, p, dim, eps)


# ---- distances ----

cosine_similarity = _C.cosine_similarity


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    return _C.pairwise_distance(x1, x2, p, eps, keepdim)


def pdist(input, p=2.0):
    """The distances of all pairs of rows, i < j, in order."""
    n = input.shape[0]
    first = [i for i in range(n) for _ in range(i + 1, n)]
    second = [j for i in range(n) for j in range(i + 1, n)]
    if not first:
        return cairn.empty(0, dtype=input.dtype, device=input.device)
    first, second = (cairn.tensor(v, device=input.device) for v in (first, second))
    return (input.index_select(0, first) - input.index_select(0, second)).norm(p, 1)


# ---- shapes, padding, resizing ----

pixel_shuffle = _C.pixel_shuffle
pixel_unshuffle = _C.pixel_unshuffle
channel_shuffle = native_channel_shuffle = _C.channel_shuffle


def pad(input, pad, mode="constant", value=None):
    """pad: pairs (before, after), the last axis first."""
    if mode == "constant":
        return _C.pad(input, pad, mode, 0.0 if value is None else value)
    if value is not None and value != 0:
        raise ValueError(f'Padding mode "{mode}" doesn\'t take in value argument')
    pairs = len(pad) // 2
    if not (input.dim() in (pairs + 1, pairs + 2) and 1 <= pairs <= 3):
        raise NotImplementedError("Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now")
    return _C.pad(input, pad, mode)


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None,
                antialias=False):
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | "
                             "bicubic | trilinear")
    elif mode not in ("linear", "bilinear", "bicubic", "trilinear"):
        raise NotImplementedError(f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) for "
                                  "the modes: nearest | linear | bilinear | bicubic | trilinear | area | nearest-exact "
                                  f"(got {mode})")
    axes = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if antialias and not (mode in ("bilinear", "bicubic") and input.dim() == 4):
        raise ValueError("Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as "
                         "input")
    if size is not None:
        if recompute_scale_factor:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        size = _sizes(size, axes, input, "output shape")
    else:
        scales = tuple(scale_factor) if hasattr(scale_factor, "__iter__") else (scale_factor,) * axes
        if len(scales) != axes:
            raise ValueError(f"Input and scale_factor must have the same number of spatial dimensions, but got input "
                             f"with spatial dimensions of {list(input.shape[2:])} and scale_factor of shape "
                             f"{list(scale_factor)}.")
        scale_factor = [float(s) for s in scales]
    return _C.interpolate(input, size, scale_factor, mode.replace("-", "_"), bool(align_corners),
                          bool(recompute_scale_factor), antialias)


def _sizes(size, axes, input, what):
    size = tuple(size) if hasattr(size, "__iter__") else (size,) * axes
    if len(size) != axes:
        raise ValueError(f"Input and {what} must have the same number of spatial dimensions, but got input with "
                         f"spatial dimensions of {list(input.shape[2:])} and output size of {list(size)}. Please "
                         "provide input tensor in (N, C, d1, d2, ...,dK) format and output size in (o1, o2, ...,oK) "
                         "format.")
    return [int(n) for n in size]


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but "
                         f"got: '{mode}'")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(f"nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
                         f"'reflection', but got: '{padding_mode}'")
    if align_corners is None:
        warnings.warn("Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. "
                      "Please specify align_corners=True if the old behavior is desired. See the documentation of "
                      "grid_sample for details.", stacklevel=2)
    return _C.grid_sample(input, grid, mode, padding_mode, bool(align_corners))


def affine_grid(theta, size, align_corners=None):
    if align_corners is None:
        warnings.warn("Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. "
                      "Please specify align_corners=True if the old behavior is desired. See the documentation of "
                      "grid_sample for details.", stacklevel=2)
    return _C.affine_grid(theta, list(size), bool(align_corners))


# ---- attention ----


def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
                                 enable_gqa=False):
    if attn_mask is not None and is_causal:
        raise RuntimeError("scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    if not enable_gqa and query.dim() > 2 and query.shape[-3] != key.shape[-3] and key.shape[-3] != 1:
        raise RuntimeError(f"scaled_dot_product_attention: query has {query.shape[-3]} heads and key {key.shape[-3]}; "
                           "enable_gqa=True lets groups of heads share keys")
    return _C.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale)


def _canonical_mask(mask, mask_name, other_type, other_name, target_type, check_other=True):
    """A mask of bool, where true forbids, as numbers to add; a mask of numbers as it is."""
    if mask is None:
        return None
    if mask.dtype != cairn.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both "
                      "instead.", stacklevel=3)
    if mask.is_floating_point():
        return mask
    return cairn.zeros(mask.shape, dtype=target_type, device=mask.device).masked_fill(mask, -math.inf)


def _projected(query, key, value, wq, wk, wv, bias, packed):
    """q, k and v; where all three are the same tensor, one product with the stacked weights computes them."""
    if packed is not None and query is key and key is value:
        return linear(query, packed, bias).chunk(3, -1)
    if packed is not None:
        wq, wk, wv = packed.chunk(3)
    bq, bk, bv = (None, None, None) if bias is None else bias.chunk(3)
    return linear(query, wq, bq), linear(key, wk, bk), linear(value, wv, bv)


def multi_head_attention_forward(
        query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn,
        dropout_p, out_proj_weight, out_proj_bias, training=True, key_padding_mask=None, need_weights=True,
        attn_mask=None, use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None, v_proj_weight=None,
        static_k=None, static_v=None, average_attn_weights=True, is_causal=False):
    """query (Tq, B, E), key (Tk, B, ..), value (Tk, B, ..); without a batch (T, ..). Returns the result and the
    weights, or None."""
    batched = query.dim() == 3
    if not batched:
        same = query is key and key is value
        query = query.unsqueeze(1)
        key, value = (query, query) if same else (key.unsqueeze(1), value.unsqueeze(1))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    tq, batch, width = query.shape
    if width != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}")
    head = width // num_heads
    if head * num_heads != width:
        raise AssertionError(f"embed_dim {width} not divisible by num_heads {num_heads}")
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    key_padding_mask = _canonical_mask(key_padding_mask, "key_padding_mask",
                                       None if attn_mask is None else attn_mask.dtype, "attn_mask", query.dtype)
    causal = is_causal and key_padding_mask is None and not need_weights
    attn_mask = None if causal else _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False)

    q, k, v = _projected(query, key, value, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias,
                         None if use_separate_proj_weight else in_proj_weight)
    if attn_mask is not None:
        if attn_mask.dim() == 2:
            if tuple(attn_mask.shape) != (tq, k.shape[0]):
                raise RuntimeError(f"The shape of the 2D attn_mask is {attn_mask.shape}, but should be "
                                   f"{(tq, k.shape[0])}.")
            attn_mask = attn_mask.unsqueeze(0)
        elif attn_mask.dim() != 3:
            raise RuntimeError(f"attn_mask's dimension {attn_mask.dim()} is not supported")
        elif tuple(attn_mask.shape) != (batch * num_heads, tq, k.shape[0]):
            raise RuntimeError(f"The shape of the 3D attn_mask is {attn_mask.shape}, but should be "
                               f"{(batch * num_heads, tq, k.shape[0])}.")
    added = 0
    if bias_k is not None and bias_v is not None:
        k = _C.cat([k, bias_k.expand(1, batch, bias_k.shape[-1])])
        v = _C.cat([v, bias_v.expand(1, batch, bias_v.shape[-1])])
        added += 1

    def heads(x):  # (T, B, E) -> (B, heads, T, E/heads)
        return x.reshape(x.shape[0], batch, num_heads, head).permute(1, 2, 0, 3)

    q = heads(q)
    k = heads(k) if static_k is None else static_k.reshape(batch, num_heads, -1, head)
    v = heads(v) if static_v is None else static_v.reshape(batch, num_heads, -1, head)
    if add_zero_attn:
        zero = cairn.zeros((batch, num_heads, 1, head), dtype=k.dtype, device=k.device)
        k, v = _C.cat([k, zero], 2), _C.cat([v, zero], 2)
        added += 1
    tk = k.shape[2]
    mask = None  # broadcasts to (B, heads, Tq, Tk)
    if attn_mask is not None:
        attn_mask = _C.pad(attn_mask, [0, added]) if added else attn_mask
        mask = attn_mask.unsqueeze(0) if attn_mask.shape[0] == 1 else attn_mask.reshape(batch, num_heads, tq, tk)
    if key_padding_mask is not None:
        key_padding_mask = _C.pad(key_padding_mask, [0, added]) if added else key_padding_mask
        if tuple(key_padding_mask.shape) != (batch, tk):
            raise AssertionError(f"expecting key_padding_mask shape of {(batch, tk - added)}, but got "
                                 f"{key_padding_mask.shape}")
        key_padding_mask = key_padding_mask.reshape(batch, 1, 1, tk)
        mask = key_padding_mask if mask is None else mask + key_padding_mask
    if causal and added:
        raise RuntimeError("is_causal with add_bias_kv or add_zero_attn: give attn_mask alone")

    dropout_p = dropout_p if training else 0.0
    weights = None
    if need_weights:
        scores = (q * (1.0 / math.sqrt(head))).matmul(k.transpose(2, 3))
        weights = _C.softmax(scores if mask is None else scores + mask, -1)
        weights = dropout(weights, dropout_p) if dropout_p else weights
        result = weights.matmul(v)
        weights = weights.mean(1) if average_attn_weights else weights
        weights = weights if batched else weights.squeeze(0)
    else:
        result = _C.scaled_dot_product_attention(q, k, v, mask, dropout_p, causal)
    result = result.permute(2, 0, 1, 3).reshape(tq, batch, width)
    result = linear(result, out_proj_weight, out_proj_bias)
    return (result if batched else result.squeeze(1)), weights
