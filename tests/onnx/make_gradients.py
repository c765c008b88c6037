"""Writes cases of the node suite for the gradient check of tests/test_onnx_cases.c: the same models, in f64.

    python tests/onnx/make_gradients.py FOLDER

Floating types of inputs, initializers, constants and casts become f64. Inputs move a little, away from ties and kinks.
What is structure (a scale of Resize, a ratio of Dropout) becomes an initializer, and is not varied. cases.txt has a line
for each case, as make_cases.py writes them; the reason says why an operator has no gradient by its nature.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
from make_cases import is_fresh, note_fresh, proto, reason
from onnx import AttributeProto, TensorProto, helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases

FLOATS = {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16}

# Operators whose results do not change with small changes of their inputs, or jump.
STEPS = "it is a step function: its gradient is 0 or not defined"
READS = "its inputs are numbers that the structure is computed from"
NOT_DIFFERENTIABLE = {
    "Binarizer": STEPS, "Ceil": STEPS, "Floor": STEPS, "Hardmax": STEPS, "Round": STEPS, "Sign": STEPS,
    "DynamicQuantizeLinear": STEPS, "QuantizeLinear": STEPS, "QLinearConv": STEPS, "QLinearMatMul": STEPS,
    "BitCast": "bits of numbers are taken as other numbers", "EyeLike": "only the shape of its input matters",
    "Range": READS, "MelWeightMatrix": READS, "ConstantOfShape": READS, "TreeEnsemble": STEPS,
}
# Inputs that are structure, by operator: never varied.
STRUCTURE = {
    "Dropout": {1, 2}, "NegativeLogLikelihoodLoss": {2}, "OneHot": {0, 1}, "Resize": {1, 2}, "RoiAlign": {1},
    "SoftmaxCrossEntropyLoss": {2}, "Upsample": {1}, "Adam": {1}, "Adagrad": {1}, "Momentum": {1},
}


WITHIN_ONE = {"Acos", "Asin", "Atanh"}  # the domain of these is [-1, 1]


def to_f64(array):
    return np.asarray(array).astype(np.float64)


def convert_type(t):
    kind = t.WhichOneof("value")
    if kind == "tensor_type" and t.tensor_type.elem_type in FLOATS:
        t.tensor_type.elem_type = TensorProto.DOUBLE
    elif kind in ("sequence_type", "optional_type"):
        convert_type(getattr(t, kind).elem_type)


def convert_tensor(t):
    if t.data_type in FLOATS:
        t.CopyFrom(numpy_helper.from_array(to_f64(numpy_helper.to_array(t)), t.name))


def convert_attribute(a):
    if a.type == AttributeProto.TENSOR:
        convert_tensor(a.t)
    elif a.type == AttributeProto.GRAPH:
        convert_graph(a.g)
    elif a.name in ("value_float", "value_floats"):
        values = np.array(a.f if a.name == "value_float" else a.floats, np.float64)
        a.CopyFrom(helper.make_attribute("value", numpy_helper.from_array(values)))
    elif a.name in ("to", "dtype", "output_dtype", "output_datatype", "softmax_precision") and a.i in FLOATS:
        a.i = TensorProto.DOUBLE


def convert_graph(graph):
    for value in [*getattr(graph, "input", []), *getattr(graph, "output", []), *graph.value_info]:
        if hasattr(value, "type"):
            convert_type(value.type)
    for t in getattr(graph, "initializer", []):
        convert_tensor(t)
    for node in graph.node:
        if node.op_type == "ConstantOfShape" and not node.attribute:
            node.attribute.append(helper.make_attribute("value", numpy_helper.from_array(np.zeros(1))))
        for a in node.attribute:
            convert_attribute(a)


def is_float(value):
    return isinstance(value, np.ndarray | np.generic) and (
        np.issubdtype(value.dtype, np.floating) or value.dtype.name == "bfloat16")


def moved(value, op, random):
    """A little larger, each element by another amount; logarithms and roots keep their domains."""
    value = to_f64(value) * (0.9 if op in WITHIN_ONE else 1)
    return value + 0.012 + 0.01 * random.random(value.shape)


def no_gradient(case, inputs, outputs, op):
    """Why a case has no gradient, or None."""
    if op in NOT_DIFFERENTIABLE:
        return NOT_DIFFERENTIABLE[op]
    if not any(is_float(value) and value.size for value in inputs):
        return "no input has floating elements"
    flat = [item for value in outputs for item in (value if isinstance(value, list) else [value])]
    if not any(is_float(np.asarray(value)) for value in flat if value is not None):
        return "the results are whole numbers or truths"
    if all(not is_float(value) or i in STRUCTURE.get(op, ()) for i, value in enumerate(inputs)):
        return READS
    return None


def write_case(root, case, op, random):
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    convert_graph(model.graph)
    for f in model.functions:
        convert_graph(f)
    folder = root / case.name
    folder.mkdir(parents=True, exist_ok=True)
    inputs = [value for value in model.graph.input]
    del model.graph.input[:]
    at = 0
    for i, (info, value) in enumerate(zip(inputs, case.data_sets[0][0])):
        if i in STRUCTURE.get(op, ()) and isinstance(value, np.ndarray | np.generic):
            array = to_f64(value) if is_float(value) else np.asarray(value)
            model.graph.initializer.append(numpy_helper.from_array(array, info.name))
            continue
        given = moved(value, op, random) if is_float(value) else value
        if isinstance(value, list):
            given = [to_f64(item) if is_float(item) else item for item in value]
        model.graph.input.append(info)
        (folder / f"input_{at}.pb").write_bytes(proto(given, info).SerializeToString())
        at += 1
    (folder / "model.onnx").write_bytes(model.SerializeToString())


def main():
    root = Path(sys.argv[1])
    if is_fresh(root, __file__):
        return
    random = np.random.default_rng(3)
    cases = [case for case in collect_testcases(None) if reason(case) == "-"]
    ops = {case.name: case.model.graph.node[0].op_type for case in cases if len(case.model.graph.node) == 1}
    lines = []
    for case in cases:
        op = ops.get(case.name) or ops.get(case.name.split("_expanded")[0], "")
        why = no_gradient(case, *case.data_sets[0], op)
        if not why:
            write_case(root, case, op, random)
        lines.append(f"{case.name} 0 0 {why or '-'}\n")
    (root / "cases.txt").write_text("".join(sorted(lines)))
    note_fresh(root, __file__)
    checked = sum(line.endswith(" -\n") for line in lines)
    print(f"gradients of {checked} cases of onnx {onnx.__version__}")


if __name__ == "__main__":
    main()
