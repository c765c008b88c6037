"""Scalar autograd with micrograd's names: Value, Neuron, Layer, MLP. See docs/micrograd.md.

    from cairn.micrograd import MLP, Value

    a, b = Value(-4.0), Value(2.0)
    c = (a * b + b**3).relu()
    c.backward()
    a.grad, b.grad

Batches of values (ValueBatch), devices and drawings (draw_dot) come with it. `cairn.micrograd.engine` and
`cairn.micrograd.nn` are where micrograd has them.
"""

from . import engine, nn
from .batch import ValueBatch, autocast
from .device import Device
from .draw import Drawing, draw_dot, trace
from .engine import Value
from .nn import MLP, Layer, Module, Neuron

__all__ = [
    "MLP", "Device", "Drawing", "Layer", "Module", "Neuron", "Value", "ValueBatch", "autocast", "draw_dot", "engine",
    "nn", "trace",
]
