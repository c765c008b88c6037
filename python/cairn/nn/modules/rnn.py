"""RNN, LSTM and GRU over sequences, and the cells of one step.

One matrix product computes the input's share of the gates for all steps; the operator `_recurrent` does the rest, step
by step. With a projection the state that goes from step to step is q, before the projection h = q·w_hrᵀ: since
h·w_hhᵀ = q·(w_hh·w_hr)ᵀ, the operator gets the product of both weights, and one product projects q of all steps.
"""

import math
import numbers
import warnings

import cairn
from cairn import _C

from .. import functional as F
from .. import init
from ..parameter import Parameter
from ..utils.rnn import PackedSequence, _lengths_of, _pack_index, _pad_index
from .module import Module

__all__ = ["RNNBase", "RNN", "LSTM", "GRU", "RNNCellBase", "RNNCell", "LSTMCell", "GRUCell"]

_GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}  # LSTM: i f g o, GRU: r z n


class RNNBase(Module):
    """What the three share: parameters weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, weight_hr_l0, .._reverse."""

    def __init__(self, mode, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
                 bidirectional=False, proj_size=0, device=None, dtype=None):
        super().__init__()
        if not isinstance(dropout, numbers.Number) or not 0 <= dropout <= 1 or isinstance(dropout, bool):
            raise ValueError("dropout should be a number in range [0, 1] representing the probability of an element "
                             "being zeroed")
        if dropout > 0 and num_layers == 1:
            warnings.warn("dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                          f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                          stacklevel=3)
        if not isinstance(hidden_size, int):
            raise TypeError(f"hidden_size should be of type int, got: {type(hidden_size).__name__}")
        if hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._flat_weights_names, self._all_weights = [], []
        directions = 2 if bidirectional else 1
        rows, state = _GATES[mode] * hidden_size, proj_size or hidden_size
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[:directions]:
                width = input_size if layer == 0 else state * directions
                shapes = {"weight_ih": (rows, width), "weight_hh": (rows, state)}
                if bias:
                    shapes.update(bias_ih=(rows,), bias_hh=(rows,))
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                names = []
                for name, shape in shapes.items():
                    names.append(f"{name}_l{layer}{suffix}")
                    setattr(self, names[-1], Parameter(cairn.empty(shape, device=device, dtype=dtype)))
                self._all_weights.append(names)
                self._flat_weights_names += names
        self.reset_parameters()

    def reset_parameters(self):
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self):
        """Nothing to do: the planner places weights."""

    @property
    def all_weights(self):
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights(self):
        return [getattr(self, name) for name in self._flat_weights_names]

    # ---- checks ----

    def check_input(self, input, batch_sizes):
        expected = 2 if batch_sizes is not None else 3
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got "
                               f"{input.shape[-1]}")

    def _expected(self, batch, width):
        return self.num_layers * (2 if self.bidirectional else 1), batch, width

    def check_hidden_size(self, hx, expected_hidden_size, msg="Expected hidden size {}, got {}"):
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def permute_hidden(self, hx, permutation):
        return hx if permutation is None else hx.index_select(1, permutation)

    # ---- forward ----

    def _cell(self, index, x, h0, c0, lengths):
        """One direction of one layer: x (T, B, I) -> (y (T, B, H), h (B, H), c (B, H) or None)."""
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh") if self.bias else ("weight_ih", "weight_hh")
        weights = dict(zip(names, (getattr(self, name) for name in self._all_weights[index])))
        reverse = self.bidirectional and index % 2 == 1
        gates = F.linear(x, weights["weight_ih"], weights.get("bias_ih"))
        w = weights["weight_hh"]
        if self.proj_size:
            w_hr = getattr(self, self._all_weights[index][-1])
            if h0 is not None:
                gates = self._add_first(gates, h0.matmul(w.t()), lengths, reverse)
            w = w.matmul(w_hr)
            h0 = cairn.zeros((x.shape[1], self.hidden_size), dtype=w.dtype, device=w.device)
        y, cells = _C._recurrent(gates, w, weights.get("bias_hh"), h0, c0, lengths, self.mode.lower(), reverse)
        if self.proj_size:
            y = y.matmul(w_hr.t())
        last_c = None if c0 is None else self._last(cells, lengths, reverse)
        return y, self._last(y, lengths, reverse), last_c

    @staticmethod
    def _add_first(gates, share, lengths, reverse):
        """Adds h0's share to the gates (T, B, 4H) of each sequence's first step."""
        steps = cairn.arange(gates.shape[0], device=gates.device).unsqueeze(1)
        if lengths is not None and reverse:
            first = steps == lengths - 1
        else:
            first = steps == (gates.shape[0] - 1 if reverse else 0)
        return gates + share * first.unsqueeze(2).to(share.dtype)

    @staticmethod
    def _last(states, lengths, reverse):
        """(T, B, H) -> (B, H): the states after each sequence's last step."""
        if reverse:
            return states[0]
        if lengths is None:
            return states[-1]
        batch, width = states.shape[1:]
        last = (lengths - 1).reshape(1, batch, 1).expand(1, batch, width)
        return states.gather(0, last)[0]

    def _run(self, x, h0, c0, lengths):
        """x (T, B, I) -> (y, h_n, c_n or None); the states are (layers·directions, B, H)."""
        directions = 2 if self.bidirectional else 1
        last_h, last_c = [], []
        for layer in range(self.num_layers):
            if layer and self.dropout and self.training:
                x = F.dropout(x, self.dropout)
            results = []
            for i in range(layer * directions, (layer + 1) * directions):
                y, h, c = self._cell(i, x, None if h0 is None else h0[i], None if c0 is None else c0[i], lengths)
                results.append(y)
                last_h.append(h)
                last_c.append(c)
            x = results[0] if directions == 1 else _C.cat(results, 2)
        return x, _C.stack(last_h), None if c0 is None else _C.stack(last_c)

    def _zeros(self, x, batch, width):
        return cairn.zeros(self._expected(batch, width), dtype=x.dtype, device=x.device)

    def _forward(self, input, states):
        """The common part of forward. states: the given first states, or None. Returns (output, h_n, c_n)."""
        lstm = self.mode == "LSTM"
        widths = (self.proj_size or self.hidden_size, self.hidden_size)
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, states, widths[:1 + lstm])
        if input.dim() not in (2, 3):
            raise ValueError(f"{self._get_name()}: Expected input to be 2D or 3D, got {input.dim()}D tensor instead")
        batched = input.dim() == 3
        if states is not None:
            self._check_axes(states, batched)
        x = input if batched else input.unsqueeze(0 if self.batch_first else 1)
        states = None if states is None else [s if batched else s.unsqueeze(1) for s in states]
        self.check_input(x, None)
        x = x.transpose(0, 1) if self.batch_first else x
        h0, c0 = self._first_states(x, states, x.shape[1], widths[:1 + lstm])
        y, h, c = self._run(x, h0, c0, None)
        y = y.transpose(0, 1) if self.batch_first else y
        if batched:
            return y, h, c
        return y.squeeze(0 if self.batch_first else 1), h.squeeze(1), None if c is None else c.squeeze(1)

    def _check_axes(self, states, batched):
        wanted, what = (3, "batched 3-D") if batched else (2, "unbatched 2-D")
        if any(s.dim() != wanted for s in states):
            if len(states) == 2:
                raise RuntimeError(f"For {what} input, hx and cx should also be {wanted}-D but got "
                                   f"({states[0].dim()}-D, {states[1].dim()}-D) tensors")
            raise RuntimeError(f"For {what} input, hx should also be {wanted}-D but got {states[0].dim()}-D tensor")

    def _first_states(self, x, states, batch, widths):
        if states is None:
            first = [self._zeros(x, batch, width) for width in widths]
            if self.proj_size:  # zeros need not be added to the gates
                first[0] = None
        else:
            first = list(states)
            for i, (state, width) in enumerate(zip(first, widths)):
                message = "Expected hidden size {}, got {}" if len(widths) == 1 else (
                    f"Expected hidden[{i}] size {{}}, got {{}}")
                self.check_hidden_size(state, self._expected(batch, width), message)
        return first[0], first[1] if len(widths) == 2 else None

    def _forward_packed(self, input, states, widths):
        """The sequences are filled up to one length; what lies behind their ends is not read."""
        data, batch_sizes, order, back = input
        self.check_input(data, batch_sizes)
        sizes = batch_sizes.tolist()
        batch = sizes[0]
        if states is not None:
            states = [self.permute_hidden(s, order) for s in states]
        h0, c0 = self._first_states(data, states, batch, widths)
        x = data.index_select(0, _pad_index(sizes, data.device)).reshape(len(sizes), batch, data.shape[-1])
        lengths = cairn.tensor(_lengths_of(sizes), dtype=cairn.int64, device=data.device)
        y, h, c = self._run(x, h0, c0, lengths)
        y = y.reshape(len(sizes) * batch, y.shape[-1]).index_select(0, _pack_index(sizes, data.device))
        return (PackedSequence(y, batch_sizes, order, back), self.permute_hidden(h, back),
                None if c is None else self.permute_hidden(c, back))

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size != 0:
            text += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if self.batch_first is not False:
            text += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            text += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            text += f", bidirectional={self.bidirectional}"
        return text

    def __setstate__(self, state):
        super().__setstate__(state)
        self.__dict__.pop("_flat_weights", None)  # PyTorch's files have it
        self.__dict__.pop("_flat_weight_refs", None)
        self.__dict__.setdefault("proj_size", 0)


class RNN(RNNBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu. Returns (output, h_n)."""

    def __init__(self, input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True, batch_first=False,
                 dropout=0.0, bidirectional=False, device=None, dtype=None):
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        self.nonlinearity = nonlinearity
        super().__init__("RNN_" + nonlinearity.upper(), input_size, hidden_size, num_layers, bias, batch_first, dropout,
                         bidirectional, 0, device, dtype)

    def forward(self, input, hx=None):
        output, h, _ = self._forward(input, None if hx is None else (hx,))
        return output, h


class LSTM(RNNBase):
    """Gates i, f, g, o. Returns (output, (h_n, c_n))."""

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
                 bidirectional=False, proj_size=0, device=None, dtype=None):
        super().__init__("LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
                         proj_size, device, dtype)

    def permute_hidden(self, hx, permutation):
        if isinstance(hx, tuple):
            return tuple(RNNBase.permute_hidden(self, h, permutation) for h in hx)
        return super().permute_hidden(hx, permutation)

    def forward(self, input, hx=None):
        output, h, c = self._forward(input, hx)
        return output, (h, c)


class GRU(RNNBase):
    """Gates r, z, n. Returns (output, h_n)."""

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
                 bidirectional=False, device=None, dtype=None):
        super().__init__("GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0,
                         device, dtype)

    def forward(self, input, hx=None):
        output, h, _ = self._forward(input, None if hx is None else (hx,))
        return output, h


class RNNCellBase(Module):
    """weight_ih (G·H, I), weight_hh (G·H, H), bias_ih and bias_hh (G·H)."""

    def __init__(self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias

        def parameter(*shape):
            return Parameter(cairn.empty(shape, device=device, dtype=dtype))

        rows = num_chunks * hidden_size
        self.weight_ih = parameter(rows, input_size)
        self.weight_hh = parameter(rows, hidden_size)
        self.register_parameter("bias_ih", parameter(rows) if bias else None)
        self.register_parameter("bias_hh", parameter(rows) if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def _with_batch(self, input, states):
        """(x (B, I), the states (B, H), whether there was a batch axis)."""
        name = self._get_name()
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        for state in states:
            if state is not None and state.dim() not in (1, 2):
                raise ValueError(f"{name}: Expected hidden to be 1D or 2D, got {state.dim()}D instead")
        batched = input.dim() == 2
        x = input if batched else input.unsqueeze(0)
        filled = []
        for state in states:
            if state is None:
                filled.append(cairn.zeros((x.shape[0], self.hidden_size), dtype=x.dtype, device=x.device))
            else:
                filled.append(state if batched else state.unsqueeze(0))
        return x, filled, batched

    def _gates(self, x, h):
        return F.linear(x, self.weight_ih, self.bias_ih), F.linear(h, self.weight_hh, self.bias_hh)


class RNNCell(RNNCellBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu."""

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        x, (h,), batched = self._with_batch(input, (hx,))
        of_x, of_h = self._gates(x, h)
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        h = (F.tanh if self.nonlinearity == "tanh" else F.relu)(of_x + of_h)
        return h if batched else h.squeeze(0)


class LSTMCell(RNNCellBase):
    """One step of an LSTM: (h, c) -> (h', c')."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input, hx=None):
        x, (h, c), batched = self._with_batch(input, (None, None) if hx is None else hx)
        of_x, of_h = self._gates(x, h)
        i, f, g, o = (of_x + of_h).chunk(4, 1)
        c = F.sigmoid(f) * c + F.sigmoid(i) * F.tanh(g)
        h = F.sigmoid(o) * F.tanh(c)
        return (h, c) if batched else (h.squeeze(0), c.squeeze(0))


class GRUCell(RNNCellBase):
    """One step of a GRU."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input, hx=None):
        x, (h,), batched = self._with_batch(input, (hx,))
        of_x, of_h = self._gates(x, h)
        x_r, x_z, x_n = of_x.chunk(3, 1)
        h_r, h_z, h_n = of_h.chunk(3, 1)
        n = F.tanh(x_n + F.sigmoid(x_r + h_r) * h_n)
        h = n + F.sigmoid(x_z + h_z) * (h - n)
        return h if batched else h.squeeze(0)
