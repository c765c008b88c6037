"""Gradients: torch.autograd."""

import math

from . import _C
from ._C import Tensor
from ._device import enable_grad, inference_mode, no_grad, set_grad_enabled  # noqa: F401
from ._names import converted


def Variable(data, requires_grad=False):
    """An old name: tensors and variables are one."""
    return data.detach().requires_grad_() if requires_grad and not data.requires_grad else data


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


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False):
    """backward of several tensors."""
    tensors = _tuple(tensors)
    given = [None] * len(tensors) if grad_tensors is None else _tuple(grad_tensors)
    for i, (x, g) in enumerate(zip(tensors, given)):
        last = i + 1 == len(tensors)
        x.backward(g, retain_graph=(create_graph if retain_graph is None else retain_graph) or not last,
                   create_graph=create_graph)


class _Context:
    """What forward leaves for backward: ctx."""

    def __init__(self, needs):
        self._saved, self.needs_input_grad, self._constant = (), needs, []

    def save_for_backward(self, *tensors):
        self._saved = tensors

    @property
    def saved_tensors(self):
        return self._saved

    saved_variables = saved_tensors

    def mark_non_differentiable(self, *tensors):
        self._constant += tensors

    def mark_dirty(self, *tensors):
        raise NotImplementedError("mark_dirty(): an input that forward changes in place; return a new tensor instead")

    def set_materialize_grads(self, value):
        pass


class Function:
    """A function with a backward of its own: write forward(ctx, ...) and backward(ctx, grad), and call apply."""

    @staticmethod
    def forward(ctx, *args, **kwargs):
        raise NotImplementedError("a Function needs a forward")

    @staticmethod
    def backward(ctx, *grads):
        raise NotImplementedError("a Function needs a backward")

    @classmethod
    def apply(cls, *args):
        places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx = _Context(tuple(isinstance(a, Tensor) and a.requires_grad for a in args))
        results = None  # of forward: a _Results

        def call(tensors):
            nonlocal results
            full = list(args)
            for i, x in zip(places, tensors):
                full[i] = x
            if "setup_context" in cls.__dict__:
                made = cls.forward(*full)
                cls.setup_context(ctx, tuple(full), made)
            else:
                made = cls.forward(ctx, *full)
            results = _Results(made, ctx._constant)
            return results.joined()

        if not any(ctx.needs_input_grad) or not _C.is_grad_enabled():
            with no_grad():
                call([args[i] for i in places])
            return results.made

        def back(gradient):
            found = cls.backward(ctx, *results.gradients(gradient))
            found = found if isinstance(found, tuple) else (found,)
            if len(found) < len(args):
                raise RuntimeError(f"function {cls.__name__}Backward returned an incorrect number of gradients "
                                   f"(expected {len(args)}, got {len(found)})")
            return tuple(found[i] for i in places)

        joined = _C._custom(tuple(args[i] for i in places), call, back)
        return results.split(joined)


class _Results:
    """What a forward returns: a tensor or a tuple. The graph knows one tensor, so several are joined, and split again."""

    def __init__(self, made, constant):
        self.made = made
        self.all = made if isinstance(made, tuple) else (made,)
        self.shapes = [(tuple(y.shape), y.dtype) if isinstance(y, Tensor) else None for y in self.all]
        constant = {id(y) for y in constant}
        self.places = [i for i, y in enumerate(self.all)
                       if isinstance(y, Tensor) and y.is_floating_point() and id(y) not in constant]

    def joined(self):
        if not self.places:  # nothing to differentiate; the graph still wants a tensor
            return self.all[0]
        parts = [self.all[i] for i in self.places]
        return parts[0] if len(parts) == 1 else _C.cat([y.reshape(-1) for y in parts])

    def parts(self, joined):
        """The result, or its gradient, taken apart: a tensor for each place."""
        if len(self.places) == 1:
            return [joined]
        shapes = [self.shapes[i] for i in self.places]
        pieces = joined.split([math.prod(shape) for shape, _ in shapes])
        return [converted(piece.reshape(shape), dtype) for piece, (shape, dtype) in zip(pieces, shapes)]

    def split(self, joined):
        if not self.places:
            return self.made
        results, several = list(self.all), isinstance(self.made, tuple)
        for i, y in zip(self.places, self.parts(joined)):
            results[i] = y
        self.all = self.made = None  # the graph keeps this object, and need not keep the values
        return tuple(results) if several else results[0]

    def gradients(self, joined):
        """One gradient for each result, zeros for those without."""
        found = [None if s is None else _C.zeros(s[0], dtype=s[1]) for s in self.shapes]
        for i, g in zip(self.places, self.parts(joined)):
            found[i] = g
        return found


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


class _Functional:
    """torch.autograd.functional."""

    @staticmethod
    def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False):
        single = isinstance(inputs, Tensor)
        xs = tuple(x if create_graph and x.requires_grad else x.detach().requires_grad_() for x in _tuple(inputs))
        y = func(*xs)
        rows = []
        for element in range(y.numel()):
            g = grad(y.reshape(-1)[element], xs, retain_graph=True, create_graph=create_graph, materialize_grads=True)
            rows.append(g)
        found = tuple(_C.stack([r[i] for r in rows]).reshape(tuple(y.shape) + tuple(x.shape)) for i, x in enumerate(xs))
        return found[0] if single else found

    @staticmethod
    def hessian(func, inputs, create_graph=False, strict=False, vectorize=False):
        def first(x):
            x = x if x.requires_grad else x.requires_grad_()
            return grad(func(x), x, create_graph=True)[0]
        if not isinstance(inputs, Tensor):
            raise NotImplementedError("hessian(): one input; join several with cairn.cat")
        return _Functional.jacobian(first, inputs, create_graph=create_graph)

    @staticmethod
    def vjp(func, inputs, v=None, create_graph=False, strict=False):
        single = isinstance(inputs, Tensor)
        xs = tuple(x.detach().requires_grad_() for x in _tuple(inputs))
        y = func(*xs)
        g = grad(y, xs, v, create_graph=create_graph, materialize_grads=True)
        return y.detach(), g[0] if single else g


functional = _Functional


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
