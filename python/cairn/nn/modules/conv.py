"""Convolutions and transposed convolutions over one, two or three axes."""

import math

import cairn

from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module
from .utils import _ntuple, _pair, _reverse_repeat_tuple, _single, _triple

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LazyConv1d",
           "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d"]


class _ConvNd(Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, dilation, transposed, output_padding,
                 groups, bias, padding_mode, device=None, dtype=None):
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'valid', 'same'}}")
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        modes = ("zeros", "reflect", "replicate", "circular")
        if padding_mode not in modes:
            raise ValueError(f"padding_mode must be one of {set(modes)}, but got padding_mode='{padding_mode}'")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        if isinstance(padding, str):
            pairs = [0] * (2 * len(kernel_size))
            if padding == "same":
                for i, (d, k) in enumerate(zip(reversed(dilation), reversed(kernel_size))):
                    total = d * (k - 1)
                    pairs[2 * i], pairs[2 * i + 1] = total // 2, total - total // 2
            self._reversed_padding_repeated_twice = pairs
        else:
            self._reversed_padding_repeated_twice = _reverse_repeat_tuple(padding, 2)
        rows, columns = (in_channels, out_channels) if transposed else (out_channels, in_channels)
        self.weight = Parameter(cairn.empty((rows, columns // groups, *kernel_size), device=device, dtype=dtype))
        bias = Parameter(cairn.empty(out_channels, device=device, dtype=dtype)) if bias else None
        self.register_parameter("bias", bias)
        self.reset_parameters()

    def reset_parameters(self):
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self):
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        n = len(self.kernel_size)
        if self.padding != (0,) * n:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * n:
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * n:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text

    def _conv(self, function, input, weight, bias):
        if self.padding_mode == "zeros":
            return function(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)
        padded = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
        return function(padded, weight, bias, self.stride, 0, self.dilation, self.groups)


def _options(axes, kernel_size, stride, padding, dilation):
    each = _ntuple(axes)
    return each(kernel_size), each(stride), padding if isinstance(padding, str) else each(padding), each(dilation)


class Conv1d(_ConvNd):
    """(N, in, L) or (in, L); weight (out, in/groups, kernel), bias (out)."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
                 padding_mode="zeros", device=None, dtype=None):
        super().__init__(in_channels, out_channels, *_options(1, kernel_size, stride, padding, dilation), False,
                         _single(0), groups, bias, padding_mode, device, dtype)

    def _conv_forward(self, input, weight, bias):
        return self._conv(F.conv1d, input, weight, bias)

    def forward(self, input):
        return self._conv_forward(input, self.weight, self.bias)


class Conv2d(_ConvNd):
    """(N, in, H, W) or (in, H, W); weight (out, in/groups, height, width), bias (out)."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
                 padding_mode="zeros", device=None, dtype=None):
        super().__init__(in_channels, out_channels, *_options(2, kernel_size, stride, padding, dilation), False,
                         _pair(0), groups, bias, padding_mode, device, dtype)

    def _conv_forward(self, input, weight, bias):
        return self._conv(F.conv2d, input, weight, bias)

    def forward(self, input):
        return self._conv_forward(input, self.weight, self.bias)


class Conv3d(_ConvNd):
    """(N, in, D, H, W) or (in, D, H, W); weight (out, in/groups, depth, height, width), bias (out)."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
                 padding_mode="zeros", device=None, dtype=None):
        super().__init__(in_channels, out_channels, *_options(3, kernel_size, stride, padding, dilation), False,
                         _triple(0), groups, bias, padding_mode, device, dtype)

    def _conv_forward(self, input, weight, bias):
        return self._conv(F.conv3d, input, weight, bias)

    def forward(self, input):
        return self._conv_forward(input, self.weight, self.bias)


class _ConvTransposeNd(_ConvNd):
    def __init__(self, axes, in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, bias,
                 dilation, padding_mode, device, dtype):
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(in_channels, out_channels, *_options(axes, kernel_size, stride, padding, dilation), True,
                         _ntuple(axes)(output_padding), groups, bias, padding_mode, device, dtype)

    def _output_padding(self, input, output_size, stride, padding, kernel_size, num_spatial_dims, dilation=None):
        """The output_padding for which the result has output_size."""
        if output_size is None:
            return self.output_padding
        n = num_spatial_dims
        leading = input.dim() - n
        output_size = list(output_size)
        if len(output_size) == leading + n:
            output_size = output_size[leading:]
        if len(output_size) != n:
            raise ValueError(f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} or {n + leading} "
                             f"elements (got {len(output_size)})")
        dilation = dilation or (1,) * n
        least = [(input.shape[leading + i] - 1) * stride[i] - 2 * padding[i] + dilation[i] * (kernel_size[i] - 1) + 1
                 for i in range(n)]
        most = [m + s - 1 for m, s in zip(least, stride)]
        if any(not a <= size <= b for size, a, b in zip(output_size, least, most)):
            raise ValueError(f"requested an output size of {output_size}, but valid sizes range from {least} to {most} "
                             f"(for an input of {list(input.shape[leading:])})")
        return [size - m for size, m in zip(output_size, least)]

    def _forward(self, function, input, output_size):
        padding = self._output_padding(input, output_size, self.stride, self.padding, self.kernel_size,
                                       len(self.kernel_size), self.dilation)
        return function(input, self.weight, self.bias, self.stride, self.padding, padding, self.groups, self.dilation)


class ConvTranspose1d(_ConvTransposeNd):
    """(N, in, L) or (in, L); weight (in, out/groups, kernel), bias (out)."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1,
                 bias=True, dilation=1, padding_mode="zeros", device=None, dtype=None):
        super().__init__(1, in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, bias,
                         dilation, padding_mode, device, dtype)

    def forward(self, input, output_size=None):
        return self._forward(F.conv_transpose1d, input, output_size)


class ConvTranspose2d(_ConvTransposeNd):
    """(N, in, H, W) or (in, H, W); weight (in, out/groups, height, width), bias (out)."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1,
                 bias=True, dilation=1, padding_mode="zeros", device=None, dtype=None):
        super().__init__(2, in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, bias,
                         dilation, padding_mode, device, dtype)

    def forward(self, input, output_size=None):
        return self._forward(F.conv_transpose2d, input, output_size)


class ConvTranspose3d(_ConvTransposeNd):
    """(N, in, D, H, W) or (in, D, H, W); weight (in, out/groups, depth, height, width), bias (out)."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1,
                 bias=True, dilation=1, padding_mode="zeros", device=None, dtype=None):
        super().__init__(3, in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, bias,
                         dilation, padding_mode, device, dtype)

    def forward(self, input, output_size=None):
        return self._forward(F.conv_transpose3d, input, output_size)


def _lazy(name):
    def __init__(self, *args, **kwargs):
        raise NotImplementedError(f"Lazy{name}: nn.{name}(in_channels, ...) with the input's number of channels")

    return type("Lazy" + name, (globals()[name],), {
        "__init__": __init__, "__module__": __name__,
        "__doc__": "PyTorch's layer that takes its number of channels from its first input."})


LazyConv1d, LazyConv2d, LazyConv3d = _lazy("Conv1d"), _lazy("Conv2d"), _lazy("Conv3d")
LazyConvTranspose1d, LazyConvTranspose2d = _lazy("ConvTranspose1d"), _lazy("ConvTranspose2d")
LazyConvTranspose3d = _lazy("ConvTranspose3d")
