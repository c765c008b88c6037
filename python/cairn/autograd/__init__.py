"""Gradients: torch.autograd."""

from .. import _C
from .._C import Tensor
from .._device import enable_grad, inference_mode, no_grad, set_grad_enabled  # noqa: F401
from .function import Function  # noqa: F401


def Variable(data, requires_grad=False):
    """An old name: tensors and variables are one."""
    return data.detach().requires_grad_() if requires_grad and not data.requires_grad else data


def __getattr__(name):
    if name == "functional":
        import importlib
        return importlib.import_module(".functional", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _tuple(x):
    return (x,) if isinstance(x, Tensor) else tuple(x)


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=None,
         is_grads_batched=False, materialize_grads=False):
    """The gradients of outputs with respect to inputs; .grad of tensors is not changed."""
    if is_grads_batched:
        raise NotImplementedError("grad(is_grads_batched=True): call it once for each, or use cairn.func.jacrev")
    outputs, inputs = _tuple(outputs), _tuple(inputs)
    if grad_outputs is not None:
        given = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs)
        grad_outputs = tuple(_C.ones(tuple(y.shape), dtype=y.dtype) if g is None else g for y, g in zip(outputs, given))
    elif any(y.numel() != 1 for y in outputs):
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    unused = bool(allow_unused) or materialize_grads
    retain = create_graph if retain_graph is None else retain_graph
    found = _C._grad(outputs, inputs, grad_outputs, retain, create_graph, unused)
    if materialize_grads:
        found = tuple(_C.zeros_like(x) if g is None else g for g, x in zip(found, inputs))
    return found


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    """backward of several tensors. inputs: only these get a gradient."""
    tensors = _tuple(tensors)
    grad_tensors = grad_variables if grad_tensors is None else grad_tensors
    if inputs is not None:
        inputs = _tuple(inputs)
        if not inputs:
            raise RuntimeError("'inputs' argument to backward cannot be empty.")
        for x, g in zip(inputs, grad(tensors, inputs, grad_tensors, retain_graph, create_graph, allow_unused=True)):
            if g is not None:
                x.grad = g if x.grad is None else x.grad + g
        return
    given = [None] * len(tensors) if grad_tensors is None else _tuple(grad_tensors)
    for i, (x, g) in enumerate(zip(tensors, given)):
        last = i + 1 == len(tensors)
        x.backward(g, retain_graph=(create_graph if retain_graph is None else retain_graph) or not last,
                   create_graph=create_graph)


def _numbers(f, inputs):
    y = f(*inputs)
    return [y] if isinstance(y, Tensor) else list(y)


def gradcheck(func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, nondet_tol=0.0,
              check_undefined_grad=True, check_batched_grad=False, fast_mode=False):
    """Whether the gradients of func agree with finite differences. Inputs are float64."""
    inputs = _tuple(inputs)
    wanted = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]
    if not wanted:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of them have "
                         "requires_grad=True.")
    for k, y in enumerate(_numbers(func, inputs)):
        if not y.requires_grad:
            continue
        for element in range(y.numel()):
            seed = _C.zeros(y.numel(), dtype=y.dtype)
            seed[element] = 1
            rows = grad(_numbers(func, inputs)[k], wanted, seed.reshape(tuple(y.shape)), allow_unused=True)
            for x, row in zip(wanted, rows):
                row = _C.zeros_like(x) if row is None else row
                for place in range(x.numel()):
                    def at(step):
                        moved = x.detach().clone().reshape(-1)
                        moved[place] = moved[place] + step
                        moved = moved.reshape(tuple(x.shape))
                        with no_grad():
                            other = _numbers(func, [moved if i is x else i for i in inputs])[k]
                        return other.reshape(-1)[element].item()
                    numeric = (at(eps) - at(-eps)) / (2 * eps)
                    own = row.reshape(-1)[place].item()
                    if not abs(own - numeric) <= atol + rtol * abs(numeric):
                        if raise_exception:
                            raise RuntimeError(f"Jacobian mismatch for output {k} element {element}: "
                                               f"numerical {numeric}, analytical {own}")
                        return False
    return True


def gradgradcheck(func, inputs, grad_outputs=None, **options):
    """Whether the gradients of the gradients agree with finite differences."""
    inputs = _tuple(inputs)
    wanted = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]

    def first(*args):
        ys = [y for y in _numbers(func, args) if y.requires_grad]
        xs = [args[i] if args[i].requires_grad else args[i].requires_grad_() for i in wanted]
        seeds = [_C.ones(tuple(y.shape), dtype=y.dtype) for y in ys]
        return grad(ys, xs, seeds, create_graph=True, materialize_grads=True)

    def recorded(*args):
        with enable_grad():
            return first(*[a.detach().requires_grad_() if i in wanted and not a.requires_grad else a
                           for i, a in enumerate(args)])
    return gradcheck(recorded, inputs, **options)


class set_detect_anomaly:
    """Accepted; wrong numbers are looked for with isnan."""

    def __init__(self, mode=True, check_nan=True):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


detect_anomaly = set_detect_anomaly


class graph:
    """There are no graph nodes in Python."""

    Node = type(None)
