"""Small ONNX files, byte by byte: the wire format of protobuf with the fields of onnx.proto that the tests need."""

import struct


def _varint(n):
    out = b""
    n &= (1 << 64) - 1
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(number, value):
    """A whole number, a text, or the bytes of a message."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    value = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def attribute(name, value):
    """A whole number, a float, a list of whole numbers, or the bytes of a tensor."""
    body = field(1, name)
    if isinstance(value, bytes):
        return body + field(5, value) + field(20, 4)
    if isinstance(value, float):
        return body + _varint(2 << 3 | 5) + struct.pack("<f", value) + field(20, 1)
    if isinstance(value, list):
        return body + b"".join(field(8, v) for v in value) + field(20, 7)
    return body + field(3, value) + field(20, 2)


def node(op, inputs, outputs, domain="", name="", **attributes):
    return (b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs) + field(3, name)
            + field(4, op) + field(7, domain) + b"".join(field(5, attribute(k, v)) for k, v in attributes.items()))


def tensor(name, shape, values, kind=1):
    """kind 1: float, 7: int64."""
    data = struct.pack(f"<{len(values)}{'f' if kind == 1 else 'q'}", *values)
    return b"".join(field(1, n) for n in shape) + field(2, kind) + field(8, name) + field(9, data)


def info(name, shape, kind=1):
    """shape: numbers, symbols, or None."""
    sizes = b""
    for size in shape:
        sizes += field(1, field(1, size) if isinstance(size, int) else field(2, size) if size else b"")
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, sizes)))


def model(nodes, tensors, inputs, outputs, opset=17, metadata=()):
    graph = (b"".join(field(1, n) for n in nodes) + field(2, "graph") + b"".join(field(5, t) for t in tensors)
             + b"".join(field(11, i) for i in inputs) + b"".join(field(12, o) for o in outputs))
    texts = b"".join(field(14, field(1, k) + field(2, v)) for k, v in metadata)
    return field(1, 8) + field(2, "test") + field(7, graph) + field(8, field(1, "") + field(2, opset)) + texts


WEIGHT, BIAS = [1, -1, 0.5, 2, 0, -0.5], [0.25, -0.5]


def layer():
    """y = relu(x · weightᵀ + bias): (batch,3) -> (batch,2)"""
    return model([node("Gemm", ["x", "fc.weight", "fc.bias"], ["h"], transB=1), node("Relu", ["h"], ["y"])],
                 [tensor("fc.weight", [2, 3], WEIGHT), tensor("fc.bias", [2], BIAS)],
                 [info("x", ["batch", 3])], [info("y", ["batch", 2])])


def normalized():
    """Batch normalisation, whose statistics are state; and a second result."""
    names = ["bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"]
    values = [[1, 2, 3], [0, 1, 0], [0, 0, 1], [1, 1, 4]]
    return model([node("BatchNormalization", ["x", *names], ["y"], epsilon=1e-5, momentum=0.9),
                  node("Neg", ["y"], ["z"])], [tensor(name, [3], v) for name, v in zip(names, values)],
                 [info("x", [None, 3, 4])], [info("y", [None, 3, 4]), info("z", [None, 3, 4])])
