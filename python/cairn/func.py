"""Functions of functions: torch.func. Derivatives are gradients of recorded calls; vmap calls once for each slice."""

from . import _C
from ._C import Tensor
from .autograd import grad as _grad


def _leaves(args, places):
    """The arguments, with those at the places as leaves that require a gradient."""
    args = list(args)
    for i in places:
        args[i] = _as_leaf(args[i])
    return args


def _as_leaf(x):
    if isinstance(x, Tensor):
        return x.view(tuple(x.shape)) if x.requires_grad else x.detach().requires_grad_()
    if isinstance(x, dict):
        return {k: _as_leaf(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)(_as_leaf(v) for v in x)
    return x


def _flat(x):
    if isinstance(x, Tensor):
        return [x]
    if isinstance(x, dict):
        return [leaf for v in x.values() for leaf in _flat(v)]
    return [leaf for v in x for leaf in _flat(v)]


def _shaped_like(x, values):
    if isinstance(x, Tensor):
        return next(values)
    if isinstance(x, dict):
        return {k: _shaped_like(v, values) for k, v in x.items()}
    return type(x)(_shaped_like(v, values) for v in x)


def grad_and_value(func, argnums=0, has_aux=False):
    """A function that returns the gradient of func, and its value."""
    single = isinstance(argnums, int)
    places = (argnums,) if single else tuple(argnums)

    def f(*args, **kwargs):
        before = _C._set_grad_enabled(True)
        try:
            own = _leaves(args, places)
            out = func(*own, **kwargs)
            value, aux = out if has_aux else (out, None)
            if value.numel() != 1:
                raise RuntimeError("Expected f(*args) to return a scalar tensor")
            wanted = _flat([own[i] for i in places])
            found = iter(_grad(value, wanted, create_graph=before and any(x.requires_grad for x in _flat([
                a for a in args if isinstance(a, (Tensor, dict, list, tuple))])), materialize_grads=True))
            grads = tuple(_shaped_like(own[i], found) for i in places)
        finally:
            _C._set_grad_enabled(before)
        grads = grads[0] if single else grads
        return (grads, (value.detach(), aux)) if has_aux else (grads, value)
    return f


def grad(func, argnums=0, has_aux=False):
    """A function that returns the gradient of func, which returns a single number."""
    both = grad_and_value(func, argnums, has_aux)

    def f(*args, **kwargs):
        grads, rest = both(*args, **kwargs)
        return (grads, rest[1]) if has_aux else grads
    return f


def vjp(func, *primals):
    """(func(*primals), a function from a gradient of the result to gradients of the primals)."""
    own = [_as_leaf(x) for x in primals]
    y = func(*own)

    def back(cotangent):
        return _grad(y, own, cotangent, retain_graph=True, materialize_grads=True)
    return y, back


def jvp(func, primals, tangents):
    """(func(*primals), its derivative in the direction of the tangents)."""
    own = [_as_leaf(x) for x in primals]
    y = func(*own)
    u = _C.zeros_like(y).requires_grad_()
    back = _grad(y, own, u, create_graph=True, materialize_grads=True)
    pairs = [(b, t) for b, t in zip(back, tangents) if b.requires_grad]
    if not pairs:
        return y.detach(), _C.zeros_like(y)
    along = _grad([b for b, _ in pairs], u, [t for _, t in pairs], materialize_grads=True)[0]
    return y.detach(), along


def jacrev(func, argnums=0):
    """A function that returns the Jacobian of func: the result's shape, then the argument's."""
    def f(*args):
        own = _leaves(args, (argnums,))
        y = func(*own)
        flat = y.reshape(-1)
        rows = [_grad(flat[i], own[argnums], retain_graph=True, create_graph=True, materialize_grads=True)[0]
                for i in range(flat.numel())]
        return _C.stack(rows).reshape(tuple(y.shape) + tuple(own[argnums].shape))
    return f


jacfwd = jacrev


def hessian(func, argnums=0):
    """A function that returns the matrix of second derivatives of func."""
    return jacrev(jacrev(func, argnums), argnums)


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """A function that calls func once for each slice of its arguments, and stacks the results."""
    def f(*args):
        dims = in_dims if isinstance(in_dims, tuple) else (in_dims,) * len(args)
        sizes = {a.shape[d] for a, d in zip(args, dims) if d is not None}
        if len(sizes) != 1:
            raise ValueError("vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
                             f"{sorted(sizes)}")
        results = [func(*(a if d is None else a.select(d, i) for a, d in zip(args, dims))) for i in range(sizes.pop())]
        if isinstance(results[0], tuple):
            outs = out_dims if isinstance(out_dims, tuple) else (out_dims,) * len(results[0])
            return tuple(_C.stack([r[k] for r in results], o) for k, o in enumerate(outs))
        return _C.stack(results, out_dims)
    return f


def functional_call(module, parameter_and_buffer_dicts, args=(), kwargs=None, *, strict=False):
    """Calls the module with these tensors in place of its parameters and buffers."""
    dicts = parameter_and_buffer_dicts
    merged = {}
    for d in (dicts,) if isinstance(dicts, dict) else dicts:
        merged.update(d)
    args = args if isinstance(args, tuple) else (args,)
    saved = []
    try:
        for name, value in merged.items():
            path, _, last = name.rpartition(".")
            owner = module.get_submodule(path)
            for table in (owner._parameters, owner._buffers):
                if last in table:
                    saved.append((table, last, table[last]))
                    table[last] = value
                    break
            else:
                if strict:
                    raise RuntimeError(f"functional_call: the module has no '{name}'")
        return module(*args, **(kwargs or {}))
    finally:
        for table, last, value in reversed(saved):
            table[last] = value


def stack_module_state(models):
    """(parameters, buffers) of several models of one kind, stacked."""
    def stacked(names):
        return {n: _C.stack([dict(m)[n].detach() for m in names]) for n in dict(names[0])}
    return (stacked([list(m.named_parameters()) for m in models]), stacked([list(m.named_buffers()) for m in models]))
