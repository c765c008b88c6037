"""The base class of all optimizers. A program may change parameter groups and states at any time: a step reads them."""

from collections import OrderedDict, defaultdict
from copy import deepcopy
from functools import wraps
from itertools import chain

from .. import _C
from .._C import Tensor

required = object()  # a default that must be given; older programs import it


class RemovableHandle:
    """What registering a hook returns: remove() ends the hook."""

    _next = 0

    def __init__(self, hooks):
        self.hooks = hooks
        self.id = RemovableHandle._next
        RemovableHandle._next += 1

    def remove(self):
        self.hooks.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()


def _register(hooks, hook, prepend=False):
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


_global_pre_hooks, _global_post_hooks = OrderedDict(), OrderedDict()


def register_optimizer_step_pre_hook(hook):
    """Calls hook(optimizer, args, kwargs) before every step of every optimizer."""
    return _register(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook):
    """Calls hook(optimizer, args, kwargs) after every step of every optimizer."""
    return _register(_global_post_hooks, hook)


def _with_hooks(step):
    """The step of a class, with hooks around it. What it left pending is computed."""

    @wraps(step)
    def hooked(self, *args, **kwargs):
        if _global_pre_hooks or self._optimizer_step_pre_hooks:
            for hook in chain(_global_pre_hooks.values(), list(self._optimizer_step_pre_hooks.values())):
                result = hook(self, args, kwargs)
                if result is not None:
                    if not (isinstance(result, tuple) and len(result) == 2):
                        raise RuntimeError(
                            f"{step.__qualname__}: a hook before a step must return None or (args, kwargs), got "
                            f"{result}"
                        )
                    args, kwargs = result
        result = step(self, *args, **kwargs)
        self._opt_called = True
        if not self._computes:
            _C.optim_eval(self.param_groups)
        if _global_post_hooks or self._optimizer_step_post_hooks:
            for hook in chain(list(self._optimizer_step_post_hooks.values()), _global_post_hooks.values()):
                hook(self, args, kwargs)
        return result

    hooked.hooked = True
    return hooked


class Optimizer:
    """Base class of optimizers; programs may derive their own.

    params: tensors, (name, tensor) pairs, or dicts: groups of parameters with numbers of their own.
    defaults: a dict of the numbers of groups that do not give them.
    """

    _computes = False  # step() itself computes what is pending

    def __init__(self, params, defaults):
        self.defaults = defaults
        self._make_hooks()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + type(params).__name__
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _make_hooks(self):
        self._optimizer_step_pre_hooks = OrderedDict()
        self._optimizer_step_post_hooks = OrderedDict()
        self._state_dict_pre_hooks = OrderedDict()
        self._state_dict_post_hooks = OrderedDict()
        self._load_state_dict_pre_hooks = OrderedDict()
        self._load_state_dict_post_hooks = OrderedDict()
        step = type(self).step
        if not hasattr(step, "hooked"):
            type(self).step = _with_hooks(step)

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._make_hooks()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self):
        text = type(self).__name__ + " ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            for key in sorted(group):
                if key != "params":
                    text += f"    {key}: {group[key]}\n"
        return text + ")"

    def add_param_group(self, param_group):
        """Adds a group: a dict with "params", and numbers that differ from the defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        group = param_group
        params = group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
                "will change between runs. Please use a list instead."
            )
        params = list(params)
        names = None
        if params and isinstance(params[0], tuple):
            if not all(isinstance(p, tuple) for p in params):
                raise ValueError("all optimizer params should be with/without names. Some param names are missing")
            names = [name for name, _ in params]
            params = [p for _, p in params]
            group["param_names"] = names
        if self.param_groups and ("param_names" in self.param_groups[0]) != (names is not None):
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group with names to the "
                "optimizer" if names else "cannot add param group without names to an optimizer with names"
            )
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError("optimizer can only optimize Tensors, but one of the params is " + type(p).__name__)
            if not (p.is_leaf or getattr(p, "retains_grad", False)):
                raise ValueError("can't optimize a non-leaf Tensor")
        group["params"] = params
        for name, default in self.defaults.items():
            if default is required and name not in group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            group.setdefault(name, default)
        if len({id(p) for p in params}) != len(params):
            import warnings

            warnings.warn("optimizer contains a parameter group with duplicate parameters", stacklevel=3)
        known = {id(p) for g in self.param_groups for p in g["params"]}
        if any(id(p) in known for p in params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(group)

    def zero_grad(self, set_to_none=True):
        """Clears the gradients of all parameters; with set_to_none=False they become zeros."""
        if set_to_none:
            _C.optim_zero_grad(self.param_groups)
            return
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad = p.grad.new_zeros(p.grad.shape)

    def step(self, closure=None):
        """A step of the optimizer. closure computes the loss anew and returns it."""
        raise NotImplementedError

    # ---- hooks ----

    def register_step_pre_hook(self, hook):
        """Calls hook(optimizer, args, kwargs) before every step; it may return new (args, kwargs)."""
        return _register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook):
        """Calls hook(optimizer, args, kwargs) after every step."""
        return _register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        return _register(self._state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        return _register(self._state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        return _register(self._load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        return _register(self._load_state_dict_post_hooks, hook, prepend)

    # ---- states ----

    def state_dict(self):
        """The state in PyTorch's form: "state", by the number of the parameter, and "param_groups"."""
        for hook in list(self._state_dict_pre_hooks.values()):
            hook(self)
        number = {}
        groups = []
        for group in self.param_groups:
            packed = {key: value for key, value in group.items() if key != "params"}
            for p in group["params"]:
                number.setdefault(id(p), len(number))
            packed["params"] = [number[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {
            (number[id(key)] if isinstance(key, Tensor) else key): dict(value) if isinstance(value, dict) else value
            for key, value in self.state.items()
        }
        result = {"state": state, "param_groups": groups}
        for hook in list(self._state_dict_post_hooks.values()):
            changed = hook(self, result)
            if changed is not None:
                result = changed
        return result

    def load_state_dict(self, state_dict):
        """Takes over a state of state_dict(), also one that PyTorch saved."""
        state_dict = dict(state_dict)
        for hook in list(self._load_state_dict_pre_hooks.values()):
            changed = hook(self, state_dict)
            if changed is not None:
                state_dict = changed
        saved = deepcopy(state_dict["param_groups"])
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(s["params"]) != len(g["params"]) for s, g in zip(saved, self.param_groups)):
            raise ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's "
                             "group")
        param = {}
        for s, g in zip(saved, self.param_groups):
            param.update(zip(s["params"], g["params"]))
        state = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in param:
                state[param[key]] = self._load_value(param[key], value)
            else:
                state[key] = value
        groups = []
        for s, g in zip(saved, self.param_groups):
            s["params"] = g["params"]
            if "param_names" in g:
                s.setdefault("param_names", g["param_names"])
            groups.append(s)
        self.state, self.param_groups = state, groups
        for hook in list(self._load_state_dict_post_hooks.values()):
            hook(self)

    def _load_value(self, param, value, key=None):
        """A value of a state as this optimizer holds it: floats get the dtype and device of the parameter."""
        if isinstance(value, Tensor):
            value = value.detach()
            if key == "step" or not param.is_floating_point():
                return value.clone()
            return value.to(device=param.device, dtype=param.dtype).clone()
        if isinstance(value, dict):
            return {k: self._load_value(param, v, k) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self._load_value(param, v, key) for v in value)
        return value
