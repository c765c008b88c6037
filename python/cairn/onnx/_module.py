"""An ONNX file as a module: it is called, trained, moved and saved as any other.

The module holds the tensors. The graph of the file, which the C library interprets, uses none of its own: every call
gives it those that the module has at that moment. So whatever changes a parameter (an optimizer, load_state_dict, to, a
new Parameter in the old one's place, functional_call) changes what the next call computes.
"""

import mmap
import os
from collections import namedtuple

from cairn import _C
from cairn.nn import Module, Parameter

__all__ = ["OnnxModule", "Port", "load"]


class Port(namedtuple("Port", ["name", "type", "shape", "kind", "has_default"])):
    """An input or result: its name, ONNX's name of its element type, and its shape, which has a number, a symbol such
    as "batch", or None for each axis. The shape is None if the file does not say it. kind is "tensor", "sequence" or
    "optional"; has_default: an input that may be left out."""

    __slots__ = ()


class _Graph:
    """The graph of a file, opened once in each context that calls it. Copies of a module share it."""

    def __init__(self, path, data):
        self.path, self.data = path, data
        self.opened = {}
        self.stamp = None if path is None else _stamp(path)

    def open(self, like=None, weights=False):
        """Opens it in the context of a tensor; None: on the CPU."""
        same = self.stamp is not None and _stamp(self.path) == self.stamp
        key, graph = _C._onnx_open(self.path, None if same else self.data, like, weights)
        self.opened[key] = graph
        return graph

    def run(self, weights, names, values, wanted, training):
        for _ in range(2):
            result = _C._onnx_run(self.opened, weights, names, values, wanted, training)
            if result is not NotImplemented:
                return result
            self.open(next(t for t in (*weights, *values) if isinstance(t, _C.Tensor)))
        raise RuntimeError("onnx: the graph was not opened for these tensors")

    def reads(self, weight):
        graph = next(iter(self.opened.values())) if self.opened else self.open()
        return _C._onnx_reads(graph, weight)

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return _graph_of, (self.path, bytes(self.data))


def _graph_of(path, data):
    graph = _Graph(None, data)
    graph.path = path  # files beside the model are looked for there; the content is that of `data`
    return graph


def _stamp(path):
    try:
        s = os.stat(path)
    except OSError:
        return None
    return s.st_ino, s.st_size, s.st_mtime_ns


class Weights(Module):
    """Holds the tensors whose names begin with its own: "features.0.weight" is the weight of the part features.0."""

    def extra_repr(self):
        tensors = {**self._parameters, **self._buffers}
        return ", ".join(f"{name}: {'×'.join(map(str, t.shape)) or 'number'}" for name, t in tensors.items()
                         if t is not None)


class OnnxModule(Module):
    """What cairn.onnx.load returns. Inputs are passed in the order of the file, or by name; the result is a tensor, or
    a tuple if the file has several results. It starts in evaluation mode."""

    def __init__(self, graph):
        super().__init__()
        opened = graph.open(weights=True)
        self._graph = graph
        self._order = []  # of each weight: the names of the parts that it is in, and its own
        self.inputs, self.outputs = ([Port(*row) for row in rows] for rows in _C._onnx_ports(opened))
        for name, tensor, buffer in _C._onnx_weights(opened):
            self._add(name, tensor, buffer)
        self._kinds = [(tuple(t.shape), t.dtype) for t in self._weights()]
        self.train(False)

    def _add(self, name, tensor, buffer):
        *path, last = name.split(".") if all(name.split(".")) else [name]
        owner = self
        for part in path:
            owner = owner._modules.setdefault(part, Weights())
        self._order.append((tuple(path), last))
        if buffer:
            owner._buffers[last] = tensor.detach()
        else:
            owner._parameters[last] = Parameter(tensor)

    def _weights(self):
        weights, at, owner = [], (), self
        for path, last in self._order:
            if path != at:
                at, owner = path, self
                for part in path:
                    owner = owner._modules[part]
            value = owner._parameters.get(last)
            if value is None:
                value = owner._buffers.get(last)
            if value is None:
                value = getattr(owner, last)  # what is computed from other parameters
            weights.append(value)
        return weights

    def _unchanged(self):
        """Whether its tensors have the shapes and types of the file."""
        return [(tuple(t.shape), t.dtype) for t in self._weights()] == self._kinds

    def _place(self, args, kwargs):
        """The inputs of a call: their names and values."""
        free = [port.name for port in self.inputs if port.name not in kwargs]
        free.sort(key={port.name: port.has_default for port in self.inputs}.get)  # those with a default come last
        if len(args) > len(free):
            raise TypeError(f"the graph takes {len(self.inputs)} inputs, got {len(args) + len(kwargs)}")
        known = {port.name for port in self.inputs}
        for name in kwargs:
            if name not in known:
                raise TypeError(f"the graph has no input '{name}'; its inputs are "
                                + ", ".join(port.name for port in self.inputs))
        return (*free[:len(args)], *kwargs), (*args, *kwargs.values())

    def forward(self, *args, **kwargs):
        names, values = self._place(args, kwargs)
        results = self._graph.run(self._weights(), names, values, tuple(port.name for port in self.outputs),
                                  self.training)
        return results[0] if len(results) == 1 else results

    def run(self, inputs, outputs=None):
        """Results as a dict. inputs: a dict of names, or a list. outputs: names of results, or of values inside the
        graph, such as what the last layer reads; None: all results."""
        names, values = self._place((), inputs) if isinstance(inputs, dict) else self._place(tuple(inputs), {})
        wanted = tuple(port.name for port in self.outputs) if outputs is None else tuple(outputs)
        return dict(zip(wanted, self._graph.run(self._weights(), names, values, wanted, self.training)))

    def reads(self, weight):
        """The name of the value that the layer of a weight reads: run(inputs, [name]) gives it to a new layer. None: no
        layer has such a weight."""
        return self._graph.reads(weight)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                              error_msgs):
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                                      error_msgs)
        own = {prefix + name for name in (*self._parameters, *self._buffers)}  # names that could not be taken apart
        unexpected_keys[:] = [key for key in unexpected_keys if key not in own]

    def _get_name(self):
        return "OnnxModule"

    def extra_repr(self):
        def text(ports):
            return ", ".join(port.name for port in ports)

        return f"{text(self.inputs)} -> {text(self.outputs)}"


def load(f, device=None):
    """The module of an ONNX file: f is a path, a file that is open for reading, or the bytes of a file."""
    if hasattr(f, "read"):
        f = f.read()
    if isinstance(f, (bytes, bytearray, memoryview)):
        graph = _Graph(None, bytes(f))
    else:
        path = os.fspath(f)
        with open(path, "rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if os.fstat(file.fileno()).st_size else b""
        graph = _Graph(os.fsdecode(path), data)
    module = OnnxModule(graph)
    return module if device is None else module.to(device)
