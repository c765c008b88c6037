"""ONNX files: load one as a module, train it further, write any module as one.

    model = cairn.onnx.load("model.onnx")
    loss = F.cross_entropy(model(x), y)
    ...
    cairn.onnx.save(model, x, "tuned.onnx")
"""

from ._module import OnnxModule, Port, load  # noqa: F401

__all__ = ["OnnxModule", "Port", "is_in_onnx_export", "load"]


def is_in_onnx_export():
    return False
