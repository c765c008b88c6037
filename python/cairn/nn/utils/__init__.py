"""Tools for parameters: clipping, vectors of them, reparametrisation, sequences of different lengths."""

from . import rnn
from .clip_grad import (_clip_grads_with_norm_, _get_total_norm, clip_grad_norm, clip_grad_norm_, clip_grad_value_,
                        clip_grads_with_norm_, get_total_norm)
from .convert_parameters import parameters_to_vector, vector_to_parameters

# What few programs use is loaded when it is asked for.
_LATER = {
    "weight_norm": "_weight_norm", "remove_weight_norm": "_weight_norm", "spectral_norm": "_spectral_norm",
    "remove_spectral_norm": "_spectral_norm", "fuse_conv_bn_eval": "fusion", "fuse_conv_bn_weights": "fusion",
    "fuse_linear_bn_eval": "fusion", "fuse_linear_bn_weights": "fusion",
}


def skip_init(module_cls, *args, **kwargs):
    """The module. Its initial values are pending until they are read or replaced, so there is nothing to skip."""
    return module_cls(*args, **kwargs)


def __getattr__(name):
    import importlib
    if name in ("parametrize", "parametrizations", "fusion", "stateless"):
        return importlib.import_module("." + name, __name__)
    if name in _LATER:
        return getattr(importlib.import_module("." + _LATER[name], __name__), name)
    raise AttributeError(f"module 'cairn.nn.utils' has no attribute '{name}'")
