#!/usr/bin/env python3
"""Makes what cairn.js needs to call C, from the public headers and build/operators.json:

    generate.py operators.json OUT

OUT/functions.c   pointers to the public functions, and a check of the layouts below
OUT/tables.js     the same functions in the same order with their parameters, descriptors, enumerations, signatures
OUT/cairn.d.ts    types: web/cairn.d.ts, with the operators and layers filled in

Headers are read by tools/check_signatures.py, which knows how a signature becomes a prototype.
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import check_signatures as known  # noqa: E402

# What a page calls. Folders of files, images and terminals are not among it. Callbacks are numbers of WebAssembly's table.
HEADERS = ["base.h", "tensor.h", "dict.h", "grad.h", *sorted(f"ops/{p.name}" for p in (known.INCLUDE / "ops").glob("*.h")),
           "data.h", "loss.h", "init.h", "nn.h", "gpt.h", "optim.h", "schedule.h", "average.h", "io.h", "checkpoint.h", "text.h",
           "gpu.h"]
LEFT_OUT = re.compile(r"cn_(dataset_(new|map|folder|records|stream|tokens)|data_sampler_(new|batches)|draw_\w+|room_take|map_scratch)$")

# Letters of C types, as cairn.js reads them. d: double, f: float, i: 32 bits, b: bool, j: 64 bits, s: text, p: pointer,
# D: cn_dims, P: cn_params, A: cn_allocator, F: cn_field, {name}: a descriptor, by address. In structs also numbers of
# elements: j3.
LETTERS = {"double": "d", "float": "f", "int": "i", "unsigned": "i", "int32_t": "i", "uint32_t": "i", "bool": "b",
           "int64_t": "j", "uint64_t": "j", "size_t": "z", "const char *": "s", "cn_dims": "D", "cn_params": "P", "void": "v",
           "cn_scope": "z", "cn_named_list": "P", "cn_allocator": "A", "cn_logger": "p", "cn_field": "F",
           "char": "c"}
SIZES = {"d": (8, 8), "f": (4, 4), "i": (4, 4), "b": (1, 1), "j": (8, 8), "z": (4, 4), "s": (4, 4), "p": (4, 4),
         "D": (72, 8), "P": (8, 4), "A": (8, 4), "F": (88, 8), "c": (1, 1)}
RETURNED = ["cn_batch"] # structs that C fills in: their fields are listed, too


class Headers(known.Headers):
    def __init__(self):
        text = "\n".join(known.without_comments((known.INCLUDE / name).read_text(encoding="utf-8")) for name in HEADERS)
        plain = re.sub(r"[\w ]+[ *]\(\*(\w+)\)\([^;]*?\);", r"void *\1;", text)  # pointers to functions
        self.structs, self.enums = known.read_structs(plain), known.read_enums(text)
        self.functions = known.read_functions(re.sub(r"void \(\*ended\)\(void \*user\)", "void *ended", text))
        self.callbacks = set(re.findall(r"typedef [\w ]+[ *]\(\*(cn_\w+)\)\(", text))
        for old, new in re.findall(r"typedef (cn_\w+) (cn_\w+);", text):
            self.structs[new] = self.structs[old]

    def letter(self, kind):
        """The letter of a C type; None: cairn.js does not pass it."""
        if kind in LETTERS:
            return LETTERS[kind]
        if kind in self.enums or kind == "cn_code":
            return "i"
        if kind in self.callbacks:
            return "p"
        found = re.fullmatch(r"const (\w+_desc|cn_training) \*", kind)
        if found and self.layout(found.group(1)):
            return "{" + found.group(1) + "}"
        return "p" if kind.endswith("*") else None

    def layout(self, name):
        """Fields of a struct: [(name, letter, number of elements, offset)]; None: it has a field of another type."""
        at, fields = 0, []
        for field, (kind, size) in self.structs.get(name, {}).items():
            letter = self.letter(kind)
            if not letter or letter[0] not in SIZES:
                return None
            count = {"": 1, "CN_MAX_DIMS": 8, "CN_MAX_FIELDS": 8}.get(size) or int(size)
            bytes_, align = SIZES[letter]
            at = (at + align - 1) // align * align
            fields.append((field, letter, count, at, kind))
            at += bytes_ * count
        return fields

    def callable(self):
        """The functions that cairn.js can call: [(name, result, [(letter, name)])]."""
        out = []
        for name, (result, parameters) in self.functions.items():
            parameters = [] if parameters == [("void", "")] else parameters
            letters = [(self.letter(kind), parameter) for kind, parameter in parameters]
            back = self.letter(result) or ("{" + result + "}" if self.layout(result) else None)
            if LEFT_OUT.match(name) or any("(" in kind + parameter for kind, parameter in parameters):
                continue
            if not back or not all(letter for letter, _ in letters):
                continue
            out.append((name, back, letters))
        return out


def enum_names(names):
    """CN_PAD_CONSTANT, CN_PAD_REFLECT → constant, reflect."""
    words = [name.split("_") for name in names]
    common = 1
    while len(names) > 1 and all(len(w) > common + 1 for w in words) and len({w[common] for w in words}) == 1:
        common += 1
    return ["_".join(w[common:]).lower() for w in words]


def camel(name):
    """conv2d → Conv2d, as PyTorch writes it."""
    special = {"relu": "ReLU", "relu6": "ReLU6", "prelu": "PReLU", "elu": "ELU", "celu": "CELU", "selu": "SELU", "gelu": "GELU",
               "silu": "SiLU", "rrelu": "RReLU", "leaky_relu": "LeakyReLU", "glu": "GLU", "rnn": "RNN", "lstm": "LSTM",
               "gru": "GRU", "gpt": "GPT", "rms_norm": "RMSNorm", "gelu_tanh": "GELUTanh", "rnn_cell": "RNNCell",
               "lstm_cell": "LSTMCell", "gru_cell": "GRUCell", "lp_pool1d": "LPPool1d", "lp_pool2d": "LPPool2d",
               "lp_pool3d": "LPPool3d", "multihead_attention": "MultiheadAttention",
               "sequential_of": "Sequential", "list_of": "ModuleList", "dict": "ModuleDict"}
    return special.get(name) or "".join(word[:1].upper() + word[1:] for word in name.split("_"))


def c_text(headers, functions):
    checks = ""
    used = {letter[1:-1] for _, _, letters in functions for letter, _ in letters if letter[0] == "{"}
    for name in RETURNED + sorted(used):
        for field, _, _, at, _ in headers.layout(name):
            checks += f'_Static_assert(offsetof({name}, {field}) == {at}, "web/generate.py: {name}.{field}");\n'
    rows = "".join(f"    (function){name},\n" for name, _, _ in functions)
    return ("/* Made by web/generate.py: the functions that cairn.js calls, by number. */\n#include <stddef.h>\n\n"
            '#include "cairn/cairn.h"\n\n' + checks + "\ntypedef void (*function)(void);\n"
            "static const function functions[] = {\n" + rows + "};\n\n"
            "CN_API const void *cairn_web_functions(void);\n"
            "const void *cairn_web_functions(void) { return functions; }\n")


def js_text(headers, functions, signatures):
    structs = {}
    enums = {name: enum_names(names) for name, names in headers.enums.items()}
    for _, back, letters in [*functions, *((None, "{" + name + "}", []) for name in RETURNED)]:
        for letter, _ in [*letters, (back, "")]:
            if letter[0] == "{":
                structs[letter[1:-1]] = ",".join(
                    f"{field}:{kind if kind in enums else ''}{'!' if kind in enums else ''}{t}{count if count > 1 else ''}@{at}"
                    for field, t, count, at, kind in headers.layout(letter[1:-1]))
    used = {word for text in structs.values() for word in re.findall(r":(\w+)!", text)}
    lines = [f"{name[3:]}:{back}:" + ",".join(f"{letter} {parameter}" for letter, parameter in letters)
             for name, back, letters in functions]
    calls = [s["call"] for s in signatures]
    layers = {camel(name[6:]): name[3:] for name, _, _ in functions if name.startswith("cn_nn_")}
    return ("/* Made by web/generate.py. */\n"
            f"export const functions = {json.dumps(chr(10).join(lines))}.split('\\n');\n"
            f"export const structs = {json.dumps(structs)};\n"
            f"export const enums = {json.dumps({k: v for k, v in enums.items() if k in used})};\n"
            f"export const calls = {json.dumps(chr(10).join(calls))}.split('\\n');\n"
            f"export const layers = {json.dumps(layers)};\n"
            f"export const fields = {json.dumps(known.FIELDS)};\n"
            f"export const flags = {json.dumps(known.FLAGS)};\n")


TS = {"Tensor": "Tensor | number", "Tensor[]": "Tensor[]", "float": "number", "int": "number", "int[]": "number[] | number",
      "bool": "boolean", "dtype": "DType", "str": "string"}


def ts_name(name):
    return name + "_" if name in ("in", "var") else name  # words of the language


def ts_type(parameter):
    if parameter["kind"] == "enum":
        return " | ".join(f"'{choice}'" for choice in parameter["choices"])
    return TS[parameter["kind"]]


def ts_parameters(parameters):
    """Positional parameters; everything with a default can stand in the options, which come last."""
    required = [p for p in parameters if p["default"] is None and not p["optional"] and not p["by_name"]]
    optional = [p for p in parameters if p not in required]
    words = [f"{ts_name(p['name'])}: {ts_type(p)}" for p in required]
    if optional:
        fields = "; ".join(f"{p['name']}?: {ts_type(p)} | null" for p in optional)
        positional = [p for p in optional if not p["by_name"]]
        if positional:
            words.append(f"...rest: Array<{' | '.join(sorted({ts_type(p) for p in positional}))} | null | {{ {fields} }}>")
        else:
            words.append(f"options?: {{ {fields} }}")
    return ", ".join(words)


def ts_result(signature):
    if signature["result_list"]:
        return "Tensor[]"
    names = signature["results"]
    return "Tensor" if len(names) == 1 else "[" + ", ".join(f"{ts_name(name)}: Tensor" for name in names) + "]"


def ts_descriptor(headers, name):
    types = {"d": "number", "f": "number", "i": "number", "b": "boolean", "j": "number", "z": "number", "s": "string",
             "p": "Tensor", "D": "number[]"}
    words = []
    for field, letter, count, _, kind in headers.layout(name):
        text = " | ".join(f"'{n}'" for n in enum_names(headers.enums[kind])) if kind in headers.enums else types.get(letter)
        if text:
            words.append(f"{field}?: {text}{'[]' if count > 1 else ''}")
    return "{ " + "; ".join(words) + " }"


def ts_layer(headers, parameters):
    words = []
    for letter, name in parameters[1:]:
        if letter[0] == "{":
            words.append(f"options?: {ts_descriptor(headers, letter[1:-1])}")
        else:
            words.append(f"{ts_name(name)}: " + {"D": "number[]", "b": "boolean"}.get(letter, "number"))
    return ", ".join(words)


def ts_text(headers, functions, signatures):
    functions_text, methods, lists, layers = "", "", "", ""
    for s in signatures:
        doc = f"  /** {s['doc']} */\n"
        functions_text += f"{doc}  {s['name']}({ts_parameters(s['parameters'])}): {ts_result(s)};\n"
        if s["parameters"] and s["parameters"][0]["kind"] == "Tensor":
            method = f"{doc}  {s['name']}({ts_parameters(s['parameters'][1:])}): {ts_result(s)};\n"
            if ts_result(s) == "Tensor":
                methods += method
            else:
                lists += method
    for name, back, letters in functions:
        if name.startswith("cn_nn_") and all(letter != "p" for letter, _ in letters[1:]):
            layers += f"  {camel(name[6:])}: new ({ts_layer(headers, letters)}) => Module;\n"
    text = (ROOT / "web/cairn.d.ts").read_text(encoding="utf-8")
    for mark, filled in (("FUNCTIONS", functions_text), ("METHODS", methods), ("LISTS", lists), ("LAYERS", layers)):
        text = text.replace(f"  // {mark}\n", filled)
    return text


def main():
    listed = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    out = Path(sys.argv[2])
    headers = Headers()
    functions = headers.callable()
    have = {name for name, _, _ in functions}
    signatures = [s for s in listed["operators"] + listed["functions"] if not s["internal"]]
    missing = [s["name"] for s in signatures if "cn_" + s["name"] not in have]
    if missing:
        print("web/generate.py: cairn.js cannot call", ", ".join(missing), file=sys.stderr)
        return 1
    out.mkdir(parents=True, exist_ok=True)
    for name, text in (("functions.c", c_text(headers, functions)), ("tables.js", js_text(headers, functions, signatures)),
                       ("cairn.d.ts", ts_text(headers, functions, signatures))):
        path = out / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
