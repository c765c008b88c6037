"""ValueBatch: many values at once. It is to a Value what a row of numbers is to a number.

    x = ValueBatch([1.0, 2.0, 3.0])
    y = (x * x + 1).relu()
    y.backward()
    x.grad                         # tensor([2., 4., 6.])

The numbers are a cairn.Tensor, so a batch runs in fused kernels, on a GPU, in any floating dtype. The graph is
micrograd's: every batch knows its operands and how to hand its gradient to them.
"""

import contextlib
import threading

from .. import _micrograd
from .device import Device

Value = _micrograd.Value
_state = threading.local()


def _core():
    import cairn

    return cairn


@contextlib.contextmanager
def autocast(dtype=None, enabled=True):
    """Within the block batches compute in `dtype` (default: cairn.bfloat16). A gradient has the dtype of its batch."""
    before = getattr(_state, "dtype", None)
    _state.dtype = (dtype or _core().bfloat16) if enabled else None
    try:
        yield
    finally:
        _state.dtype = before


def is_batch(x):
    return isinstance(x, ValueBatch) or (isinstance(x, (list, tuple)) and any(isinstance(v, ValueBatch) for v in x))


def _values_in(data):
    """Whether a (nested) list has Values in it."""
    return isinstance(data, Value) or (isinstance(data, (list, tuple)) and any(map(_values_in, data)))


def _numbers(data):
    """A nested list with the numbers of its Values, and the flat list of its Values (None for plain numbers)."""
    if isinstance(data, Value):
        return data.data, [data]
    if not isinstance(data, (list, tuple)):
        return data, [None]
    pairs = [_numbers(element) for element in data]
    return [numbers for numbers, _ in pairs], [value for _, values in pairs for value in values]


def _fold(grad, shape):
    """The gradient of an operand that was repeated to the shape of the result: a sum over what was repeated."""
    extra = grad.dim() - len(shape)
    dims = [*range(extra), *(extra + i for i, n in enumerate(shape) if n == 1 and grad.shape[extra + i] != 1)]
    return grad.sum(dims, keepdim=True).reshape(shape) if dims else grad


class ValueBatch:
    """ValueBatch(data, _children=(), _op='', device=None, dtype=None): values that are computed together.

    data: numbers or Values in a (nested) list, a NumPy array, a cairn.Tensor, one number or Value. Gradients of a batch
    that was made from Values arrive in these Values.
    """

    __array_priority__ = 2000.0  # NumPy's numbers leave the operation to the batch

    def __init__(self, data, _children=(), _op="", *, device=None, dtype=None):
        cn = _core()
        self._values = None
        if isinstance(data, cn.Tensor):
            tensor = data.detach()
            if device is not None and str(device) != _name(tensor):
                tensor = tensor.to(str(Device.of(device)))
            self.data = tensor.to(dtype) if dtype is not None else tensor
        else:
            if _values_in(data):
                data, self._values = _numbers(data)
            self.data = cn.tensor(data, dtype=dtype or cn.get_default_dtype(), device=str(Device.of(device or "cpu")))
        if not self.data.is_floating_point():
            self.data = self.data.to(cn.get_default_dtype())
        self._grad = None
        self._prev = set(_children)
        self._op = _op
        self._hand_on = None

    # ---- what it is ----

    @property
    def grad(self):
        return _core().zeros_like(self.data) if self._grad is None else self._grad

    @grad.setter
    def grad(self, value):
        """A number (p.grad = 0) or a tensor."""
        if isinstance(value, (int, float)):
            self._grad = None if value == 0 else _core().full_like(self.data, value)
        else:
            self._grad = value

    @property
    def device(self):
        return Device.of(_name(self.data))

    @property
    def dtype(self):
        return self.data.dtype

    @property
    def shape(self):
        return self.data.shape

    def __len__(self):
        if not self.shape:
            raise TypeError("a batch of one value without dimensions has no len()")
        return self.shape[0]

    def tolist(self):
        return self.data.tolist()

    def item(self):
        return self.data.item()

    def __repr__(self):
        return f"ValueBatch(data={self.data.tolist()}, grad={self.grad.tolist()})"

    # ---- operators ----

    def _new(self, data, children, op, hand_on):
        """The result of an operation; hand_on(gradient) gives the operands theirs.

        hand_on must not refer to the result: that is a cycle, and tensors would wait for the garbage collector.
        """
        out = ValueBatch(data, children, op)
        out._hand_on = hand_on
        return out

    def _gain(self, grad):
        grad = _fold(grad, self.shape).to(self.dtype)
        self._grad = grad if self._grad is None else self._grad + grad

    def _operand(self, other):
        if isinstance(other, ValueBatch):
            if _name(other.data) != _name(self.data):
                raise _core().DeviceError(_mixed(self.device, other.device))
            return other
        if isinstance(other, Value):
            if self.device.is_gpu:
                raise _core().DeviceError(_mixed(self.device, other.device))
            return ValueBatch(other, dtype=self.dtype)
        tensor = _core().tensor(other, dtype=self.dtype, device=_name(self.data)) if _is_data(other) else None
        return None if tensor is None else ValueBatch(tensor)

    def __add__(self, other):
        other = self._operand(other)
        if other is None:
            return NotImplemented
        a, b = _cast(self), _cast(other)

        def hand_on(grad):
            self._gain(grad)
            other._gain(grad)

        return self._new(a + b, (self, other), "+", hand_on)

    def __mul__(self, other):
        other = self._operand(other)
        if other is None:
            return NotImplemented
        a, b = _cast(self), _cast(other)

        def hand_on(grad):
            self._gain(grad * b)
            other._gain(grad * a)

        return self._new(a * b, (self, other), "*", hand_on)

    def __pow__(self, exponent):
        if not isinstance(exponent, (int, float)):
            return NotImplemented
        a = _cast(self)
        return self._new(a**exponent, (self,), f"**{exponent}",
                         lambda grad: self._gain(grad * (exponent * a ** (exponent - 1))))

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        other = self._operand(other)
        return NotImplemented if other is None else self + other * -1

    def __rsub__(self, other):
        return -self + other

    def __truediv__(self, other):
        other = self._operand(other)
        return NotImplemented if other is None else self * other**-1

    def __rtruediv__(self, other):
        return self**-1 * other

    __radd__ = __add__
    __rmul__ = __mul__

    def relu(self):
        out = _cast(self).relu()
        return self._new(out, (self,), "ReLU", lambda grad: self._gain(grad * (out > 0)))

    def tanh(self):
        out = _cast(self).tanh()
        return self._new(out, (self,), "tanh", lambda grad: self._gain(grad * (1 - out * out)))

    def exp(self):
        out = _cast(self).exp()
        return self._new(out, (self,), "exp", lambda grad: self._gain(grad * out))

    def log(self):
        a = _cast(self)
        return self._new(a.log(), (self,), "log", lambda grad: self._gain(grad / a))

    def sigmoid(self):
        out = _cast(self).sigmoid()
        return self._new(out, (self,), "sigmoid", lambda grad: self._gain(grad * out * (1 - out)))

    def sum(self):
        """The sum of all values: a batch of one, without dimensions."""
        return self._new(_cast(self).sum(), (self,), "sum", lambda grad: self._gain(grad.expand(self.shape)))

    def mean(self):
        return self.sum() * (1.0 / self.data.numel())

    def column(self, j):
        """Column j of a batch of rows."""

        def hand_on(grad):
            whole = _core().zeros_like(self.data)
            whole[:, j] = grad
            self._gain(whole)

        return self._new(self.data[:, j], (self,), f"[{j}]", hand_on)

    def to(self, device):
        """The batch on a device; its gradient comes back."""
        device = Device.of(device)
        if device == self.device:
            return self
        home = _name(self.data)
        return self._new(self.data.to(str(device)), (self,), f"to {device}", lambda grad: self._gain(grad.to(home)))

    # ---- backward ----

    def backward(self):
        """Computes the gradient of every value of this batch, and adds it to .grad of everything they came from."""
        order, seen, waiting = [], set(), [(self, False)]
        while waiting:
            batch, done = waiting.pop()
            if done:
                order.append(batch)
            elif batch not in seen:
                seen.add(batch)
                waiting.append((batch, True))
                waiting.extend((operand, False) for operand in batch._prev)
        self._grad = _core().ones_like(self.data)
        values = []
        for batch in reversed(order):
            if batch._values:
                values.append(batch)
            elif batch._grad is not None:
                batch._backward()
        # Last, since it needs numbers: the first of them computes all.
        computed = [v for batch in values for v in batch._hand_to_values()]
        if computed:
            _micrograd.propagate(computed)

    def _backward(self):
        """Hands the gradient on to the operands."""
        if self._hand_on:
            self._hand_on(self.grad)

    def _hand_to_values(self):
        """Gives the Values this batch was made of their gradients. Returns those that have operands themselves."""
        grads = self.grad.reshape(-1).tolist()
        computed = []
        for value, grad in zip(self._values, grads):
            if value is not None:
                value.grad += grad
                if value._op:
                    computed.append(value)
        return computed


def _name(tensor):
    name = str(tensor.device)
    return "gpu" if name == "gpu:0" else name


def _mixed(a, b):
    return f"the operands are on different devices, {a} and {b}: move one with .to()"


def _is_data(other):
    return isinstance(other, (int, float, list, tuple)) or hasattr(other, "__array_interface__") or hasattr(
        other, "__float__")


def _cast(batch):
    dtype = getattr(_state, "dtype", None)
    return batch.data if dtype is None or dtype == batch.dtype else batch.data.to(dtype)


# ---- layers ----

def _stack(columns):
    """A batch of rows (N, n) from n batches or numbers."""
    cn = _core()
    like = next(c for c in columns if isinstance(c, ValueBatch))
    columns = [like._operand(c) for c in columns]
    if any(c is None for c in columns):
        raise TypeError("the inputs of a layer must be ValueBatches, Values or numbers")
    columns = [c if c.shape else c + ValueBatch(cn.zeros_like(like.data)) for c in columns]

    def hand_on(grad):
        for j, column in enumerate(columns):
            column._gain(grad[:, j])

    return like._new(cn.stack([c.data for c in columns], 1), tuple(columns), "stack", hand_on)


def _layer(neurons, x):
    """relu(x @ w.T + b): rows x (N, nin), w (nout, nin), b (nout)."""
    cn = _core()
    if len({len(n.w) for n in neurons}) != 1 or len(neurons[0].w) != x.shape[1]:
        raise ValueError(f"a layer of {len(neurons[0].w)} inputs got {x.shape[1]}")
    kept = {"device": x.device, "dtype": x.dtype}
    w, b = ValueBatch([n.w for n in neurons], **kept), ValueBatch([n.b for n in neurons], **kept)
    rows, weights = _cast(x), _cast(w)
    out = rows @ weights.T + _cast(b)
    nonlin = [bool(n.nonlin) for n in neurons]
    if all(nonlin):
        out = out.relu()
    elif any(nonlin):
        linear = cn.tensor([not n for n in nonlin], device=str(x.device))
        out = cn.where(linear, out, out.relu())

    def hand_on(grad):
        if all(nonlin):
            grad = grad * (out > 0)
        elif any(nonlin):
            grad = grad * ((out > 0) | linear)
        x._gain(grad @ weights)
        w._gain(grad.T @ rows)
        b._gain(grad.sum(0))

    return x._new(out, (x, w, b), "layer", hand_on)


def forward_batch(layers, x):
    """Layers, each a list of neurons, on a whole batch: x is (N, nin), or a list of nin batches of N values.

    The parameters stay Values: a call copies them to the device of x, and backward() brings their gradients back.
    """
    if not isinstance(x, ValueBatch):
        x = _stack(x)
    if len(x.shape) != 2:
        raise ValueError(f"a layer takes a batch of rows, (N, inputs), got {tuple(x.shape)}")
    for neurons in layers:
        x = _layer(neurons, x)
    columns = [x.column(j) for j in range(x.shape[1])]
    return columns[0] if len(columns) == 1 else columns
