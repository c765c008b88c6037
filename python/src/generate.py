#!/usr/bin/env python3
"""Makes functions.c from build/operators.json: a Python function and a method for every operator.

    generate.py operators.json functions.c

How a parameter of a signature becomes a parameter in C is known to tools/check_signatures.py, whose tables are used.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import check_signatures as known  # noqa: E402

# Operators whose in-place form is their result assigned to the operand; those of MAP with one result have one as well.
IN_PLACE = {"masked_fill", "masked_scatter", "scatter", "scatter_add", "scatter_reduce", "index_add", "index_fill",
            "index_put", "index_reduce", "put", "addmm", "addmv", "addbmm", "baddbmm", "addr", "tril", "triu", "cumsum",
            "cumprod", "nan_to_num", "clamp", "clamp_t", "fmod", "deg2rad", "rad2deg", "logit", "squeeze", "unsqueeze",
            "transpose", "swapaxes", "bernoulli"}
# Parameters that PyTorch has besides: a dtype that the input is converted to first, a factor of the other operand, and
# some that change nothing here.
CONVERTS = {"sum", "mean", "prod", "nansum", "nanmean", "cumsum", "cumprod", "softmax", "log_softmax"}
SCALES = {"add", "sub"}
IGNORED = {"clone": ["memory_format"], "contiguous": ["memory_format"], "gather": ["sparse_grad"], "topk": ["sorted"],
           "sort": ["stable"], "argsort": ["stable"], "cdist": ["compute_mode"]}
# What stands before the call of an operator whose descriptor cannot express an argument.
BEFORE = {"smooth_l1_loss": "    if (v_beta == 0) {\n"
                            "        const cn_plain_loss_desc plain = { (cn_reduction)v_reduction };\n"
                            "        return call_finish(&k, cn_l1_loss(v_input, v_target, &plain), a, 1);\n    }\n"}
DTYPES = {"bool": "CN_BOOL", "u8": "CN_U8", "i8": "CN_I8", "i16": "CN_I16", "i32": "CN_I32", "i64": "CN_I64",
          "f16": "CN_F16", "bf16": "CN_BF16", "f32": "CN_F32", "f64": "CN_F64"}


def c_text(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def c_number(text):
    return {"inf": "INFINITY", "-inf": "-INFINITY", "nan": "NAN"}.get(text, text)


class Function:
    """The C text for one signature."""

    def __init__(self, headers, signature):
        self.headers, self.signature, self.name = headers, signature, signature["name"]
        self.parameters = list(signature["parameters"])
        self.c_result, self.c_parameters = headers.functions["cn_" + self.name]
        self.creates = self.c_parameters[:1] == [("cn_ctx *", "ctx")]
        self.doc = signature["call"] + "\n--\n\n" + signature["doc"]
        if self.creates:
            self.parameters += [{"name": n, "kind": k, "optional": True, "by_name": True, "default": "None"}
                                for n, k in (("device", "device"), ("requires_grad", "bool"), ("layout", "any"),
                                             ("pin_memory", "any"), ("generator", "any"))]
        extra = [(n, "any", self.name != "topk") for n in IGNORED.get(self.name, ())]
        extra += [("dtype", "any", True)] if self.name in CONVERTS else []
        extra += [("alpha", "any", True)] if self.name in SCALES else []
        self.parameters += [{"name": n, "kind": k, "optional": True, "by_name": by_name, "default": "None"}
                            for n, k, by_name in extra]
        self.index = {p["name"]: i for i, p in enumerate(self.parameters)}
        self.tensors = [i for i, p in enumerate(self.parameters) if p["kind"] == "Tensor"]

    # ---- what the call looks like ----

    def table(self):
        names = ", ".join(c_text(p["name"]) for p in self.parameters)
        n = len(self.parameters)
        positional = sum(not p["by_name"] for p in self.parameters)
        required = 0
        for p in self.parameters:
            if p["default"] is not None or p["optional"] or p["by_name"]:
                break
            required += 1
        last = self.parameters[positional - 1] if positional else None
        collects = bool(last and last["kind"] == "int[]" and not last.get("count"))
        return (f"static const char *const {self.name}_names[] = {{ {names} }};\n"
                f"static PyObject *{self.name}_interned[{n}];\n"
                f"static const parameters {self.name}_parameters = {{ {c_text(self.name)}, {n}, {positional}, "
                f"{required}, {str(collects).lower()}, {self.name}_names, {self.name}_interned }};\n")

    # ---- arguments ----

    def value(self, parameter, declare=True):
        """C lines that put one argument into a variable of its name."""
        name, kind, i = parameter["name"], parameter["kind"], self.index[parameter["name"]]
        v, default = "v_" + name, parameter["default"]
        given, text = f"a[{i}]", c_text(name)
        if kind == "Tensor":
            optional = "true" if parameter["optional"] else "false"
            return (f"    cn_tensor *{v};\n    if (take_tensor(&k, {given}, {text}, {optional}, a, "
                    f"{len(self.parameters)}, &{v})) goto failed;\n")
        if kind == "Tensor[]":
            return (f"    cn_tensor **{v};\n    int {v}_n;\n"
                    f"    if (take_tensors(&k, {given}, {text}, &{v}, &{v}_n)) goto failed;\n")
        if kind == "int[]" and parameter.get("count", 0) > 1 or kind == "int[]" and parameter.get("in_descriptor"):
            count = parameter["count"]
            first = "0" if default in (None, "None") else default
            start = ", ".join([first] * count)
            take = "take_some" if self.name == "interpolate" else "take_fixed"
            zero = ""  # in a descriptor 0 means the default
            if parameter.get("in_descriptor") and default != "0":
                zero = f"    if ({given} && {given} != Py_None && refuse_zero(&k, {text}, {v}, {count})) goto failed;\n"
            if self.name == "interpolate":
                zero = ""
            return (f"    int64_t {v}[{count}] = {{ {start} }};\n"
                    f"    if ({given} && {take}(&k, {given}, {text}, {count}, {v})) goto failed;\n{zero}")
        if kind == "int[]":
            start = "CN_ALL" if default in (None, "None") else f"CN_DIMS({default})"
            return (f"    cn_dims {v} = {start};\n"
                    f"    if ({given} && take_dims(&k, {given}, {text}, &{v})) goto failed;\n")
        if kind == "float" and parameter.get("numbers"):
            n = parameter["numbers"]
            return (f"    double {v}[{n}] = {{ 0 }};\n    if ({given} && {given} != Py_None && "
                    f"take_floats(&k, {given}, {text}, {n}, {v})) goto failed;\n")
        if kind == "float":
            if parameter["optional"]:
                return (f"    double {v} = NAN;\n    if ({given} && {given} != Py_None && "
                        f"take_float(&k, {given}, {text}, &{v})) goto failed;\n")
            start = c_number(default) if default is not None else "0"
            none = f" && {given} != Py_None" if default is not None else ""
            return (f"    double {v} = {start};\n"
                    f"    if ({given}{none} && take_float(&k, {given}, {text}, &{v})) goto failed;\n")
        if kind == "int":
            start = "0" if default in (None, "None") else default
            none = f" && {given} != Py_None" if parameter["optional"] else ""
            return (f"    int64_t {v} = {start};\n"
                    f"    if ({given}{none} && take_int(&k, {given}, {text}, &{v})) goto failed;\n")
        if kind == "bool":
            start = "true" if default == "True" else "false"
            return (f"    bool {v} = {start};\n"
                    f"    if ({given} && {given} != Py_None && take_bool(&k, {given}, {text}, &{v})) goto failed;\n")
        if kind == "dtype":
            usual = DTYPES[default] if default else "CN_F32"
            return f"    cn_dtype {v};\n    if (take_dtype(&k, {given}, {text}, {usual}, &{v})) goto failed;\n"
        if kind == "str":
            start = "NULL" if default in (None, "None") else c_text(default.strip("'"))
            return (f"    const char *{v} = {start};\n"
                    f"    if ({given} && take_str(&k, {given}, {text}, &{v})) goto failed;\n")
        if kind == "enum":
            choices = ", ".join(c_text(c) for c in parameter["choices"])
            start = parameter["choices"].index(default) if default else 0
            return (f"    static const char *const {v}_choices[] = {{ {choices} }};\n    int {v} = {start};\n"
                    f"    if ({given} && take_choice(&k, {given}, {text}, {v}_choices, "
                    f"{len(parameter['choices'])}, &{v})) goto failed;\n")
        return ""

    def field(self, fields, parameter):
        """A C line that puts a variable into the descriptor. In its fields 0 is the default."""
        name = parameter["name"]
        v, field, flag = "v_" + name, known.FIELDS.get(name, name), None
        for f, of in known.FLAGS.items():
            if of == name and f in fields:
                flag = f
        if field != name:
            return f"    desc.{field} = !{v};\n"
        if parameter["kind"] == "int[]":
            return f"    memcpy(desc.{field}, {v}, sizeof {v});\n"
        if flag == "has_ignore":
            return f"    desc.{field} = {v};\n    desc.{flag} = {v} != {parameter['default']};\n"
        if flag == "has_padding":
            given = f"a[{self.index[name]}]"
            return f"    desc.{field} = {v};\n    desc.{flag} = {given} && {given} != Py_None;\n"
        if flag:
            return f"    desc.{field} = {v};\n    desc.{flag} = {v} == 0;\n"
        if parameter.get("numbers"):
            return f"    memcpy(desc.{field}, {v}, sizeof {v});\n"
        if parameter["kind"] == "float" and parameter["optional"]:
            return f"    if (!isnan({v})) desc.{field} = {v};\n"
        if parameter["kind"] == "float" and parameter["default"] not in ("0", "None"):
            return f"    desc.{field} = {v} == 0 ? 1e-300 : {v};\n"  # 0 itself would be the default
        return f"    desc.{field} = {v};\n"

    def arguments(self, suffix=""):
        """(C lines before the call, its arguments)."""
        left = {p["name"]: p for p in self.parameters if p["kind"] not in ("device", "any") and
                not (self.creates and p["name"] == "requires_grad")}
        lines, arguments, outs = "", [], []
        descriptor = next((kind for kind, name in self.c_parameters if name == "desc"), None)
        plain = {name for _, name in self.c_parameters}
        if descriptor:
            fields = self.headers.structs[descriptor.replace("const ", "").replace(" *", "")]
            for p in left.values():
                if p["kind"] == "int[]" and p["name"] not in plain:
                    p["in_descriptor"] = True
                elif p["kind"] == "float" and p["name"] not in plain and fields.get(p["name"], ("", ""))[1]:
                    p["numbers"] = int(fields[p["name"]][1])
        for p in left.values():
            if p["kind"] == "Tensor":
                lines += self.value(p)
        if self.name in CONVERTS:
            lines += f"    if (convert_first(&k, a[{self.index['dtype']}], &v_input)) goto failed;\n"
        if self.name in SCALES:
            lines += f"    if (scale_other(&k, a[{self.index['alpha']}], &v_other)) goto failed;\n"
        for p in left.values():
            if p["kind"] != "Tensor":
                lines += self.value(p)
        used = set()
        for kind, name in self.c_parameters:
            if kind == "cn_ctx *":
                arguments.append("k.c->cn")
            elif kind == "cn_tensor **" and name == "out":
                arguments.append("room")
            elif kind == "int" and name == "room":
                arguments.append("MOST_RESULTS")
            elif kind == "cn_tensor **":
                outs.append(name)
                arguments.append(f"&results[{len(outs)}]")
            elif name == "desc":
                arguments.append("&desc")
            elif name in ("height", "width") and name not in left:
                pair = next(p for p in left.values() if p.get("count") == 2)
                used.add(pair["name"])
                arguments.append(f"v_{pair['name']}[{int(name == 'width')}]")
            elif kind == "int" and arguments and name not in left:
                arguments.append(arguments[-1] + "_n")
            else:
                used.add(name)
                p = left[name]
                if p["kind"] == "int[]" and p.get("count", 0) > 1:
                    count = p["count"]
                    inside = ", ".join(f"v_{name}[{i}]" for i in range(count))
                    none = f"!a[{self.index[name]}] || a[{self.index[name]}] == Py_None"
                    all_axes = f"{none} ? CN_ALL : " if p["default"] == "None" else ""
                    arguments.append(f"{all_axes}CN_DIMS({inside})")
                elif p["kind"] == "enum":
                    arguments.append(f"({kind})v_{name}")
                else:
                    arguments.append("v_" + name)
        if descriptor:
            struct = descriptor.replace("const ", "").replace(" *", "")
            fields = self.headers.structs[struct]
            lines += f"    {struct} desc = {{ 0 }};\n"
            for p in left.values():
                if p["name"] not in used:
                    lines += self.field(fields, p)
        return lines, ", ".join(arguments)

    # ---- functions ----

    def number_form(self, function, second):
        """C lines for a plain number as the second operand; or nothing."""
        if len(self.headers.functions.get(function + "_s", (0, ()))[1]) != 2 or len(self.tensors) < 2:
            return ""
        plain = f" && !a[{self.index['alpha']}]" if self.name in SCALES else ""
        return (f"    double number;\n    cn_tensor *x;\n"
                f"    if (a[1] && !is_tensor(a[1]){plain} && take_beside(&k, a[0], a[1], &x, &number))\n"
                f"        return call_finish(&k, {function}_s(x, number), a, 1);\n")

    def body(self):
        n = len(self.parameters)
        name, signature = self.name, self.signature
        lines, arguments = self.arguments()
        begin = (f"call_begin_in(&k, {c_text(name)}, a[{self.index['device']}])" if self.creates else
                 f"call_begin(&k, {c_text(name)}, a, {n})")
        text = f"static PyObject *{name}_call(PyObject **a, PyObject *list)\n{{\n    call k;\n"
        text += f"    if ({begin}) {{\n        Py_XDECREF(list);\n        return NULL;\n    }}\n    k.list = list;\n"
        text += self.number_form("cn_" + name, None)
        text += lines + BEFORE.get(name, "")
        results = signature["results"]
        if signature["result_list"]:
            text += ("    cn_tensor **room = PyMem_Malloc(sizeof *room * MOST_RESULTS);\n    if (!room) goto failed;\n"
                     f"    int count = cn_{name}({arguments});\n"
                     "    if (count > MOST_RESULTS) {\n        too_many(&k);\n        PyMem_Free(room);\n"
                     "        goto failed;\n    }\n    PyObject *result = list_of_results(&k, room, count);\n"
                     "    PyMem_Free(room);\n    return result;\n")
        elif len(results) > 1:
            names = ", ".join(c_text(r) for r in results)
            text += (f"    static const char *const result_names[] = {{ {names} }};\n"
                     f"    cn_tensor *results[{len(results)}] = {{ 0 }};\n    results[0] = cn_{name}({arguments});\n"
                     f"    return many_results(&k, {c_text(name)}, result_names, results, {len(results)});\n")
        elif self.creates:
            text += (f"    PyObject *result = tensor_wrap(k.c, cn_{name}({arguments}));\n    call_end(&k);\n"
                     f"    return new_leaf(result, a[{self.index['requires_grad']}]);\n")
        else:
            text += f"    return call_finish(&k, cn_{name}({arguments}), a, {n});\n"
        if "goto failed" in text:
            text += "failed:\n    call_end(&k);\n    return NULL;\n"
        return text + "}\n"

    def wrappers(self):
        n = len(self.parameters)
        return f"FUNCTION({self.name}, {n})\n" + (f"METHOD({self.name}, {n})\n" if self.is_method() else "")

    def is_method(self):
        return self.parameters and self.parameters[0]["kind"] == "Tensor" and not self.creates

    def has_in_place(self):
        s = self.signature
        if not self.is_method() or s["result_list"] or len(s["results"]) > 1:
            return False
        return s.get("kind") == "MAP" and self.name not in ("cast",) or self.name in IN_PLACE

    def in_place(self):
        """x.NAME_(...): by the C function of this name, or by assigning the result."""
        if not self.has_in_place():
            return ""
        n, name = len(self.parameters), self.name
        text = (f"static PyObject *{name}_in_place(PyObject *self, PyObject *const *args, Py_ssize_t n, "
                "PyObject *names)\n{\n"
                f"    PyObject *a[{n}] = {{ self }}, *list;\n    call k;\n"
                f"    if (bind_arguments(&{name}_parameters, 1, args, n, names, a, &list) || "
                f"call_begin(&k, \"{name}_\", &self, 1)) {{\n        Py_XDECREF(list);\n        return NULL;\n    }}\n"
                "    k.list = list;\n    if (refuse_in_place(&k, self)) goto failed;\n")
        number = self.number_form("cn_" + name, None)
        text += number.replace("return call_finish(&k, ", "return assign_result(&k, self, ").replace(", a, 1);", ");")
        lines, arguments = self.arguments()
        text += lines + f"    return assign_result(&k, self, cn_{name}({arguments}));\n"
        return text + "failed:\n    call_end(&k);\n    return NULL;\n}\n"


HEAD = """/* Made by generate.py from the operators' signatures: a function and a method for each. */
#include <math.h>
#include <string.h>

#include "call.h"

#define MOST_RESULTS 65536 /* of split, chunk, unbind */

static PyObject *new_leaf(PyObject *x, PyObject *requires_grad)
{
    int on = x && requires_grad ? PyObject_IsTrue(requires_grad) : 0;
    if (on > 0 && !cn_set_requires_grad(handle_of(x), true)) on = -1, context_error(context_of(x));
    if (on < 0) Py_CLEAR(x);
    return x;
}

/* A function of the module, and a method, whose arguments are bound to an array for NAME_call. */
#define FUNCTION(name, count)                                                                                          \\
    static PyObject *name##_function(PyObject *m, PyObject *const *args, Py_ssize_t n, PyObject *names)                \\
    {                                                                                                                  \\
        (void)m;                                                                                                       \\
        PyObject *a[count] = { 0 }, *list;                                                                             \\
        if (!bind_arguments(&name##_parameters, 0, args, n, names, a, &list)) return name##_call(a, list);             \\
        Py_XDECREF(list);                                                                                              \\
        return NULL;                                                                                                   \\
    }
#define METHOD(name, count)                                                                                            \\
    static PyObject *name##_method(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)               \\
    {                                                                                                                  \\
        PyObject *a[count] = { self }, *list;                                                                          \\
        if (!bind_arguments(&name##_parameters, 1, args, n, names, a, &list)) return name##_call(a, list);             \\
        Py_XDECREF(list);                                                                                              \\
        return NULL;                                                                                                   \\
    }

static void too_many(const call *k)
{
    PyErr_Format(PyExc_ValueError, "%s(): more than %d results", k->function, MOST_RESULTS);
}

/* Whether `number` is a plain number beside the tensor o, whose handle becomes *x. */
static bool take_beside(call *k, PyObject *o, PyObject *number, cn_tensor **x, double *v)
{
    if (!is_tensor(o) || context_of(o) != k->c) return false;
    *x = operand_of(o);
    return take_number(k, number, x, v);
}

static int convert_first(call *k, PyObject *dtype, cn_tensor **x)
{
    int t;
    if (dtype_from(dtype, &t)) return -1;
    if (t >= 0 && cn_type(*x) != (cn_dtype)t && !(*x = cn_cast(*x, (cn_dtype)t))) return context_error(k->c), -1;
    return 0;
}

static int scale_other(call *k, PyObject *alpha, cn_tensor **x)
{
    double v = 1;
    if (alpha && take_float(k, alpha, "alpha", &v)) return -1;
    if (v != 1 && !(*x = cn_mul_s(*x, v))) return context_error(k->c), -1;
    return 0;
}

static int refuse_in_place(const call *k, PyObject *self)
{
    const tensor *t = (const tensor *)self;
    if (t->detached || grad_off || !cn_requires_grad(t->handle) || !tensor_is_leaf(self)) return 0;
    PyErr_Format(PyExc_RuntimeError, "%s(): a leaf Tensor that requires grad is being used in an in-place operation.",
                 k->function);
    return -1;
}

"""


def main():
    listed = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    headers = known.Headers()
    functions = [Function(headers, s) for s in listed["operators"] + listed["functions"] if not s["internal"]]
    out = HEAD
    for f in functions:
        out += f.table() + f.body() + f.wrappers() + f.in_place() + "\n"
    flags = "METH_FASTCALL | METH_KEYWORDS"
    out += "PyMethodDef generated_functions[] = {\n"
    out += "".join(f"    {{ {c_text(f.name)}, (PyCFunction)(void (*)(void)){f.name}_function, {flags}, "
                   f"{c_text(f.doc)} }},\n" for f in functions).replace("\n--\n\n", "\\n--\\n\\n")
    out += "    { 0 },\n};\n\nPyMethodDef generated_methods[] = {\n"
    for f in functions:
        if f.is_method():
            out += (f"    {{ {c_text(f.name)}, (PyCFunction)(void (*)(void)){f.name}_method, {flags}, "
                    f"{c_text(f.signature['doc'])} }},\n")
        if f.has_in_place():
            out += (f"    {{ {c_text(f.name + '_')}, (PyCFunction)(void (*)(void)){f.name}_in_place, {flags}, "
                    f"{c_text('In-place form of ' + f.name + '.')} }},\n")
    out += "    { 0 },\n};\n"
    path = Path(sys.argv[2])
    if not path.exists() or path.read_text(encoding="utf-8") != out:
        path.write_text(out, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
