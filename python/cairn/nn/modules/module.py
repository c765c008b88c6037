"""Module: what layers and models are made of. It holds parameters, buffers and other modules under names.

Whatever is assigned to an attribute finds its place by its type: a Parameter among the parameters, a Module among the
children, a Buffer among the buffers. Anything else is an ordinary attribute.
"""

import warnings
from collections import OrderedDict, namedtuple

import cairn
from cairn import Tensor

from ..parameter import Buffer, Parameter
from ._hooks import Border, add_hook

__all__ = ["Module", "register_module_forward_hook", "register_module_forward_pre_hook",
           "register_module_full_backward_hook", "register_module_full_backward_pre_hook"]


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What load_state_dict(strict=False) did not find, and what it did not need."""

    __slots__ = ()

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


def _addindent(text, width):
    first, *rest = text.split("\n")
    return "\n".join([first] + [" " * width + line for line in rest])


# ---- hooks of all modules ----

_every_pre_hook, _every_hook = OrderedDict(), OrderedDict()
_every_backward_pre_hook, _every_backward_hook = OrderedDict(), OrderedDict()
_every_always_called = OrderedDict()


def register_module_forward_pre_hook(hook):
    """Calls hook(module, args) before the forward of every module. It may return other arguments."""
    return add_hook(_every_pre_hook, hook)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """Calls hook(module, args, output) after the forward of every module. It may return another output."""
    call = (lambda m, args, kwargs, out: hook(m, args, kwargs, out)) if with_kwargs else (
        lambda m, args, kwargs, out: hook(m, args, out))
    return add_hook(_every_hook, call, *([(_every_always_called, True)] if always_call else []))


def register_module_full_backward_pre_hook(hook):
    """Calls hook(module, grad_output) before the backward of every module."""
    return add_hook(_every_backward_pre_hook, hook)


def register_module_full_backward_hook(hook):
    """Calls hook(module, grad_input, grad_output) after the backward of every module."""
    return add_hook(_every_backward_hook, hook)


class _BoundLoadHook:
    """A hook of load_state_dict that is called with its module."""

    def __init__(self, hook, module):
        self.hook, self.module = hook, module

    def __call__(self, *args):
        return self.hook(self.module, *args)


class Module:
    """The base of all layers and models.

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.up = nn.Linear(2, 8)
                self.down = nn.Linear(8, 1)

            def forward(self, x):
                return self.down(F.relu(self.up(x)))
    """

    dump_patches = False
    _version = 1
    call_super_init = False
    _compiled_call_impl = None
    _hooked = False  # true once any hook was added: __call__ looks for hooks only then

    def __init__(self, *args, **kwargs):
        if not self.call_super_init and (args or kwargs):
            given = f"unexpected keyword argument '{next(iter(kwargs))}'" if kwargs else (
                f"takes 1 positional argument but {len(args) + 1} were given")
            raise TypeError(f"{type(self).__name__}.__init__() got an {given}" if kwargs
                            else f"{type(self).__name__}.__init__() {given}")
        self.__dict__.update(
            training=True, _parameters={}, _buffers={}, _non_persistent_buffers_set=set(), _modules={},
            _backward_pre_hooks=OrderedDict(), _backward_hooks=OrderedDict(),
            _forward_hooks=OrderedDict(), _forward_hooks_with_kwargs=OrderedDict(),
            _forward_hooks_always_called=OrderedDict(), _forward_pre_hooks=OrderedDict(),
            _forward_pre_hooks_with_kwargs=OrderedDict(), _state_dict_hooks=OrderedDict(),
            _state_dict_pre_hooks=OrderedDict(), _load_state_dict_pre_hooks=OrderedDict(),
            _load_state_dict_post_hooks=OrderedDict())
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def forward(self, *input):
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    # ---- calling ----

    def __call__(self, *args, **kwargs):
        if not (self._hooked or _every_pre_hook or _every_hook or _every_backward_pre_hook or _every_backward_hook):
            return self.forward(*args, **kwargs)
        return self._call_with_hooks(args, kwargs)

    def _call_impl(self, *args, **kwargs):
        return Module.__call__(self, *args, **kwargs)

    def _call_with_hooks(self, args, kwargs):
        called = set()
        try:
            return self._call_hooks_and_forward(args, kwargs, called)
        except Exception:
            self._call_remaining(args, kwargs, called)
            raise

    def _call_remaining(self, args, kwargs, called):
        """After an error: hooks with always_call that were not called yet. An error of theirs is only a warning."""
        hooks = [(_every_hook, key, True) for key in _every_always_called]
        hooks += [(self._forward_hooks, key, key in self._forward_hooks_with_kwargs)
                  for key in self._forward_hooks_always_called]
        for table, key, with_kwargs in hooks:
            if key in called or key not in table:
                continue
            try:
                table[key](self, args, kwargs, None) if with_kwargs else table[key](self, args, None)
            except Exception as error:
                warnings.warn(f"module forward hook with ``always_call=True`` raised an exception that was silenced as "
                              f"another error was raised in forward: {error}", stacklevel=2)

    def _call_hooks_and_forward(self, args, kwargs, called):
        for hook in list(_every_pre_hook.values()):
            changed = hook(self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        for key, hook in list(self._forward_pre_hooks.items()):
            if key in self._forward_pre_hooks_with_kwargs:
                changed = hook(self, args, kwargs)
                if changed is not None:
                    if not (isinstance(changed, tuple) and len(changed) == 2):
                        raise RuntimeError("forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                                           f"but got {changed}.")
                    args, kwargs = changed
            else:
                changed = hook(self, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)

        border = None
        backward = [*_every_backward_hook.values(), *self._backward_hooks.values()]
        backward_pre = [*_every_backward_pre_hook.values(), *self._backward_pre_hooks.values()]
        if backward or backward_pre:
            border = Border(self, backward, backward_pre)
            args = border.pass_operands(args)

        result = self.forward(*args, **kwargs)

        for table in (_every_hook, self._forward_hooks):
            for key, hook in list(table.items()):
                called.add(key)
                if table is _every_hook or key in self._forward_hooks_with_kwargs:
                    changed = hook(self, args, kwargs, result)
                else:
                    changed = hook(self, args, result)
                if changed is not None:
                    result = changed
        return border.pass_results(result) if border else result

    # ---- parameters, buffers, children ----

    def _check_name(self, name, what, table):
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {cairn_typename(name)}")
        if hasattr(self, name) and name not in table:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'{what} name can\'t contain ".", got: {name}' if what == "module"
                           else f'{what} name can\'t contain "."')
        if name == "":
            raise KeyError(f'{what} name can\'t be empty string ""')

    def register_buffer(self, name, tensor, persistent=True):
        """Adds a buffer: state that is not trained. Only a persistent one is in the state_dict."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name(name, "buffer", self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign '{cairn_typename(tensor)}' object to buffer '{name}' "
                            "(cairn.Tensor or None required)")
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name, param):
        """Adds a parameter; None is an absent one, such as a layer's bias."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name(name, "parameter", self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"cannot assign '{cairn_typename(param)}' object to parameter '{name}' "
                            "(cairn.nn.Parameter or None required)")
        if param is not None and param.grad_fn is not None:
            raise ValueError(f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created "
                             f"explicitly. To express '{name}' as a function of another Tensor, compute the value in "
                             "the forward() method.")
        self._parameters[name] = param

    def add_module(self, name, module):
        """Adds a child."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{cairn_typename(module)} is not a Module subclass")
        self._check_name(name, "module", self._modules)
        self._modules[name] = module

    def register_module(self, name, module):
        self.add_module(name, module)

    def __getattr__(self, name):
        # Called only for what is no ordinary attribute, and often: every use of self.weight.
        own = self.__dict__
        if "_parameters" in own:
            values = own["_parameters"]
            if name in values:
                return values[name]
            values = own["_modules"]
            if name in values:
                return values[name]
            values = own["_buffers"]
            if name in values:
                return values[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name, value):
        own = self.__dict__
        if isinstance(value, Parameter):
            if own.get("_parameters") is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, own, self._buffers, self._modules)
            self._non_persistent_buffers_set.discard(name)
            self.register_parameter(name, value)
            return
        parameters = own.get("_parameters")
        if parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(f"cannot assign '{cairn_typename(value)}' as parameter '{name}' "
                                "(cairn.nn.Parameter or None expected)")
            self.register_parameter(name, value)
            return
        modules = own.get("_modules")
        if isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, own, self._parameters, self._buffers)
            self._non_persistent_buffers_set.discard(name)
            modules[name] = value
            return
        if modules is not None and name in modules:
            if value is not None:
                raise TypeError(f"cannot assign '{cairn_typename(value)}' as child module '{name}' "
                                "(cairn.nn.Module or None expected)")
            modules[name] = value
            return
        buffers = own.get("_buffers")
        if isinstance(value, Tensor) or value is None:
            if isinstance(value, Buffer) and (buffers is None or name not in buffers):
                if buffers is None:
                    raise AttributeError("cannot assign buffer before Module.__init__() call")
                self._forget(name, own)
                self.register_buffer(name, value, value.persistent)
                return
        if buffers is not None and name in buffers:
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(f"cannot assign '{cairn_typename(value)}' as buffer '{name}' "
                                "(cairn.nn.Buffer, cairn.Tensor or None expected)")
            if isinstance(value, Buffer):
                self.register_buffer(name, value, value.persistent)
            else:
                buffers[name] = value
            return
        object.__setattr__(self, name, value)

    @staticmethod
    def _forget(name, *tables):
        for table in tables:
            table.pop(name, None)

    def __delattr__(self, name):
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self):
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if not name[0].isdigit())

    # ---- finding ----

    def get_submodule(self, target):
        """The module of a full name, as "layers.0.conv"; "" is this one."""
        module = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target, module, strict=False):
        """Puts a module at a full name."""
        if not target:
            raise ValueError("Cannot set the submodule without a target name!")
        *path, name = target.split(".")
        parent = self.get_submodule(".".join(path))
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        if not isinstance(module, Module):
            raise ValueError("`module` is not an nn.Module, found :" + str(type(module)))
        setattr(parent, name, module)

    def _get_member(self, target, wanted, what):
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        value = getattr(module, name)
        if not wanted(module, name, value):
            raise AttributeError(f"`{name}` is not {what}")
        return value

    def get_parameter(self, target):
        return self._get_member(target, lambda m, name, value: isinstance(value, Parameter), "an nn.Parameter")

    def get_buffer(self, target):
        return self._get_member(target, lambda m, name, value: name in m._buffers, "a buffer")

    def _named_members(self, members, prefix="", recurse=True, remove_duplicate=True):
        seen = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, value in members(module):
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield (path + "." if path else "") + name, value

    def parameters(self, recurse=True):
        for _, value in self.named_parameters(recurse=recurse):
            yield value

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        yield from self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        for _, value in self.named_buffers(recurse=recurse):
            yield value

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        yield from self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def children(self):
        for _, module in self.named_children():
            yield module

    def named_children(self):
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate=True):
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """This module and all below it, each before its children."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                path = (prefix + "." if prefix else "") + name
                yield from module.named_modules(memo, path, remove_duplicate)

    # ---- changing all of it ----

    def apply(self, fn):
        """Calls fn(module) for every module, children before their parents."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn, recurse=True):
        """Gives every parameter, its gradient, and every buffer the value fn(old value)."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        with cairn.no_grad():
            for param in self._parameters.values():
                if param is None:
                    continue
                gradient = param.grad
                param.data = fn(param.data)
                if gradient is not None:
                    param.grad = fn(gradient)
            for name, buffer in self._buffers.items():
                if buffer is not None:
                    self._buffers[name] = fn(buffer)
        return self

    def to(self, *args, **kwargs):
        """to(device), to(dtype), to(device, dtype), to(tensor): moves and converts in place. Only floating-point
        parameters and buffers are converted."""
        device, dtype = _parse_to(*args, **kwargs)
        if dtype is not None and not dtype.is_floating_point:
            raise TypeError("nn.Module.to only accepts floating point or complex dtypes, but got desired "
                            f"dtype={dtype}")

        def convert(t):
            if device is not None:
                t = t.to(device)
            return t.to(dtype) if dtype is not None and t.is_floating_point() else t

        return self._apply(convert)

    def _cast(self, dtype):
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self):
        return self._cast(cairn.float32)

    def double(self):
        return self._cast(cairn.float64)

    def half(self):
        return self._cast(cairn.float16)

    def bfloat16(self):
        return self._cast(cairn.bfloat16)

    def type(self, dst_type):
        return self._apply(lambda t: t.type(dst_type))

    def cpu(self):
        return self._apply(lambda t: t.cpu())

    def gpu(self, device=None):
        """Moves the module to a GPU: "gpu" or "gpu:1"."""
        name = "gpu" if device is None else f"gpu:{device}" if isinstance(device, int) else device
        return self._apply(lambda t: t.to(name))

    def cuda(self, device=None):
        return self._apply(lambda t: t.cuda(device))

    def to_empty(self, *, device, recurse=True):
        return self._apply(lambda t: cairn.empty_like(t, device=device), recurse=recurse)

    def share_memory(self):
        return self._apply(lambda t: t.share_memory_())

    def train(self, mode=True):
        """Training mode: dropout, batch statistics."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        for param in self.parameters():
            if param.grad is not None:
                if set_to_none:
                    param.grad = None
                else:
                    param.grad = cairn.zeros_like(param.grad)

    def compile(self, *args, **kwargs):
        """Nothing to do: every module runs as a compiled plan from its second call on."""
        return self

    # ---- hooks ----

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Calls hook(module, args) before forward, or hook(module, args, kwargs). It may return other ones."""
        self._hooked = True
        return add_hook(self._forward_pre_hooks, hook,
                        *([(self._forward_pre_hooks_with_kwargs, True)] if with_kwargs else []), prepend=prepend)

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """Calls hook(module, args, output) after forward, or hook(module, args, kwargs, output). It may return another
        output. With always_call it is called after an error too."""
        self._hooked = True
        extra = [(self._forward_hooks_with_kwargs, True)] if with_kwargs else []
        extra += [(self._forward_hooks_always_called, True)] if always_call else []
        return add_hook(self._forward_hooks, hook, *extra, prepend=prepend)

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Calls hook(module, grad_output) in backward, before the module's own. It may return another grad_output."""
        self._hooked = True
        return add_hook(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook, prepend=False):
        """Calls hook(module, grad_input, grad_output) in backward. It may return another grad_input."""
        self._hooked = True
        return add_hook(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook):
        return self.register_full_backward_hook(hook)

    def register_state_dict_post_hook(self, hook):
        """Calls hook(module, state_dict, prefix, local_metadata) at the end of state_dict."""
        hook._from_public_api = True
        return add_hook(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook):
        return add_hook(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook):
        """Calls hook(module, prefix, keep_vars) at the start of state_dict."""
        return add_hook(self._state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        return add_hook(self._load_state_dict_pre_hooks, _BoundLoadHook(hook, self) if with_module else hook)

    def register_load_state_dict_pre_hook(self, hook):
        """Calls hook(module, state_dict, prefix, ...) before the module loads its part."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook):
        """Calls hook(module, incompatible_keys) after loading; it may change the lists of keys."""
        return add_hook(self._load_state_dict_post_hooks, hook)

    # ---- state ----

    _EXTRA = "_extra_state"

    def get_extra_state(self):
        """Override it, with set_extra_state, for state beside parameters and buffers."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state):
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    def _persistent(self):
        for name, value in self._parameters.items():
            if value is not None:
                yield name, value
        for name, value in self._buffers.items():
            if value is not None and name not in self._non_persistent_buffers_set:
                yield name, value

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        """Writes the module's own part, without children, to destination. Modules may override it."""
        for name, value in self._persistent():
            destination[prefix + name] = value if keep_vars else value.detach()
        if type(self).get_extra_state is not Module.get_extra_state:
            destination[prefix + self._EXTRA] = self.get_extra_state()

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """All parameters and persistent buffers by their full names."""
        if args:
            warnings.warn("Positional args are being deprecated, use kwargs instead.", FutureWarning, stacklevel=2)
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in list(self._state_dict_pre_hooks.values()):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
        for hook in list(self._state_dict_hooks.values()):
            changed = hook(self, destination, prefix, metadata)
            if getattr(hook, "_from_public_api", False):
                if changed is not None:
                    raise RuntimeError("state_dict post-hook must return None")
            elif changed is not None:
                destination = changed
        return destination

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                              error_msgs):
        """Loads the module's own part. Modules may override it, for example to accept former names."""
        for hook in list(self._load_state_dict_pre_hooks.values()):
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        wanted = dict(self._persistent())
        for name, value in wanted.items():
            key = prefix + name
            if key in state_dict:
                self._load_one(name, value, key, state_dict[key], assign, error_msgs)
            elif strict:
                missing_keys.append(key)
        extra = prefix + self._EXTRA
        has_extra = type(self).set_extra_state is not Module.set_extra_state
        if has_extra and extra in state_dict:
            self.set_extra_state(state_dict[extra])
        elif has_extra and strict:
            missing_keys.append(extra)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and (key != extra or not has_extra):
                    name = key[len(prefix):].split(".", 1)
                    if name[0] not in self._modules if len(name) > 1 else name[0] not in wanted:
                        unexpected_keys.append(key)

    def _load_one(self, name, value, key, given, assign, error_msgs):
        if not isinstance(given, Tensor) and not hasattr(given, "__array__"):
            error_msgs.append(f'While copying the parameter named "{key}", expected cairn.Tensor or Tensor-like object '
                              f"from checkpoint but received {type(given)}")
            return
        given = given if isinstance(given, Tensor) else cairn.as_tensor(given)
        if value.dim() == 0 and given.dim() == 1 and given.shape[0] == 1:  # files of old versions
            given = given[0]
        if tuple(given.shape) != tuple(value.shape):
            error_msgs.append(f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, "
                              f"the shape in current model is {value.shape}.")
            return
        try:
            with cairn.no_grad():
                if not assign:
                    value.copy_(given)
                elif isinstance(value, Parameter) and not isinstance(given, Parameter):
                    setattr(self, name, Parameter(given, requires_grad=value.requires_grad))
                else:
                    setattr(self, name, given)
        except Exception as error:
            error_msgs.append(f'While copying the parameter named "{key}", whose dimensions in the model are '
                              f"{value.shape} and whose dimensions in the checkpoint are {given.shape}, an exception "
                              f"occurred : {error.args}.")

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Loads parameters and buffers by their full names. Returns the names that only one side has; with strict,
        such a name is an error. assign: the module takes the given tensors themselves."""
        if not hasattr(state_dict, "items"):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing, unexpected, errors = [], [], []
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata

        def load(module, part, prefix):
            own = {} if metadata is None else metadata.get(prefix[:-1], {})
            if assign:
                own["assign_to_params_buffers"] = assign
            module._load_from_state_dict(part, prefix, own, True, missing, unexpected, errors)
            for name, child in module._modules.items():
                if child is not None:
                    path = prefix + name + "."
                    load(child, {k: v for k, v in part.items() if k.startswith(path)}, path)
            incompatible = _IncompatibleKeys(missing, unexpected)
            for hook in list(module._load_state_dict_post_hooks.values()):
                if hook(module, incompatible) is not None:
                    raise AssertionError("Hooks registered with ``register_load_state_dict_post_hook`` are not "
                                         "expected to return new values, if incompatible_keys need to be modified, it "
                                         "should be done inplace.")

        load(self, state_dict, "")
        if strict:
            if unexpected:
                names = ", ".join(f'"{k}"' for k in unexpected)
                errors.insert(0, f"Unexpected key(s) in state_dict: {names}. ")
            if missing:
                names = ", ".join(f'"{k}"' for k in missing)
                errors.insert(0, f"Missing key(s) in state_dict: {names}. ")
        if errors:
            raise RuntimeError("Error(s) in loading state_dict for {}:\n\t{}".format(
                type(self).__name__, "\n\t".join(errors)))
        return _IncompatibleKeys(missing, unexpected)

    def __getstate__(self):
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        # A file of another version may lack some of them.
        for name in ("_forward_hooks", "_forward_pre_hooks", "_forward_hooks_with_kwargs", "_backward_hooks",
                     "_forward_hooks_always_called", "_forward_pre_hooks_with_kwargs", "_backward_pre_hooks",
                     "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks",
                     "_load_state_dict_post_hooks"):
            self.__dict__.setdefault(name, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        if self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks:
            self.__dict__["_hooked"] = True

    def _replicate_for_data_parallel(self):
        raise NotImplementedError("a module lives on one device; a process for each device shares its batches")

    # ---- text ----

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self):
        """The options of a layer, for its text."""
        return ""

    def __repr__(self):
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {_addindent(repr(module), 2)}" for name, module in self._modules.items()]
        if not children and len(lines) <= 1:
            return f"{self._get_name()}({extra})"
        return self._get_name() + "(\n  " + "\n  ".join(lines + children) + "\n)"

    def _repr_html_(self):
        """For notebooks: the text, folded behind the number of parameters."""
        from html import escape
        n = sum(p.numel() for p in self.parameters())
        return (f"<details><summary><b>{escape(self._get_name())}</b>, {n:,} parameters</summary>"
                f"<pre>{escape(repr(self))}</pre></details>")


def cairn_typename(value):
    """The name of a value's type, as PyTorch's error messages say it."""
    kind = type(value)
    if isinstance(value, Tensor) and hasattr(value, "type") and kind is Tensor:
        return value.type()
    module = kind.__module__
    return kind.__qualname__ if module in ("builtins", "__builtin__", None) else f"{module}.{kind.__qualname__}"


def _parse_to(*args, **kwargs):
    """The device and the dtype of a call of to(); None: they stay."""
    device, dtype = kwargs.pop("device", None), kwargs.pop("dtype", None)
    other = kwargs.pop("tensor", kwargs.pop("other", None))
    for name in ("non_blocking", "copy", "memory_format"):
        kwargs.pop(name, None)
    if kwargs:
        raise TypeError(f"to() got an unexpected keyword argument '{next(iter(kwargs))}'")
    if args and isinstance(args[0], Tensor):
        other, args = args[0], args[1:]
    if other is not None:
        return other.device, other.dtype
    if args and isinstance(args[0], cairn.dtype):
        dtype, args = args[0], args[1:]
    elif args:
        device, args = args[0], args[1:]
        if args and isinstance(args[0], cairn.dtype):
            dtype = args[0]
    return device, dtype


register_module_backward_hook = register_module_full_backward_hook
