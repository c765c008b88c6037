"""weight = weight_g · weight_v / |weight_v|, computed before each forward."""

from ..parameter import Parameter


def _norm_except(v, dim):
    """The lengths of v along all axes but dim; dim None: one length."""
    if dim is None:
        return v.norm(2)
    axes = [i for i in range(v.dim()) if i != dim % v.dim()]
    return v.norm(2, axes, True) if axes else v.abs()


def _weight_norm(v, g, dim=0):
    return v * (g / _norm_except(v, dim))


class WeightNorm:
    def __init__(self, name, dim):
        self.name, self.dim = name, dim

    def compute_weight(self, module):
        return _weight_norm(getattr(module, self.name + "_v"), getattr(module, self.name + "_g"), self.dim)

    def remove(self, module):
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"], module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.detach()))

    def __call__(self, module, inputs):
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module, name="weight", dim=0):
    """The parameter `name` becomes name_g, its lengths, and name_v, its directions."""
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, WeightNorm) and hook.name == name:
            raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
    dim = None if dim == -1 else dim
    norm, weight = WeightNorm(name, dim), getattr(module, name)
    del module._parameters[name]
    module.register_parameter(name + "_g", Parameter(_norm_except(weight.detach(), dim)))
    module.register_parameter(name + "_v", Parameter(weight.detach()))
    setattr(module, name, norm.compute_weight(module))
    module.register_forward_pre_hook(norm)
    return module


def remove_weight_norm(module, name="weight"):
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
