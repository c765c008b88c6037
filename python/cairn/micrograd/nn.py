"""Neurons, layers, multi-layer perceptrons.

The weights are Values in lists that a program may read and change. A call runs in C (micrograd_src/layer.c). What C
leaves to Python is in `_forward`: Values of a class of your own, weights that are ints, batches.
"""

import copyreg
import random

from .. import _micrograd
from .batch import forward_batch, is_batch
from .engine import Value


class Module:
    def zero_grad(self):
        for p in self.parameters():
            p.grad = 0

    def parameters(self):
        return []


class _Fields(Module):
    """A module whose fields are kept in C: copying and pickling have to be told of them."""

    def __reduce__(self):
        fields = {name: getattr(self, name) for name in self._fields}
        return copyreg.__newobj__, (type(self),), (self.__dict__, fields)


class Neuron(_micrograd.Neuron, _Fields):
    """relu(b + w[0] x[0] + w[1] x[1] + ...); without relu if nonlin is False."""

    _fields = ("w", "b", "nonlin")

    def __init__(self, nin, nonlin=True):
        self.w = [Value(random.uniform(-1, 1)) for _ in range(nin)]
        self.b = Value(0)
        self.nonlin = nonlin

    def _forward(self, x):
        if is_batch(x):
            return forward_batch([[self]], x)
        x = list(x)
        if len(x) != len(self.w):
            raise ValueError(f"a neuron of {len(self.w)} inputs got {len(x)}")
        out = self.b
        for wi, xi in zip(self.w, x):
            out = out + wi * xi
        return out.relu() if self.nonlin else out

    def parameters(self):
        return [*self.w, self.b]

    def __repr__(self):
        return f"{'ReLU' if self.nonlin else 'Linear'}Neuron({len(self.w)})"


class Layer(_micrograd.Layer, _Fields):
    """nout neurons over the same inputs. A call returns a list of Values, or a single one if nout is 1."""

    _fields = ("neurons",)

    def __init__(self, nin, nout, **kwargs):
        self.neurons = [Neuron(nin, **kwargs) for _ in range(nout)]

    def _forward(self, x):
        if is_batch(x):
            return forward_batch([self.neurons], x)
        x = [x] if isinstance(x, Value) else list(x)
        out = [neuron(x) for neuron in self.neurons]
        return out[0] if len(out) == 1 else out

    def parameters(self):
        found = []
        for neuron in self.neurons:
            found += neuron.parameters()
        return found

    def __repr__(self):
        return f"Layer of [{', '.join(map(str, self.neurons))}]"


class MLP(_micrograd.MLP, _Fields):
    """Layers one after another, relu between them: MLP(2, [16, 16, 1])."""

    _fields = ("layers",)

    def __init__(self, nin, nouts):
        sizes = [nin, *nouts]
        last = len(nouts) - 1
        self.layers = [Layer(sizes[i], sizes[i + 1], nonlin=i != last) for i in range(len(nouts))]

    def _forward(self, x):
        if is_batch(x):
            return forward_batch([layer.neurons for layer in self.layers], x)
        for layer in self.layers:
            x = layer(x)
        return x

    def parameters(self):
        found = []
        for layer in self.layers:
            found += layer.parameters()
        return found

    def __repr__(self):
        return f"MLP of [{', '.join(map(str, self.layers))}]"
