"""Initial values for parameters: torch.nn.init. Each function gives the tensor a new value and returns it.

A weight (out, in, kernel...) has fan_in = in · kernel and fan_out = out · kernel.
"""

import math
import warnings

import cairn


def _assign(tensor, value):
    """Gives the tensor a value of its shape, without a record for gradients."""
    with cairn.no_grad():
        return tensor.copy_(value)


def calculate_gain(nonlinearity, param=None):
    """By how much a nonlinearity's weights should be larger than those of a linear map."""
    if nonlinearity in ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
                        "conv_transpose3d", "sigmoid"):
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "selu":
        return 3.0 / 4
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif isinstance(param, (int, float)) and not isinstance(param, bool):
            slope = param
        else:
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope ** 2))
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Uniform in [a, b)."""
    with cairn.no_grad():
        return tensor.uniform_(a, b) if generator is None else tensor.uniform_(a, b, generator=generator)


def normal_(tensor, mean=0.0, std=1.0, generator=None):
    with cairn.no_grad():
        return tensor.normal_(mean, std) if generator is None else tensor.normal_(mean, std, generator=generator)


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Normal, but only within [a, b]."""
    def cdf(x):
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn("mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be "
                      "incorrect.", stacklevel=2)
    low, high = 2 * cdf((a - mean) / std) - 1, 2 * cdf((b - mean) / std) - 1
    with cairn.no_grad():
        # In f32 at least: the tails of a half would be infinite.
        dtype = tensor.dtype if tensor.dtype == cairn.float64 else cairn.float32
        value = cairn.rand(tuple(tensor.shape), dtype=dtype, device=tensor.device) * (high - low) + low
        value = value.erfinv() * (std * math.sqrt(2.0)) + mean
        return tensor.copy_(value.clamp(min=a, max=b))


def constant_(tensor, val):
    with cairn.no_grad():
        return tensor.fill_(val)


def ones_(tensor):
    return constant_(tensor, 1.0)


def zeros_(tensor):
    return constant_(tensor, 0.0)


def eye_(tensor):
    """The identity matrix."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return _assign(tensor, cairn.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor, groups=1):
    """A convolution that copies its channels."""
    axes = tensor.ndimension()
    if axes not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    out, width, *kernel = tensor.shape
    if out % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    each = out // groups
    value = cairn.zeros(tuple(tensor.shape), dtype=tensor.dtype, device=tensor.device)
    centre = [k // 2 for k in kernel]
    for g in range(groups):
        for d in range(min(each, width)):
            value[(g * each + d, d, *centre)] = 1
    return _assign(tensor, value)


def _calculate_fan_in_and_fan_out(tensor):
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = 1
    for n in tensor.shape[2:]:
        field *= n
    return tensor.shape[1] * field, tensor.shape[0] * field


def _calculate_correct_fan(tensor, mode):
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode.lower() == "fan_out"]


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Variance gain² · 2 / (fan_in + fan_out)."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / float(fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Variance gain² · 2 / (fan_in + fan_out)."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


def _kaiming_std(tensor, a, mode, nonlinearity):
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def _nothing_to_fill(tensor):
    if 0 not in tensor.shape:
        return False
    warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
    return True


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Variance gain² / fan."""
    if _nothing_to_fill(tensor):
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Variance gain² / fan."""
    if _nothing_to_fill(tensor):
        return tensor
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor, gain=1, generator=None):
    """Orthogonal rows of length gain; of more rows than columns, orthogonal columns. All axes after the first count as
    columns."""
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows, columns = tensor.shape[0], tensor.numel() // tensor.shape[0]
    with cairn.no_grad():
        dtype = tensor.dtype if tensor.dtype == cairn.float64 else cairn.float32
        flat = cairn.empty((rows, columns), dtype=dtype, device=tensor.device)
        normal_(flat, 0.0, 1.0, generator)
        q, r = cairn.linalg.qr(flat.t() if rows < columns else flat)
        q = q * r.diagonal().sign()  # makes it uniform among all such matrices
        q = q.t() if rows < columns else q
        return tensor.copy_((q * gain).reshape(tuple(tensor.shape)))


def sparse_(tensor, sparsity, std=0.01, generator=None):
    """In each column a share `sparsity` of the elements is 0, the rest is normal."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with cairn.no_grad():
        normal_(tensor, 0.0, std, generator)
        order = cairn.rand((rows, columns), device=tensor.device).argsort(0).argsort(0)  # ranks in each column
        return tensor.copy_(tensor.detach().masked_fill(order < zeros, 0.0))


def _former(function):
    def call(*args, **kwargs):
        name = function.__name__
        warnings.warn(f"`nn.init.{name[:-1]}` is now deprecated in favor of `nn.init.{name}`.",
                      FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = function.__name__[:-1]
    return call


uniform, normal, constant, eye, dirac = map(_former, (uniform_, normal_, constant_, eye_, dirac_))
xavier_uniform, xavier_normal = _former(xavier_uniform_), _former(xavier_normal_)
kaiming_uniform, kaiming_normal = _former(kaiming_uniform_), _former(kaiming_normal_)
orthogonal, sparse = _former(orthogonal_), _former(sparse_)
