"""A parameter computed by modules from others: register_parametrization(module, "weight", Symmetric())."""

from contextlib import contextmanager

from ..modules.container import ModuleDict, ModuleList
from ..parameter import Parameter

_cache, _cached = {}, 0


@contextmanager
def cached():
    """Within it each parametrised tensor is computed once."""
    global _cached
    _cached += 1
    try:
        yield
    finally:
        _cached -= 1
        if not _cached:
            _cache.clear()


class ParametrizationList(ModuleList):
    """The parametrisations of one tensor, and `original`, what they start from (original0, .. if there are several)."""

    def __init__(self, modules, original, unsafe=False):
        super().__init__(modules)
        self.unsafe = unsafe
        value = original.detach()
        for module in reversed(self):
            if hasattr(module, "right_inverse"):
                value = module.right_inverse(value)
        self.is_tensor = not isinstance(value, (tuple, list))
        self.ntensors = 1 if self.is_tensor else len(value)
        trained = isinstance(original, Parameter)
        for name, part in [("original", value)] if self.is_tensor else [
                (f"original{i}", part) for i, part in enumerate(value)]:
            if trained:
                setattr(self, name, Parameter(part.detach(), requires_grad=original.requires_grad))
            else:
                self.register_buffer(name, part)

    def _originals(self):
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value):
        """Sets the originals so that the parametrised tensor becomes value."""
        import cairn
        with cairn.no_grad():
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            for original, part in zip(self._originals(), [value] if self.is_tensor else value):
                original.data = part.detach()

    def forward(self):
        first, *rest = self
        x = first(*self._originals())
        for module in rest:
            x = module(x)
        return x


def _inject(module, name):
    """Gives the module a class of its own, whose property computes the tensor."""
    def get(self):
        if not _cached:
            return self.parametrizations[name]()
        key = id(self), name
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def put(self, value):
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(get, put))


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """module.tensor_name becomes parametrization(original)."""
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        module.parametrizations[tensor_name].append(parametrization)
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        raise ValueError(f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
                         f"'{tensor_name}'")
    original = getattr(module, tensor_name)
    parametrizations = ParametrizationList([parametrization], original, unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        kind = type(module)
        # Pickling goes by the name of the class: a copy is made from the class that it was before.
        module.__class__ = type("Parametrized" + kind.__name__, (kind,), {"__getstate__": _no_pickle})
        module.parametrizations = ModuleDict()
    _inject(module, tensor_name)
    module.parametrizations[tensor_name] = parametrizations
    return module


def _no_pickle(self):
    raise RuntimeError("Serialization of parametrized modules is only supported through state_dict().")


def is_parametrized(module, tensor_name=None):
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """The tensor becomes an ordinary one again: with its parametrised value, or with the original one."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    if not leave_parametrized and not parametrizations.is_tensor:
        raise ValueError("Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in "
                         "terms of a sequence of tensors.")
    originals = parametrizations._originals()
    value = getattr(module, tensor_name).detach() if leave_parametrized else originals[0].detach()
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if isinstance(originals[0], Parameter):
        module.register_parameter(tensor_name, Parameter(value, requires_grad=originals[0].requires_grad))
    else:
        module.register_buffer(tensor_name, value)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module):
    return type(module).__bases__[0] if is_parametrized(module) else type(module)
