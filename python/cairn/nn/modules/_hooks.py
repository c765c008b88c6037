"""What hooks of modules share: handles that remove them, and the borders at which gradients are seen."""

from collections import OrderedDict
from itertools import count
from weakref import ref

import cairn
from cairn import Tensor, _C


class RemovableHandle:
    """Removes a hook: ``handle.remove()``, or at the end of a ``with`` statement."""

    _numbers = count()

    def __init__(self, hooks, *, extra_dict=None):
        self.hooks_dict_ref = ref(hooks)
        self.id = next(RemovableHandle._numbers)
        extra = extra_dict if isinstance(extra_dict, (list, tuple)) else () if extra_dict is None else (extra_dict,)
        self.extra_dict_ref = tuple(ref(d) for d in extra)

    def remove(self):
        for each in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = each()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.remove()

    # A copy of a module has hooks of its own, which the handle of the first one does not know.
    def __getstate__(self):
        return self.hooks_dict_ref(), self.id

    def __setstate__(self, state):
        hooks, self.id = state
        self.hooks_dict_ref = ref(OrderedDict() if hooks is None else hooks)
        self.extra_dict_ref = ()


def add_hook(hooks, hook, *extra, prepend=False):
    """Adds a hook to a dict, and to dicts that say more of it; returns its handle."""
    handle = RemovableHandle(hooks, extra_dict=[d for d, _ in extra])
    hooks[handle.id] = hook
    for d, value in extra:
        d[handle.id] = value
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


class Border:
    """Shows the gradients that enter and leave a module in backward to its hooks.

    The module's operands pass one border, its results another. In backward the gradients of all tensors of a border
    arrive together.
    """

    def __init__(self, module, hooks, pre_hooks):
        self.module, self.hooks, self.pre_hooks = module, hooks, pre_hooks
        self.grad_outputs = None
        self.operands = self.results = 0
        self.operands_at = None

    def pass_operands(self, args):
        tensors, at = tensors_of(args)
        self.operands = len(args)
        if not tensors:
            return args
        self.operands_at = at
        return with_tensors(args, cross(tensors, self.leave), at)

    def pass_results(self, result):
        single = not isinstance(result, (tuple, list))
        values = (result,) if single else tuple(result)
        tensors, at = tensors_of(values)
        self.results, self.results_at = len(values), at
        if not tensors:
            return result
        values = with_tensors(values, cross(tensors, self.enter), at)
        return values[0] if single else rebuilt(result, values)

    def enter(self, grads):
        """The gradients of the results arrive."""
        for hook in self.pre_hooks:
            changed = hook(self.module, spread(grads, self.results_at, self.results))
            if changed is not None:
                changed = as_tuple(changed, self.results, "Backward pre hook", "grad_output")
                grads = tuple(changed[i] for i in self.results_at)
        self.grad_outputs = spread(grads, self.results_at, self.results)
        if self.operands_at is None:  # no operand has a gradient: nothing will leave
            for hook in self.hooks:
                if hook(self.module, (None,) * self.operands, self.grad_outputs) is not None:
                    raise RuntimeError("Backward hook for Modules where no input requires gradient should always "
                                       "return None or None for all gradients.")
            self.grad_outputs = None
        return grads

    def leave(self, grads):
        """The gradients of the operands are computed."""
        for hook in self.hooks:
            changed = hook(self.module, spread(grads, self.operands_at, self.operands), self.grad_outputs)
            if changed is not None:
                changed = as_tuple(changed, self.operands, "Backward hook", "grad_input")
                grads = tuple(changed[i] for i in self.operands_at)
        self.grad_outputs = None
        return grads


def as_tuple(values, n, what, name):
    values = values if isinstance(values, tuple) else (values,)
    if len(values) != n:
        raise RuntimeError(f"{what} returned an invalid number of {name}, got {len(values)}, but expected {n}")
    return values


def tensors_of(values):
    """The tensors that have gradients, and their places."""
    at = [i for i, v in enumerate(values) if isinstance(v, Tensor) and v.requires_grad]
    return [values[i] for i in at], at


def with_tensors(values, tensors, at):
    values = list(values)
    for i, t in zip(at, tensors):
        values[i] = t
    return tuple(values)


def spread(grads, at, n):
    return with_tensors((None,) * n, grads, at)


def rebuilt(like, values):
    if isinstance(like, tuple) and hasattr(like, "_fields"):  # a named tuple
        return type(like)(*values)
    return type(like)(values)


def cross(tensors, seen):
    """The same tensors; in backward, seen(gradients) returns the gradients that go on. Several cross as one vector, so
    that their gradients arrive together."""
    if len(tensors) == 1:
        return [_C._custom((tensors[0],), copy, lambda grad: seen((grad,))[0])]
    vector = cairn.cat([t.reshape(-1) for t in tensors])
    like = [t.detach() for t in tensors]

    def back(grad):
        return cairn.cat([g.reshape(-1).to(grad.dtype) for g in seen(tuple(split(grad, like)))])

    return split(_C._custom((vector,), copy, back), like)


def copy(tensors):
    return tensors[0].clone()


def split(vector, tensors):
    """The parts of a vector that have the shapes and dtypes of the tensors."""
    parts, at = [], 0
    for t in tensors:
        parts.append(vector[at:at + t.numel()].reshape(tuple(t.shape)).to(t.dtype))
        at += t.numel()
    return parts
