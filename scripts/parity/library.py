"""Cairn's operators from Python: build/libcairn.so by ctypes, with the signatures of build/operators.json.

How a parameter of a signature becomes a parameter of the function in C is known to tools/check_signatures.py, which
compares the two; this file uses its tables.
"""

import ctypes as c
import json
import math
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import check_signatures  # noqa: E402

DTYPES = {"bool": torch.bool, "u8": torch.uint8, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32,
          "i64": torch.int64, "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}
NAMES = list(DTYPES)  # in the order of cn_dtype
NAME_OF = {dtype: name for name, dtype in DTYPES.items()}
MAX_DIMS = 8
ROOM = 64  # results of split and chunk


class Refused(Exception):
    """The error of a call. It has no text if the call returned NULL without an error."""


class Unspeakable(Exception):
    """Arguments that have no form in C, such as a 0 in a field where 0 means the default."""


class Dims(c.Structure):
    _fields_ = [("n", c.c_int), ("v", c.c_int64 * MAX_DIMS)]


class Scope(c.Structure):
    _fields_ = [("mark", c.c_size_t)]


class Desc(c.Structure):  # cn_desc up to its number of threads; the rest stays 0
    _fields_ = [("device", c.c_char_p), ("seed", c.c_uint64), ("threads", c.c_int), ("rest", c.c_char * 256)]


class GradDesc(c.Structure):
    _fields_ = [("gradients", c.c_void_p), ("retain", c.c_bool), ("create_graph", c.c_bool),
                ("allow_unused", c.c_bool)]


PLAIN = {"cn_tensor *": c.c_void_p, "cn_tensor *const *": c.c_void_p, "cn_tensor **": c.c_void_p, "cn_ctx *": c.c_void_p,
         "double": c.c_double, "int64_t": c.c_int64, "int": c.c_int, "bool": c.c_bool, "cn_dims": Dims,
         "const char *": c.c_char_p, "void": None}


def dims(values):
    """A list of axes or sizes; None: all axes."""
    if values is None:
        return Dims(-1)
    values = [values] if isinstance(values, int) else list(values)
    if len(values) > MAX_DIMS:
        raise Unspeakable("more than 8 axes")
    return Dims(len(values), (c.c_int64 * MAX_DIMS)(*values))


def listed(build):
    """The signatures of all public operators and functions, by name."""
    text = json.loads((build / "operators.json").read_text(encoding="utf-8"))
    return {s["name"]: s for s in text["operators"] + text["functions"] if not s["internal"]}


class Library:
    def __init__(self, build):
        self.c = c.CDLL(str(build / "libcairn.so"))
        self.headers = check_signatures.Headers()
        self.signatures = listed(build)
        self.structs = {name: self.structure(name) for name in self.headers.structs}
        self.bind()
        desc = Desc(device=b"cpu", seed=1, threads=1)
        self.ctx = self.open(c.byref(desc))

    def bind(self):
        vp, i64, size = c.c_void_p, c.c_int64, c.c_size_t
        table = {"open": (vp, [vp]), "failed": (c.c_bool, [vp]), "error": (c.c_char_p, [vp]),
                 "error_clear": (None, [vp]), "scope_begin": (Scope, [vp]), "scope_end": (None, [vp, Scope]),
                 "from": (vp, [vp, c.c_int, Dims, vp]), "scalar": (vp, [vp, c.c_int, c.c_double]),
                 "read": (c.c_bool, [vp, vp, size]), "type": (c.c_int, [vp]), "shape": (Dims, [vp]),
                 "set_requires_grad": (c.c_bool, [vp, c.c_bool]),
                 "grad": (c.c_bool, [vp, c.c_int, vp, c.c_int, vp, vp]), "permute": (vp, [vp, Dims]),
                 "slice": (vp, [vp, i64, i64, i64, i64]), "expand": (vp, [vp, Dims]), "mul": (vp, [vp, vp]),
                 "add": (vp, [vp, vp]), "sum": (vp, [vp, Dims, c.c_bool])}
        for name, (result, parameters) in table.items():
            function = self.c["cn_" + name]
            function.restype, function.argtypes = result, parameters
            setattr(self, name, function)

    def kind(self, text):
        """The ctypes type of a type in C; enumerations are int, descriptors are pointers."""
        return PLAIN[text] if text in PLAIN else c.c_void_p if text.endswith("*") else c.c_int

    def structure(self, name):
        fields = []
        for field, (kind, size) in self.headers.structs[name].items():
            kind = self.kind(kind)
            fields.append((field, kind * int(size) if size.isdigit() else kind))
        return type(name, (c.Structure,), {"_fields_": fields})

    def check(self, what):
        """Raises Refused if there is an error, or if `what` is nothing."""
        if self.failed(self.ctx):
            text = self.error(self.ctx).decode()
            self.error_clear(self.ctx)
            raise Refused(text)
        if not what:
            raise Refused("")
        return what

    # ---- tensors ----

    def tensor(self, data):
        data = data.detach().contiguous()
        shape = dims(data.shape)
        return self.check(getattr(self, "from")(self.ctx, NAMES.index(NAME_OF[data.dtype]), shape, data.data_ptr()))

    def value(self, handle):
        shape = self.shape(handle)
        out = torch.empty(list(shape.v[:shape.n]), dtype=DTYPES[NAMES[self.type(handle)]])
        self.check(self.read(handle, out.data_ptr(), out.numel() * out.element_size()))
        return out

    # ---- calls ----

    def forms(self, name):
        """Endings of the functions of an operator: "" and, where they exist, "_s" (a number), "_", "_s_" (in place)."""
        own = [form for form in ("", "_s", "_", "_s_") if "cn_" + name + form in self.headers.functions]
        return [form for form in own if not form or name + form not in self.signatures]

    def call(self, name, form, values):
        """Handles of the results, a list. Tensors in `values` are handles; in-place forms return their operand."""
        signature, holder = self.signatures[name], []
        result, parameters = self.headers.functions["cn_" + name + form]
        function = self.c["cn_" + name + form]
        left = {p["name"]: p for p in signature["parameters"]}
        arguments, outs = [], []
        for kind, parameter in parameters:
            arguments.append(self.argument(kind, parameter, left, values, holder, outs))
        function.restype = self.kind(result)
        function.argtypes = [self.kind(kind) for kind, _ in parameters]
        if signature["result_list"]:
            room = (c.c_void_p * ROOM)()
            arguments[-2], arguments[-1] = c.cast(room, c.c_void_p), ROOM
            count = self.check(function(*arguments))
            return [room[k] for k in range(min(count, ROOM))]
        first = self.check(function(*arguments))
        if form.endswith("_"):
            first = values[parameters[0][1]]
        return [first] + [out.value for out in outs]

    def argument(self, kind, name, left, values, holder, outs):
        if kind == "cn_ctx *":
            return self.ctx
        if kind == "cn_tensor **":
            outs.append(c.c_void_p())
            return c.cast(c.byref(outs[-1]), c.c_void_p)
        if name == "desc":
            return self.descriptor(kind, left, values, holder)
        if kind == "int":  # the length of the list before it, or the room for results
            return len(holder[-1]) if holder else 0
        if kind == "cn_tensor *const *":
            left.pop(name)
            holder.append((c.c_void_p * len(values[name]))(*values[name]))
            return c.cast(holder[-1], c.c_void_p)
        if name in ("height", "width") and name not in left:
            pair = next(p for p in left.values() if p.get("count") == 2)
            return self.pair(values[pair["name"]])[name == "width"]
        parameter = left.pop(name)
        return self.plain(kind, parameter, values[name])

    @staticmethod
    def pair(value):
        return [value, value] if isinstance(value, int) else list(value)

    def plain(self, kind, parameter, value):
        if kind == "cn_dims":
            return dims(value)
        if parameter["kind"] == "enum":
            return parameter["choices"].index(value)
        if kind == "cn_dtype":
            return NAMES.index(value)
        if kind == "const char *":
            return None if value is None else value.encode()
        if kind == "double" and parameter["optional"]:
            if value is not None and math.isnan(value):
                raise Unspeakable("NaN, which means None")
            return math.nan if value is None else value
        if kind == "int64_t" and value is None:
            return 0
        return value

    def descriptor(self, kind, left, values, holder):
        """A descriptor from the parameters that are no arguments of their own. In its fields, 0 is the default."""
        desc = self.structs[kind.replace("const ", "").replace(" *", "")]()
        holder.append(desc)
        for name, parameter in left.items():
            value = values[name]
            field = check_signatures.FIELDS.get(name, name)
            flag = next((f for f, of in check_signatures.FLAGS.items() if of == name and hasattr(desc, f)), None)
            if field != name:
                setattr(desc, field, not value)
            elif parameter["kind"] == "int[]":
                self.fill(desc, field, parameter, value)
            elif parameter["kind"] == "enum":
                setattr(desc, field, parameter["choices"].index(value))
            elif flag == "has_ignore":
                desc.has_ignore, desc.ignore_index = str(value) != parameter["default"], value
            elif flag == "has_padding":
                desc.has_padding, desc.padding_idx = value is not None, value or 0
            elif flag:
                setattr(desc, field, value)
                setattr(desc, flag, value == 0)
            elif value is not None:
                if isinstance(getattr(desc, field), c.Array):  # one number for each axis, or one for all
                    numbers = value if isinstance(value, list) else [value]
                    value = type(getattr(desc, field))(*numbers)
                elif value == 0 and parameter["kind"] in ("float", "int") and parameter["default"] not in ("0", "None"):
                    raise Unspeakable(f"{name} = 0")
                setattr(desc, field, value)
        return c.cast(c.byref(desc), c.c_void_p)

    def fill(self, desc, field, parameter, value):
        if value is None:
            return
        numbers = [value] * parameter["count"] if isinstance(value, int) else list(value)
        if parameter["default"] != "0" and 0 in numbers:
            raise Unspeakable(f"{field} = 0")
        array = getattr(desc, field)
        for k, number in enumerate(numbers[:len(array)]):
            array[k] = number

    # ---- gradients ----

    def gradients(self, outputs, seeds, leaves, create_graph=False):
        """Gradients of each leaf, None where the outputs do not depend on it."""
        outs, ins = (c.c_void_p * len(outputs))(*outputs), (c.c_void_p * len(leaves))(*leaves)
        given, got = (c.c_void_p * len(seeds))(*seeds), (c.c_void_p * len(leaves))()
        desc = GradDesc(c.cast(given, c.c_void_p), True, create_graph, True)
        self.check(self.grad(outs, len(outputs), ins, len(leaves), got, c.byref(desc)))
        return [got[k] or None for k in range(len(leaves))]
