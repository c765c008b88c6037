"""Batch normalisation folded into the layer before it, for evaluation."""

import copy

import cairn

from ..parameter import Parameter


def _fuse(weight, bias, mean, var, eps, scale, shift, axis):
    with cairn.no_grad():
        scale = cairn.ones_like(mean) if scale is None else scale
        shift = cairn.zeros_like(mean) if shift is None else shift
        bias = cairn.zeros_like(mean) if bias is None else bias
        factor = scale * (var + eps).rsqrt()
        shape = [1] * weight.dim()
        shape[axis] = factor.shape[0]
        return (Parameter((weight * factor.reshape(shape)).to(weight.dtype), weight.requires_grad),
                Parameter(((bias - mean) * factor + shift).to(weight.dtype), weight.requires_grad))


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False):
    return _fuse(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 1 if transpose else 0)


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    return _fuse(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


def _fused(layer, norm, transpose=False):
    if layer.training or norm.training:
        raise AssertionError("Fusion only for eval!")
    result = copy.deepcopy(layer)
    del result.weight, result.bias
    weight, bias = _fuse(layer.weight, layer.bias, norm.running_mean, norm.running_var, norm.eps, norm.weight,
                         norm.bias, 1 if transpose else 0)
    result.weight = weight
    result.bias = bias
    return result


def fuse_conv_bn_eval(conv, bn, transpose=False):
    """A convolution that computes conv, then bn."""
    return _fused(conv, bn, transpose)


def fuse_linear_bn_eval(linear, bn):
    """A linear map that computes linear, then bn."""
    return _fused(linear, bn)
