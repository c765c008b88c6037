"""Modules as ONNX files: a module is called with an example, and the operators that it calls are written.

A second call, with other sizes, tells which sizes of the graph follow those of the inputs: the file then serves all
sizes.
"""

import enum
import os
import warnings

import cairn
from cairn import _C
from cairn._C import Tensor
from cairn.nn import Module
from cairn.serialization import _through_file

from ._module import OnnxModule

__all__ = ["ONNXProgram", "TracerWarning", "TrainingMode", "export", "is_in_onnx_export", "save"]

_exporting = False


class TracerWarning(UserWarning):
    """The file does what the module does for the example, but maybe not for other values or sizes."""


class TrainingMode(enum.Enum):
    EVAL, PRESERVE, TRAINING = 0, 1, 2


def is_in_onnx_export():
    """Whether a module is being called for its graph."""
    return _exporting


# ---- arguments and results as lists of tensors ----


def _tensors(value):
    """All tensors in nested tuples, lists and dicts."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for part in value for t in _tensors(part)] if isinstance(value, (tuple, list)) else []


def _with(value, tensors):
    """The same nest with other tensors, from an iterator."""
    if isinstance(value, Tensor):
        return next(tensors)
    if isinstance(value, dict):
        return {k: _with(v, tensors) for k, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_with(v, tensors) for v in value))
    return type(value)(_with(v, tensors) for v in value) if isinstance(value, (tuple, list)) else value


def _arguments(args, kwargs):
    args = args if isinstance(args, (tuple, list)) else (args,)
    if kwargs is None and args and isinstance(args[-1], dict):  # PyTorch's older way to pass keywords
        args, kwargs = args[:-1], args[-1]
    return tuple(args), kwargs or {}


def _results(result):
    tensors = _tensors(result)
    if not tensors:
        raise TypeError(f"onnx: the module must return tensors, got {type(result).__name__}")
    return tensors


# ---- sizes that may vary ----


def _varying(dynamic_axes, names):
    """{input: {axis: symbol}} of dynamic_axes, which may have a list of axes too."""
    found = {}
    for name, axes in (dynamic_axes or {}).items():
        if name in names:
            found[names.index(name)] = ({axis: f"{name}_dynamic_axes_{i + 1}" for i, axis in enumerate(axes)}
                                        if isinstance(axes, (list, tuple)) else dict(axes))
    return found


def _sizes(inputs, varying):
    """Two sizes for each symbol. The first is not 1, which would say too little, because sizes of 1 broadcast. No two
    symbols grow by the same number or factor: so it is known which one a size of the graph follows."""
    found, steps, factors = {}, set(), set()
    for i, axes in sorted(varying.items()):
        for axis, symbol in sorted(axes.items()):
            size = inputs[i].shape[axis]
            if size == 0:
                raise ValueError("onnx: an axis whose size may vary must not be empty in the example")
            if found.setdefault(symbol, size) != size:
                raise ValueError(f"onnx: the axes called '{symbol}' must have one size, got {found[symbol]} and {size}")
    for symbol, size in found.items():
        first, step = max(size, 2), max(size, 2) + 1
        while step in steps or step / first in factors:
            step += 1
        steps.add(step)
        factors.add(step / first)
        found[symbol] = first, first + step
    return found


def _resized(x, axes, sizes, number):
    """x with the first or second sizes, its parts repeated."""
    for axis, symbol in axes.items():
        n, size = x.shape[axis], sizes[symbol][number]
        x = x if n == size else x.index_select(axis, cairn.arange(size, device=x.device) % n)
    return x.clone()


# ---- tracing ----


class _Mode:
    """Evaluation mode, without gradients; afterwards every part has its own mode again."""

    def __init__(self, model, training):
        self.parts = list(model.modules()) if isinstance(model, Module) else []
        if training == TrainingMode.TRAINING and any(m.training for m in self.parts):
            raise NotImplementedError("onnx: a module is written as it is in evaluation mode; "
                                      "cairn.onnx.load(..).train() trains what was written")

    def __enter__(self):
        global _exporting
        self.modes = [m.training for m in self.parts]
        for m in self.parts:
            m.training = False
        self.grad = _C._set_grad_enabled(False)
        _exporting = True

    def __exit__(self, *_):
        global _exporting
        _exporting = False
        _C._set_grad_enabled(self.grad)
        for m, mode in zip(self.parts, self.modes):
            m.training = mode


def _named(model):
    if not isinstance(model, Module):
        return []
    return [*((name, t, False) for name, t in model.named_parameters()),
            *((name, t, True) for name, t in model.named_buffers())]


def _trace(model, args, kwargs, path, inputs, varying, options):
    """Calls the module for the sizes of the inputs, or twice if some may vary. False: the graph's sizes do not follow
    those that vary, and nothing was written."""
    sizes = _sizes(inputs, varying)
    first = [_resized(x, varying.get(i, {}), sizes, 0) for i, x in enumerate(inputs)]
    second = [_resized(x, varying.get(i, {}), sizes, 1) for i, x in enumerate(inputs)] if sizes else []
    named = _named(model)
    everything = [*first, *second, *(t for _, t, _ in named)]
    if not everything:
        raise ValueError("onnx: there must be an input or a parameter")

    def call(tensors):
        own_args, own_kwargs = _with((args, kwargs), iter(tensors))
        return _results(model(*own_args, **own_kwargs))

    before = _C._onnx_trace_begin(everything)
    try:
        outputs = call(first)
        read = _C._onnx_evaluations(everything[0]) > before
        others = call(second) if second else []
        written = _C._onnx_save_graph(path, first, outputs, second, others, named, (*options, list(sizes)))
    finally:
        _C._onnx_trace_end(everything[0])
    if written and read:
        warnings.warn("onnx: the forward reads values of tensors; what it decides by them is decided in the file as "
                      "for the example", TracerWarning, stacklevel=7)
    return written


def _write_trace(model, args, kwargs, path, varying, options):
    inputs = [x.detach() for x in _tensors((args, kwargs))]
    try:
        if varying and _trace(model, args, kwargs, path, inputs, varying, options):
            return
    except cairn.ShapeError:  # a module for one size only
        pass
    if varying:
        warnings.warn("onnx: the sizes of the graph do not follow those of the inputs; the file serves the sizes of "
                      "the example", TracerWarning, stacklevel=6)
    _trace(model, args, kwargs, path, inputs, {}, options)


def _write(model, args, kwargs, path, varying, options, training):
    plain = type(model) is OnnxModule and not any(options[:4])
    if plain and model._unchanged():
        return _C._onnx_rewrite(model._graph.path, model._graph.data, path, model._weights())
    with _Mode(model, training):
        return _write_trace(model, args, kwargs, path, varying, options)


def _to_file(f, write):
    """Calls write(path) for a path or a file that is open for writing. The path of a program may not exist."""
    if not hasattr(f, "write"):
        return write(os.fsdecode(os.fspath(f)))
    return _through_file(write, f)


class ONNXProgram:
    """What export returns without a file: the bytes of one."""

    def __init__(self, data):
        self.data = data

    def save(self, destination):
        if hasattr(destination, "write"):
            destination.write(self.data)
        else:
            with open(destination, "wb") as file:
                file.write(self.data)


def save(model, args, f, *, input_names=None, output_names=None, opset_version=None, dynamic_batch=True):
    """Writes a module as an ONNX file; f is a path, or a file that is open for writing.

    args is an example of its inputs: a tensor, or a tuple. With dynamic_batch the first axis of every input may have
    any size. Parameters keep their names. A module of cairn.onnx.load is written as it was read, with its present
    weights.
    """
    args, kwargs = _arguments(args, None)
    inputs = _tensors((args, kwargs))
    first = inputs[0].shape[0] if inputs and inputs[0].dim() else None
    varying = {i: {0: "batch"} for i, x in enumerate(inputs) if dynamic_batch and x.dim() and x.shape[0] == first}
    options = (input_names, output_names, opset_version or 0, False)
    _to_file(f, lambda path: _write(model, args, kwargs, path, varying, options, TrainingMode.EVAL))


def export(model, args=(), f=None, *, kwargs=None, input_names=None, output_names=None, opset_version=None,
           dynamic_axes=None, external_data=False, training=TrainingMode.EVAL, dynamic_shapes=None, **ignored):
    """Writes a module as an ONNX file, with torch.onnx.export's arguments.

    Sizes are those of the example, except the axes that dynamic_axes names: {"x": {0: "batch"}}. Other options of
    PyTorch are accepted and have no effect. Without f the result is an ONNXProgram.
    """
    if dynamic_shapes is not None:
        raise NotImplementedError("onnx: name the axes by dynamic_axes={'x': {0: 'batch'}}, in place of dynamic_shapes")
    if f is None:
        import io

        buffer = io.BytesIO()
        export(model, args, buffer, kwargs=kwargs, input_names=input_names, output_names=output_names,
               opset_version=opset_version, dynamic_axes=dynamic_axes, training=training)
        return ONNXProgram(buffer.getvalue())
    if external_data and hasattr(f, "write"):
        raise ValueError("onnx: external data lie beside the file, so f must be a path")
    args, kwargs = _arguments(args, kwargs)
    n = len(_tensors((args, kwargs)))
    names = list(input_names or []) or (["input"] if n == 1 else [f"input_{i}" for i in range(n)])
    options = (input_names, output_names, opset_version or 0, external_data)
    return _to_file(f, lambda path: _write(model, args, kwargs, path, _varying(dynamic_axes, names), options, training))
