"""Writes the backend node suite of the PyPI package `onnx` as files, for tests/test_onnx_cases.c.

    python tests/onnx/make_cases.py FOLDER [NAME...]

FOLDER gets a folder for each case: model.onnx, input_0.pb, output_0.pb, ..; and cases.txt, a line for each case:

    name rtol atol reason

The reason is "-" if the case is one of those that Cairn is to pass; otherwise it says why it is not: the element type
that Cairn lacks, or that numbers are drawn at random. Nothing is done if FOLDER has what this script and this version of
`onnx` write.
"""

import hashlib
import sys
import warnings
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases

warnings.filterwarnings("ignore")

TYPES = {
    TensorProto.BOOL, TensorProto.UINT8, TensorProto.INT8, TensorProto.INT32, TensorProto.INT64,
    TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.UNDEFINED,
}
RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}


def key_of(*files):
    """Names what these files and this version of `onnx` write. Of a wheel the name is enough."""
    own = [Path(__file__), *map(Path, files)]
    parts = [path.name.encode() if path.suffix == ".whl" else path.read_bytes() for path in own]
    return f"onnx {onnx.__version__} {hashlib.sha256(b' '.join(parts)).hexdigest()}\n"


def is_fresh(root, *files):
    note = root / "made.txt"
    return note.exists() and note.read_text() == key_of(*files)


def note_fresh(root, *files):
    (root / "made.txt").write_text(key_of(*files))


def types_of_value(t):
    kind = t.WhichOneof("value")
    if kind in ("sequence_type", "optional_type"):
        return types_of_value(getattr(t, kind).elem_type)
    if kind in ("tensor_type", "sparse_tensor_type"):
        return {getattr(t, kind).elem_type}
    return {-1} if kind else set()


def types_of_graph(graph):
    types = {t.data_type for t in graph.initializer} if hasattr(graph, "initializer") else set()
    for value in [*getattr(graph, "input", []), *getattr(graph, "output", []), *graph.value_info]:
        if hasattr(value, "type"):
            types |= types_of_value(value.type)
    for node in graph.node:
        for a in node.attribute:
            if a.type == onnx.AttributeProto.TENSOR:
                types.add(a.t.data_type)
            elif a.type == onnx.AttributeProto.GRAPH:
                types |= types_of_graph(a.g)
            elif a.type in (onnx.AttributeProto.STRINGS,) and node.op_type not in ("LSTM", "GRU", "RNN"):
                types.add(TensorProto.STRING)
            elif a.name in ("to", "dtype", "output_dtype", "output_datatype") and a.type == onnx.AttributeProto.INT:
                types.add(a.i)
    return types


def is_random(case):
    nodes = list(case.model.graph.node)
    for node in nodes:
        if node.op_type in RANDOM:
            return True
    return "dropout" in case.name and "training" in case.name and "zero_ratio" not in case.name


def reason(case):
    types = types_of_graph(case.model.graph)
    for f in case.model.functions:
        types |= types_of_graph(f)
    odd = sorted(types - TYPES)
    if odd:
        name = TensorProto.DataType.Name(odd[0]).lower() if odd[0] >= 0 else "of another kind"
        return f"its elements are {name}"
    if is_random(case):
        return "its numbers are drawn at random"
    if any(n.op_type == "ImageDecoder" for n in case.model.graph.node):
        return "it decodes images"
    return "-"


def proto(value, info):
    """A value as the message of its type."""
    kind = info.type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.from_list(value, info.name)
    if kind == "optional_type":
        inner = info.type.optional_type.elem_type.WhichOneof("value")
        message = onnx.OptionalProto(name=info.name, elem_type=3 if inner == "sequence_type" else 1)
        if value is not None and inner == "sequence_type":
            message.sequence_value.CopyFrom(numpy_helper.from_list(value))
        elif value is not None:
            message.tensor_value.CopyFrom(numpy_helper.from_array(np.asarray(value)))
        return message
    if isinstance(value, onnx.TensorProto):
        return value
    return numpy_helper.from_array(np.asarray(value), info.name)


def write_case(folder, case):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    inputs, outputs = case.data_sets[0]
    graph = case.model.graph
    for kind, values, infos in (("input", inputs, graph.input), ("output", outputs, graph.output)):
        for i, (value, info) in enumerate(zip(values, infos)):
            (folder / f"{kind}_{i}.pb").write_bytes(proto(value, info).SerializeToString())


def main():
    root, only = Path(sys.argv[1]), set(sys.argv[2:])
    if not only and is_fresh(root):
        return
    lines = []
    for case in collect_testcases(None):
        if only and case.name not in only:
            continue
        why = reason(case)
        try:
            write_case(root / case.name, case)
        except Exception as error:  # a type that files cannot hold
            why = "it cannot be written" if why == "-" else why
            print(f"{case.name}: {error}", file=sys.stderr)
        lines.append(f"{case.name} {case.rtol} {case.atol} {why}\n")
    (root / "cases.txt").write_text("".join(sorted(lines)))
    if not only:
        note_fresh(root)
    suited = sum(line.endswith(" -\n") for line in lines)
    print(f"{len(lines)} cases of onnx {onnx.__version__}; {suited} use types that Cairn has and no random draws")


if __name__ == "__main__":
    main()
