"""Functions with a backward of their own: torch.autograd.function."""

import functools
import math

from .. import _C
from .._C import Tensor
from .._device import no_grad
from .._names import converted


class FunctionCtx:
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
        ctx = FunctionCtx(tuple(isinstance(a, Tensor) and a.requires_grad for a in args))
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
    """What a forward returns: a tensor or a tuple. The graph knows one tensor: several are joined, and split again."""

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


def once_differentiable(backward):
    """A decorator of a backward whose gradients have no gradients."""
    @functools.wraps(backward)
    def unrecorded(ctx, *grads):
        with no_grad():
            return backward(ctx, *grads)
    return unrecorded
