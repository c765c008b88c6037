"""Gradients of convolutions for their operands: torch.nn.grad."""

import cairn

from . import functional as F


def _gradient(function, shape, like, call, grad_output):
    with cairn.enable_grad():
        x = cairn.zeros(tuple(shape), dtype=like.dtype, device=like.device, requires_grad=True)
        return cairn.autograd.grad(call(function, x), x, grad_output)[0]


def _of_input(function):
    def gradient(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
        return _gradient(function, input_size, weight,
                         lambda f, x: f(x, weight.detach(), None, stride, padding, dilation, groups), grad_output)

    return gradient


def _of_weight(function):
    def gradient(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
        return _gradient(function, weight_size, input,
                         lambda f, w: f(input.detach(), w, None, stride, padding, dilation, groups), grad_output)

    return gradient


conv1d_input, conv2d_input, conv3d_input = map(_of_input, (F.conv1d, F.conv2d, F.conv3d))
conv1d_weight, conv2d_weight, conv3d_weight = map(_of_weight, (F.conv1d, F.conv2d, F.conv3d))
