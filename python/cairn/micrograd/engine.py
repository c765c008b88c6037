"""Value: a number that remembers where it came from. The type is written in C: micrograd_src/value.c.

What the C part asks Python for stands here.
"""

import operator

from .. import _micrograd
from .device import Device

Value = _micrograd.Value


def _with_array(name, x, y):
    """An operator between a Value and a NumPy array: the array of the results, element by element."""
    array, value_first = (y, True) if isinstance(x, Value) else (x, False)
    apply = getattr(operator, name)
    out = array.astype(object)
    flat = out.reshape(-1)
    for i, element in enumerate(array.reshape(-1).tolist()):
        flat[i] = apply(x, element) if value_first else apply(element, y)
    return flat.reshape(out.shape)


def _move(value, device):
    device = Device.of(device)
    if device == Device.cpu():
        return value
    from .batch import ValueBatch

    return ValueBatch([value]).to(device)


def _restore(cls, data, grad, attributes):
    """A copied or unpickled Value."""
    value = cls.__new__(cls)
    Value.__init__(value, data)
    value.grad = grad
    if attributes:
        value.__dict__.update(attributes)
    return value


_micrograd.helpers.update(with_array=_with_array, cpu=Device.cpu, move=_move, restore=_restore)
