"""Writes cases of single nodes that are drawn at random: shapes, attributes, versions of operators. onnxruntime says what
their results are; a node that it refuses is drawn again.

    python tests/onnx/make_drawn.py FOLDER [COUNT [SEED]]

The node suite of the package `onnx` has the newest version of each operator only; files that people have are older.
"""

import sys
from pathlib import Path

import numpy as np
import onnxruntime
from make_cases import is_fresh, note_fresh
from onnx import TensorProto, helper, numpy_helper

onnxruntime.set_default_logger_severity(4)


class Draw:
    """Random choices for one node: its operator set, inputs and attributes."""

    def __init__(self, random):
        self.random = random
        self.inputs, self.known, self.attributes, self.outputs = [], [], {}, 1
        self.float = np.float64 if self.likely(0.2) else np.float32

    def whole(self, low, high):
        return int(self.random.integers(low, high + 1))

    def one_of(self, *choices):
        return choices[self.whole(0, len(choices) - 1)]

    def likely(self, part=0.5):
        return self.random.random() < part

    def sizes(self, n, low=1, high=5):
        return [self.whole(low, high) for _ in range(n)]

    def shape(self, low=1, high=4):
        return self.sizes(self.whole(low, high))

    def real(self, shape):
        return self.random.standard_normal(shape).astype(self.float)

    def data(self, array, known=False):
        """An input; a known one is an initializer, as shapes and axes are in most files."""
        self.inputs.append(array)
        self.known.append(known and self.likely(0.8))

    def ints(self, values):
        self.data(np.array(values, np.int64), True)

    def absent(self):
        self.inputs.append(None)
        self.known.append(False)

    def maybe(self, name, value, part=0.5):
        if self.likely(part):
            self.attributes[name] = value

    def axis(self, n):
        return self.whole(-n, n - 1)

    def axes(self, n, most=None):
        count = self.whole(1, most or n)
        chosen = [int(a) for a in self.random.permutation(n)[:count]]
        return [a - n if self.likely(0.3) else a for a in chosen]


def windows(d, n, pads=True):
    kernel = d.sizes(n, 1, 3)
    d.maybe("strides", d.sizes(n, 1, 3), 0.6)
    if d.likely(0.2):
        d.attributes["auto_pad"] = d.one_of("SAME_UPPER", "SAME_LOWER", "VALID")
    elif pads and d.likely(0.6):
        d.attributes["pads"] = [d.whole(0, k - 1) if k > 1 else 0 for k in kernel * 2]
    return kernel


def conv(d):
    n, group = d.whole(1, 3), d.one_of(1, 1, 2)
    kernel = windows(d, n)
    if "auto_pad" not in d.attributes:
        d.maybe("dilations", d.sizes(n, 1, 2), 0.4)
    d.attributes.update(group=group, kernel_shape=kernel)
    channels, outs = group * d.whole(1, 3), group * d.whole(1, 3)
    d.data(d.real([d.whole(1, 2), channels, *d.sizes(n, 5, 8)]))
    d.data(d.real([outs, channels // group, *kernel]), True)
    if d.likely():
        d.data(d.real([outs]), True)


def conv_transpose(d):
    n, group = d.whole(1, 2), d.one_of(1, 1, 2)
    kernel = windows(d, n)
    strides = d.attributes.get("strides", [1] * n)
    if any(k < s for k, s in zip(kernel, strides)):
        d.attributes.pop("auto_pad", None)  # onnxruntime does not give the size that the standard asks for
    d.attributes.update(group=group, kernel_shape=kernel)
    if max(strides) > 1 and d.likely(0.3):
        d.attributes["output_padding"] = [d.whole(0, s - 1) for s in strides]
    channels, outs = group * d.whole(1, 3), d.whole(1, 3)
    d.data(d.real([d.whole(1, 2), channels, *d.sizes(n, 3, 6)]))
    d.data(d.real([channels, outs, *kernel]), True)
    if d.likely():
        d.data(d.real([outs * group]), True)


def pool(d, op, version):
    n = d.whole(1, 3)
    d.attributes["kernel_shape"] = windows(d, n)
    if op != "LpPool" and version >= 10 and "auto_pad" not in d.attributes:
        d.maybe("ceil_mode", 1, 0.3)
    if op == "AveragePool":
        d.maybe("count_include_pad", 1)
    if op == "LpPool":
        d.maybe("p", d.whole(1, 3))
    d.data(d.real([d.whole(1, 2), d.whole(1, 3), *d.sizes(n, 4, 8)]))


def pad(d, version):
    shape = d.shape()
    n, mode = len(shape), d.one_of("constant", "reflect", "edge")
    most = min(shape) - 1 if mode == "reflect" else 3
    pads = [d.whole(0, most) for _ in range(2 * n)]
    d.attributes["mode"] = mode
    d.data(d.real(shape))
    if version < 11:
        d.attributes["pads"] = pads
        d.maybe("value", 1.5)
    else:
        d.ints(pads)
        if mode == "constant" and d.likely():
            d.data(np.array(2.5, np.float32), True)


def slice_(d, version):
    shape = d.shape()
    axes = d.axes(len(shape))
    starts, ends = [d.whole(-6, 6) for _ in axes], [d.one_of(d.whole(-6, 6), 2**62, -(2**62)) for _ in axes]
    d.data(d.real(shape))
    if version < 10:
        d.attributes.update(starts=starts, ends=ends, axes=[a % len(shape) for a in axes])
        return
    for values in (starts, ends, axes, [d.one_of(1, 1, 2, -1, -2) for _ in axes]):
        d.ints(values)


def reduce_(d, version, since):
    shape = d.shape()
    d.data(np.abs(d.real(shape)) + 0.1)
    d.maybe("keepdims", d.whole(0, 1))
    if d.likely(0.8):
        axes = [a if version >= 11 else a % len(shape) for a in d.axes(len(shape))]
        if version < since:
            d.attributes["axes"] = axes
        else:
            d.ints(axes)
    elif version >= since:
        d.maybe("noop_with_empty_axes", d.whole(0, 1))


def arg(d, version):
    shape = d.shape()
    d.data(d.random.integers(0, 3, shape).astype(np.float32))
    d.maybe("axis", d.axis(len(shape)) if version >= 11 else d.whole(0, len(shape) - 1), 0.8)
    d.maybe("keepdims", d.whole(0, 1))
    if version >= 12:
        d.maybe("select_last_index", d.whole(0, 1))


def softmax(d, version):
    shape = d.shape()
    d.data(d.real(shape))
    d.maybe("axis", d.axis(len(shape)) if version >= 11 else d.whole(0, len(shape) - 1), 0.8)


def gather(d):
    shape = d.shape()
    axis = d.axis(len(shape))
    size = shape[axis]
    d.attributes["axis"] = axis
    d.data(d.real(shape))
    d.data(d.random.integers(0, size, d.shape(0, 2)).astype(d.one_of(np.int64, np.int32)), True)


def gather_elements(d):
    shape = d.shape()
    axis = d.axis(len(shape))
    d.attributes["axis"] = axis
    d.data(d.real(shape))
    d.data(d.random.integers(-shape[axis], shape[axis], shape).astype(np.int64), True)


def gather_nd(d):
    shape = d.sizes(d.whole(2, 4), 2, 4)
    k = d.whole(1, len(shape))
    index = np.stack([d.random.integers(-shape[i], shape[i], [3, 2]) for i in range(k)], -1)
    d.data(d.real(shape))
    d.data(index.astype(np.int64), True)


def scatter_elements(d, version):
    shape = d.shape()
    axis = d.axis(len(shape))
    places = np.argsort(d.random.random(shape), axis)  # no place twice
    d.attributes["axis"] = axis
    if version >= 16:
        d.maybe("reduction", d.one_of("none", "add", "mul"))
    d.data(d.real(shape))
    d.data(places.astype(np.int64), True)
    d.data(d.real(shape))


def scatter_nd(d):
    shape = d.sizes(d.whole(1, 3), 2, 4)
    index = d.random.permutation(shape[0])[:2].reshape(2, 1).astype(np.int64)
    d.data(d.real(shape))
    d.data(index, True)
    d.data(d.real([2, *shape[1:]]))


def top_k(d, version):
    shape = d.shape()
    axis = d.axis(len(shape))
    k = d.whole(1, shape[axis])
    d.attributes["axis"] = axis if version >= 10 else axis % len(shape)
    d.data(d.real(shape))
    d.outputs = 2
    if version < 10:
        d.attributes["k"] = k
    else:
        d.ints([k])
    if version >= 11:
        d.maybe("largest", d.whole(0, 1))


def cumulate(d):
    shape = d.shape()
    d.data(d.real(shape))
    d.data(np.array(d.axis(len(shape)), np.int64), True)
    d.maybe("exclusive", 1)
    d.maybe("reverse", 1)


def split(d, version):
    shape = d.shape()
    axis = d.whole(0, len(shape) - 1)
    shape[axis] = d.whole(2, 6)
    first = d.whole(1, shape[axis] - 1)
    d.attributes["axis"] = axis
    d.outputs = 2
    d.data(d.real(shape))
    if version < 13:
        d.attributes["split"] = [first, shape[axis] - first]
    else:
        d.ints([first, shape[axis] - first])


def concat(d):
    shape = d.shape()
    axis = d.axis(len(shape))
    d.attributes["axis"] = axis
    for _ in range(d.whole(1, 3)):
        shape[axis] = d.whole(1, 3)
        d.data(d.real(shape))


def squeeze(d, version):
    shape = d.shape()
    at = d.whole(0, len(shape))
    shape.insert(at, 1)
    at = at - len(shape) if version >= 11 and d.likely(0.3) else at
    d.data(d.real(shape))
    if version < 13:
        d.attributes["axes"] = [at]
    else:
        d.ints([at])


def unsqueeze(d, version):
    shape = d.shape(0, 3)
    axes = d.axes(len(shape) + 2, 2)
    axes = [axes[0], (axes[0] + 1) % (len(shape) + 2)] if len(axes) < 2 else axes
    d.data(d.real(shape))
    if version < 13:
        d.attributes["axes"] = [a % (len(shape) + 2) for a in axes]
    else:
        d.ints(axes)


def expand(d):
    shape = d.shape()
    small = [1 if d.likely() else size for size in shape]
    d.data(d.real(small[d.whole(0, len(small)):] or [1]))
    d.ints(shape)


def gemm(d):
    m, k, n = d.sizes(3)
    a, b = d.whole(0, 1), d.whole(0, 1)
    d.attributes.update(transA=a, transB=b)
    d.maybe("alpha", 0.7)
    d.maybe("beta", 1.3)
    d.data(d.real([k, m] if a else [m, k]))
    d.data(d.real([n, k] if b else [k, n]), True)
    if d.likely(0.8):
        d.data(d.real(d.one_of([n], [m, n], [1, n], [m, 1], [1])), True)


def mat_mul(d):
    m, k, n = d.sizes(3)
    batch = d.shape(0, 2)
    left = d.one_of([k], [m, k], [*batch, m, k])
    right = d.one_of([k], [k, n], [*batch, k, n])
    d.data(d.real(left))
    d.data(d.real(right), True)


def recurrent(d, op, version):
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    steps, batch, inputs, hidden = d.sizes(4, 1, 4)
    direction = d.one_of("forward", "reverse", "bidirectional")
    both = 2 if direction == "bidirectional" else 1
    d.attributes.update(direction=direction, hidden_size=hidden)
    d.outputs = 3 if op == "LSTM" else 2
    d.data(d.real([steps, batch, inputs]))
    d.data(d.real([both, gates * hidden, inputs]), True)
    d.data(d.real([both, gates * hidden, hidden]), True)
    if d.likely(0.3):
        return
    d.data(d.real([both, 2 * gates * hidden]), True) if d.likely() else d.absent()
    d.data(d.random.integers(1, steps + 1, batch).astype(np.int32)) if d.likely(0.4) else d.absent()
    d.data(d.real([both, batch, hidden])) if d.likely() else d.absent()
    if op == "LSTM" and d.likely():
        d.data(d.real([both, batch, hidden]))
        if d.likely(0.3):
            d.data(d.real([both, 3 * hidden]), True)
    if op == "GRU":
        d.maybe("linear_before_reset", 1)
    d.maybe("clip", 0.8, 0.2)


def norm(d, op):
    shape = [d.whole(1, 3), d.whole(1, 4), *d.sizes(d.whole(1, 2), 2, 4)]
    d.data(d.real(shape))
    if op == "LRN":
        d.attributes["size"] = d.one_of(1, 3, 5)
        d.maybe("alpha", 0.1)
        d.maybe("bias", 2.0)
        return
    d.maybe("epsilon", 1e-3)
    if op == "LayerNormalization":
        axis = d.whole(1, len(shape) - 1)
        d.attributes["axis"] = axis
        shape = shape[axis:]
    else:
        shape = shape[1:2]
    d.data(d.real(shape), True)
    d.data(d.real(shape), True)
    if op == "BatchNormalization":
        d.data(d.real(shape), True)
        d.data(np.abs(d.real(shape)) + 0.2, True)


def clip(d, version):
    d.data(d.real(d.shape()))
    if version < 11:
        d.maybe("min", -0.5)
        d.maybe("max", 0.5)
        return
    d.data(np.array(-0.5, np.float32), True) if d.likely() else d.absent()
    if d.likely():
        d.data(np.array(0.5, np.float32), True)


def resize(d, version):
    shape = [1, d.whole(1, 2), *d.sizes(2, 2, 6)]
    d.data(d.real(shape))
    d.attributes["mode"] = d.one_of("nearest", "linear")
    scales = [1, 1, d.one_of(0.5, 1.5, 2, 3, 0.7), d.one_of(0.5, 1.5, 2, 3, 0.7)]
    if version < 11:
        d.data(np.array([1, 1, d.whole(1, 3), d.whole(1, 3)], np.float32), True)
        return
    d.attributes["coordinate_transformation_mode"] = d.one_of("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    if d.attributes["coordinate_transformation_mode"] == "align_corners":
        scales = [1, 1, d.whole(1, 3), d.whole(1, 3)]  # the suite and onnxruntime differ if a size is rounded
    if d.attributes["mode"] == "nearest":
        d.attributes["nearest_mode"] = d.one_of("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    elif d.likely(0.3):
        d.attributes["mode"] = "cubic"
        d.maybe("exclude_outside", 1, 0.3)
    d.data(np.zeros(0, np.float32), True)
    if d.likely():
        d.data(np.array(scales, np.float32), True)
    else:
        d.data(np.zeros(0, np.float32), True) if version < 13 else d.absent()
        d.ints([*shape[:2], d.whole(1, 9), d.whole(1, 9)])


def upsample(d, version):
    d.data(d.real([1, 2, 3, 4]))
    d.attributes["mode"] = d.one_of("nearest", "linear")
    scales = [1.0, 1.0, float(d.whole(1, 3)), float(d.whole(1, 3))]
    if version < 9:
        d.attributes["scales"] = scales
    else:
        d.data(np.array(scales, np.float32), True)


def one_hot(d):
    depth = d.whole(2, 5)
    shape = d.shape(1, 3)
    d.data(d.random.integers(-depth, depth, shape).astype(np.int64))
    d.data(np.array(depth, np.int64), True)
    d.data(np.array([d.whole(0, 2), d.whole(3, 5)], np.float32), True)
    d.maybe("axis", d.axis(len(shape) + 1))


def quantise(d, op):
    shape = [d.whole(1, 3), d.whole(1, 4), d.whole(1, 4)]
    each = d.likely()
    size = [shape[1]] if each else []
    if each:
        d.attributes["axis"] = 1
    dtype = d.one_of(np.uint8, np.int8)
    info = np.iinfo(dtype)
    d.data(d.real(shape) if op == "QuantizeLinear" else d.random.integers(info.min, info.max, shape).astype(dtype))
    d.data((np.abs(d.real(size)) + 0.02).astype(np.float32), True)
    if d.likely() or op == "QuantizeLinear":
        d.data(d.random.integers(info.min, info.max, size or None, dtype=dtype) if size
               else np.array(d.whole(info.min, info.max), dtype), True)


def mat_mul_integer(d):
    m, k, n = d.whole(1, 4), d.whole(1, 300), d.whole(1, 4)
    d.data(d.random.integers(0, 255, [m, k]).astype(np.uint8))
    d.data(d.random.integers(-128, 127, [k, n]).astype(np.int8), True)
    d.data(np.array(d.whole(0, 255), np.uint8), True) if d.likely() else d.absent()
    if d.likely():
        d.data(np.array(d.whole(-128, 127), np.int8), True)


def conv_integer(d):
    kernel = windows(d, 2)
    d.attributes["kernel_shape"] = kernel
    channels = d.whole(1, 40)
    d.data(d.random.integers(0, 255, [1, channels, 6, 6]).astype(np.uint8))
    d.data(d.random.integers(0, 255, [3, channels, *kernel]).astype(np.uint8), True)
    d.data(np.array(d.whole(0, 255), np.uint8), True)


def grid_sample(d, version):
    d.data(d.real([1, 2, 4, 5]))
    d.data((d.real([1, 3, 3, 2]) * 0.8).astype(np.float32))
    modes = ("bilinear", "nearest", "bicubic") if version < 20 else ("linear", "nearest", "cubic")
    d.maybe("mode", d.one_of(*modes))
    d.maybe("padding_mode", d.one_of("zeros", "border", "reflection"))
    d.maybe("align_corners", 1)


def roi_align(d, version):
    d.data(d.real([2, 2, 8, 8]))
    low = d.random.random([3, 2]) * 4
    d.data(np.concatenate([low, low + 1 + 3 * d.random.random([3, 2])], 1).astype(np.float32))
    d.data(np.array([0, 1, 0], np.int64))
    d.attributes.update(output_height=d.whole(1, 3), output_width=d.whole(1, 3), sampling_ratio=d.whole(0, 3))
    d.maybe("mode", d.one_of("avg", "avg", "max"))
    if version >= 16:
        d.maybe("coordinate_transformation_mode", d.one_of("half_pixel", "output_half_pixel"))


def suppress(d):
    corner = d.random.random([1, 12, 2]) * 4
    d.data(np.concatenate([corner, corner + d.random.random([1, 12, 2]) * 3], 2).astype(np.float32))
    d.data(d.random.random([1, 2, 12]).astype(np.float32))
    d.data(np.array(d.whole(1, 5), np.int64), True)
    d.data(np.array(0.4, np.float32), True)
    if d.likely():
        d.data(np.array(0.3, np.float32), True)


def two(d, op):
    shape = d.shape()
    other = [1 if d.likely(0.3) else size for size in shape][d.whole(0, len(shape) - 1):]
    dtype = d.one_of(np.float32, np.int64, np.int32) if op != "Pow" else np.float32
    a, b = d.real(shape) * 5, d.real(other) * 5
    b = np.where(np.abs(b) < 1, 1, b)
    if op == "Pow":
        a, b = np.abs(a), np.round(b / 2)
    if op == "Mod" and dtype == np.float32:
        d.attributes["fmod"] = 1
    elif op == "Mod":
        d.maybe("fmod", 1)
    d.data(a.astype(dtype))
    d.data(b.astype(dtype), True)


def planes(d, op, version):
    b = d.whole(1, 3)
    d.attributes["blocksize"] = b
    if op == "DepthToSpace" and version >= 11:
        d.maybe("mode", d.one_of("DCR", "CRD"))
    d.data(d.real([1, 2 * b * b, 3, 2] if op == "DepthToSpace" else [1, 2, 3 * b, 2 * b]))


def trilu(d):
    d.data(d.real(d.sizes(d.whole(2, 3))))
    d.maybe("upper", d.whole(0, 1))
    if d.likely():
        d.data(np.array(d.whole(-3, 3), np.int64), True)


def unique(d):
    shape = d.shape(1, 2)
    d.data(d.random.integers(0, 3, shape).astype(np.float32))
    d.maybe("axis", d.axis(len(shape)))
    d.maybe("sorted", d.whole(0, 1))
    d.outputs = 4


def compress(d):
    shape = d.shape()
    axis = d.axis(len(shape)) if d.likely() else None
    size = shape[axis] if axis is not None else int(np.prod(shape))
    if axis is not None:
        d.attributes["axis"] = axis
    d.data(d.real(shape))
    d.data(d.random.random(d.whole(1, size)) < 0.6)


def einsum(d):
    equation, *shapes = d.one_of(("ij,jk->ik", [2, 3], [3, 4]), ("bij,bjk", [2, 3, 4], [2, 4, 2]), ("ii->i", [3, 3]),
                                 ("i,j->ij", [3], [4]), ("...ij->...ji", [2, 3, 4]), ("ij,ij->", [2, 3], [2, 3]))
    d.attributes["equation"] = equation
    for shape in shapes:
        d.data(d.real(shape))


def reshape(d):
    shape = d.sizes(3)
    d.data(d.real(shape))
    d.ints(d.one_of([-1], [0, -1], [shape[0] * shape[1], shape[2]], [0, 0, -1, 1], [shape[2], -1]))


def simple(d, op):
    shape = d.shape()
    d.data(d.real(shape))
    if op == "Transpose":
        d.maybe("perm", [int(a) for a in d.random.permutation(len(shape))], 0.8)
    if op == "Flatten":
        d.attributes["axis"] = d.whole(0, len(shape))
    if op == "Tile":
        d.ints(d.sizes(len(shape), 1, 3))
    if op == "Elu":
        d.maybe("alpha", 0.5)
    if op == "LpNormalization":
        d.attributes.update(axis=d.axis(len(shape)), p=d.whole(1, 2))


# Operators, their oldest version that is drawn, and how they are drawn.
OPERATORS = {
    "Conv": (7, lambda d, op, v: conv(d)), "ConvTranspose": (7, lambda d, op, v: conv_transpose(d)),
    "MaxPool": (7, pool), "AveragePool": (7, pool), "LpPool": (7, pool), "Pad": (7, lambda d, op, v: pad(d, v)),
    "Slice": (7, lambda d, op, v: slice_(d, v)), "ReduceSum": (7, lambda d, op, v: reduce_(d, v, 13)),
    **{op: (7, lambda d, op, v: reduce_(d, v, 18)) for op in
       ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
        "ReduceSumSquare")},
    "ArgMax": (7, lambda d, op, v: arg(d, v)), "ArgMin": (7, lambda d, op, v: arg(d, v)),
    "Softmax": (7, lambda d, op, v: softmax(d, v)), "LogSoftmax": (7, lambda d, op, v: softmax(d, v)),
    "Hardmax": (7, lambda d, op, v: softmax(d, v)), "Gather": (7, lambda d, op, v: gather(d)),
    "GatherElements": (11, lambda d, op, v: gather_elements(d)), "GatherND": (11, lambda d, op, v: gather_nd(d)),
    "ScatterElements": (11, lambda d, op, v: scatter_elements(d, v)), "ScatterND": (11, lambda d, op, v: scatter_nd(d)),
    "TopK": (7, lambda d, op, v: top_k(d, v)), "CumSum": (11, lambda d, op, v: cumulate(d)),
    "Split": (7, lambda d, op, v: split(d, v)), "Concat": (11, lambda d, op, v: concat(d)),
    "Squeeze": (7, lambda d, op, v: squeeze(d, v)), "Unsqueeze": (7, lambda d, op, v: unsqueeze(d, v)),
    "Expand": (8, lambda d, op, v: expand(d)), "Gemm": (7, lambda d, op, v: gemm(d)),
    "MatMul": (7, lambda d, op, v: mat_mul(d)), "LSTM": (7, recurrent), "GRU": (7, recurrent), "RNN": (7, recurrent),
    "BatchNormalization": (7, lambda d, op, v: norm(d, op)), "InstanceNormalization": (7, lambda d, op, v: norm(d, op)),
    "LayerNormalization": (17, lambda d, op, v: norm(d, op)), "LRN": (7, lambda d, op, v: norm(d, op)),
    "Clip": (7, lambda d, op, v: clip(d, v)), "Resize": (10, lambda d, op, v: resize(d, v)),
    "Upsample": (7, lambda d, op, v: upsample(d, v)), "OneHot": (9, lambda d, op, v: one_hot(d)),
    "QuantizeLinear": (13, lambda d, op, v: quantise(d, op)), "DequantizeLinear": (13, lambda d, op, v: quantise(d, op)),
    "MatMulInteger": (10, lambda d, op, v: mat_mul_integer(d)), "ConvInteger": (10, lambda d, op, v: conv_integer(d)),
    "GridSample": (16, lambda d, op, v: grid_sample(d, v)), "RoiAlign": (10, lambda d, op, v: roi_align(d, v)),
    "NonMaxSuppression": (10, lambda d, op, v: suppress(d)), "Mod": (10, lambda d, op, v: two(d, op)),
    "Div": (7, lambda d, op, v: two(d, op)), "Pow": (7, lambda d, op, v: two(d, op)),
    "Sub": (7, lambda d, op, v: two(d, op)), "DepthToSpace": (7, planes), "SpaceToDepth": (7, planes),
    "Trilu": (14, lambda d, op, v: trilu(d)), "Unique": (11, lambda d, op, v: unique(d)),
    "Compress": (9, lambda d, op, v: compress(d)), "Einsum": (12, lambda d, op, v: einsum(d)),
    "Reshape": (7, lambda d, op, v: reshape(d)),
    **{op: (7, lambda d, op, v: simple(d, op)) for op in ("Transpose", "Flatten", "Tile", "Elu", "LpNormalization")},
}
NEWEST = 21


def model_of(op, version, d):
    names = ["" if value is None else f"in{i}" for i, value in enumerate(d.inputs)]
    outs = [f"out{i}" for i in range(d.outputs)]
    node = helper.make_node(op, names, outs, **d.attributes)
    infos = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
             for name, value, known in zip(names, d.inputs, d.known) if value is not None and not known]
    initializers = [numpy_helper.from_array(value, name) for name, value, known in zip(names, d.inputs, d.known) if known]
    results = [onnx_output(name) for name in outs]
    graph = helper.make_graph([node], op, infos, results, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=8)


def onnx_output(name):
    info = helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None)
    info.ClearField("type")
    return info


def draw(op, random):
    """A model, its inputs and its results; None: onnxruntime refuses it."""
    oldest, how = OPERATORS[op]
    version = int(random.integers(oldest, NEWEST + 1)) if op != "Upsample" else int(random.integers(7, 10))
    d = Draw(random)
    how(d, op, version)
    model = model_of(op, version, d)
    given = [value for value, known in zip(d.inputs, d.known) if value is not None and not known]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return model, given, session.run(None, dict(zip((i.name for i in session.get_inputs()), given)))
    except Exception:  # noqa: BLE001  whatever it does not accept
        return None


def main():
    root = Path(sys.argv[1])
    count, seed = (int(sys.argv[i]) if len(sys.argv) > i else usual for i, usual in ((2, 12), (3, 1)))
    plain = len(sys.argv) == 2
    if plain and is_fresh(root, __file__):
        return
    lines = []
    for op in OPERATORS:
        random = np.random.default_rng([seed, *op.encode()])
        made = tries = 0
        while made < count and tries < 4 * count:
            tries += 1
            case = draw(op, random)
            if case is None:
                continue
            folder = root / f"{op}_{made}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "model.onnx").write_bytes(case[0].SerializeToString())
            for kind, values in (("input", case[1]), ("output", case[2])):
                for i, value in enumerate(values):
                    (folder / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(np.asarray(value)).SerializeToString())
            lines.append(f"{op}_{made} 1e-4 1e-5 -\n")
            made += 1
        if made < count:
            print(f"{op}: only {made} of {count} nodes are accepted by onnxruntime")
    (root / "cases.txt").write_text("".join(lines))
    if plain:
        note_fresh(root, __file__)
    print(f"{len(lines)} nodes drawn")


if __name__ == "__main__":
    main()
