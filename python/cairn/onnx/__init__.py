"""ONNX files: load one as a module, train it further, write any module as one.

    model = cairn.onnx.load("model.onnx")
    loss = F.cross_entropy(model(x), y)
    ...
    cairn.onnx.save(model, x, "tuned.onnx")
"""

from ._export import ONNXProgram, TracerWarning, TrainingMode, export, is_in_onnx_export, save  # noqa: F401
from ._module import OnnxModule, Port, load  # noqa: F401

__all__ = ["ONNXProgram", "OnnxModule", "Port", "TracerWarning", "TrainingMode", "export", "is_in_onnx_export", "load",
           "save"]
