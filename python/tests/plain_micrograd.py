"""A scalar autograd engine in plain Python, as slow and obvious as can be: what cairn.micrograd is compared with.

The names are micrograd's, so a program that is given this module in place of cairn.micrograd does the same.
"""

import math
import random


class Value:
    def __init__(self, data, _children=(), _op=""):
        self.data, self.grad = data, 0
        self._children, self._op = tuple(_children), _op
        self._slopes = ()  # of this value, one for each child: functions without parameters

    @property
    def _prev(self):
        return set(self._children)

    @staticmethod
    def _of(x):
        return x if isinstance(x, Value) else Value(x)

    def _made(self, data, op, *operands):
        out = Value(data, [child for child, _ in operands], op)
        out._slopes = [slope for _, slope in operands]
        return out

    def __add__(self, other):
        other = Value._of(other)
        return self._made(self.data + other.data, "+", (self, lambda: 1), (other, lambda: 1))

    def __mul__(self, other):
        other = Value._of(other)
        return self._made(self.data * other.data, "*", (self, lambda: other.data), (other, lambda: self.data))

    def __pow__(self, n):
        return self._made(self.data**n, f"**{n}", (self, lambda: n * self.data ** (n - 1)))

    def relu(self):
        out = self._made(0 if self.data < 0 else self.data, "ReLU", (self, lambda: out.data > 0))
        return out

    def tanh(self):
        t = math.tanh(self.data)
        return self._made(t, "tanh", (self, lambda: 1 - t * t))

    def exp(self):
        e = math.exp(self.data)
        return self._made(e, "exp", (self, lambda: e))

    def log(self):
        return self._made(math.log(self.data), "log", (self, lambda: 1 / self.data))

    def sigmoid(self):
        s = 1 / (1 + math.exp(-self.data))
        return self._made(s, "sigmoid", (self, lambda: s * (1 - s)))

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + (-other)

    def __rsub__(self, other):
        return -self + other

    def __truediv__(self, other):
        return self * other**-1

    def __rtruediv__(self, other):
        return self**-1 * other

    __radd__, __rmul__ = __add__, __mul__

    def backward(self):
        order, seen, waiting = [], set(), [(self, False)]
        while waiting:
            value, done = waiting.pop()
            if done:
                order.append(value)
            elif value not in seen:
                seen.add(value)
                waiting.append((value, True))
                waiting.extend((child, False) for child in value._children)
        self.grad = 1
        for value in reversed(order):
            for child, slope in zip(value._children, value._slopes):
                child.grad += slope() * value.grad

    def __repr__(self):
        return f"Value(data={self.data}, grad={self.grad})"


class Neuron:
    def __init__(self, nin, nonlin=True):
        self.w = [Value(random.uniform(-1, 1)) for _ in range(nin)]
        self.b = Value(0)
        self.nonlin = nonlin

    def __call__(self, x):
        out = sum((w * v for w, v in zip(self.w, x)), self.b)
        return out.relu() if self.nonlin else out

    def parameters(self):
        return self.w + [self.b]


class MLP:
    def __init__(self, nin, nouts):
        sizes = [nin] + nouts
        self.layers = [[Neuron(sizes[i], i + 1 < len(nouts)) for _ in range(n)] for i, n in enumerate(nouts)]

    def __call__(self, x):
        for layer in self.layers:
            x = [neuron(x) for neuron in layer]
        return x[0] if len(x) == 1 else x

    def parameters(self):
        return [p for layer in self.layers for neuron in layer for p in neuron.parameters()]

    def zero_grad(self):
        for p in self.parameters():
            p.grad = 0
