#!/usr/bin/env python3
"""make_misuse.py COMPILER NM LIBRARY OUT: writes what tests/test_misuse.c needs to call every exported function.

The public headers are preprocessed. Each function becomes a row: its name, the kinds of its parameters and of its
result, and a C function that calls it with an array of values. Each descriptor becomes a table of its fields. It is an
error if a type has no kind, or if the library exports another set of functions than the headers declare.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ATTRIBUTE = r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)"
WHOLE = {"int", "int64_t", "int32_t", "size_t", "uint64_t", "uint32_t", "unsigned", "char", "uint8_t", "unsigned char"}
NUMBER = {"double", "float"}
VALUES = {"cn_dims": "DIMS", "cn_params": "PARAMS", "cn_scope": "SCOPE", "cn_field": "FIELD"}
OBJECTS = {
    "cn_ctx": "CTX", "cn_tensor": "TENSOR", "cn_module": "MODULE", "cn_optim": "OPTIM", "cn_dict": "DICT",
    "cn_ema": "EMA", "cn_schedule": "SCHEDULE", "cn_dataset": "DATASET", "cn_data_sampler": "DATA_SAMPLER",
    "cn_loader": "LOADER", "cn_transform": "TRANSFORM", "cn_tokenizer": "TOKENIZER", "cn_sampler": "SAMPLER",
    "cn_progress": "PROGRESS", "cn_logbook": "LOGBOOK", "cn_profile": "PROFILE", "cn_reading": "READING",
    "cn_metric": "METRIC",
}


def preprocessed(compiler):
    headers = sorted(p.relative_to(ROOT / "include") for p in (ROOT / "include/cairn").glob("*.h"))
    text = "".join(f'#include "{h}"\n' for h in headers)
    run = subprocess.run([compiler, "-std=c17", f"-I{ROOT / 'include'}", "-E", "-P", "-"], input=text,
                         capture_output=True, text=True, check=True)
    return headers, run.stdout


def split(text, separator=","):
    parts, depth, part = [], 0, ""
    for c in text:
        depth += c in "([{"
        depth -= c in ")]}"
        if c == separator and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += c
    return parts + [part.strip()] if part.strip() else parts


def exported(nm, library):
    run = subprocess.run([nm, "-D", "--defined-only", library], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in run.stdout.splitlines()}


class Headers:
    def __init__(self, text):
        self.enums = {name: len([v for v in split(body)]) for body, name in
                      re.findall(r"typedef enum \w* ?\{([^}]*)\} (\w+);", text)}
        self.structs = dict(self.bodies(text))
        self.functions_types = set(re.findall(r"typedef [^;{]*?\(\*(\w+)\)\(", text))
        for old, new in re.findall(r"typedef (\w+) (\w+);", text):
            if old in self.structs:
                self.structs[new] = self.structs[old]
        parts = text.split('__attribute__((visibility("default")))')[1:]
        self.declarations = [re.sub(r"\s+", " ", re.sub(ATTRIBUTE, "", p[:p.index(";")])).strip()
                             for p in parts]

    @staticmethod
    def bodies(text):
        for m in re.finditer(r"typedef (?:struct|union) \w* ?\{", text):
            depth, i = 1, m.end()
            while depth:
                depth += text[i] == "{"
                depth -= text[i] == "}"
                i += 1
            name = re.match(r"\s*(\w+);", text[i:])
            if name:
                yield name.group(1), text[m.end():i - 1]

    def kind(self, t):
        """The kind of a type without its name, the member of `value` that holds it, and a detail."""
        plain = re.sub(r"\bconst\b|\bstruct\b", "", t)
        plain = re.sub(r"\s+", " ", plain).strip()
        base, stars = plain.rstrip("* ").strip(), plain.count("*")
        if "(*" in t or t in self.functions_types:
            return "FUNCTION", "fn", 0
        if t == "_Bool":
            return "BOOL", "i", 0
        if plain in WHOLE:
            return "WHOLE", "i", 0
        if plain in NUMBER:
            return "NUMBER", "f", 0
        if plain in VALUES:
            return VALUES[plain], VALUES[plain].lower(), 0
        if plain in self.enums:
            return "ENUM", "i", self.enums[plain]
        if base in OBJECTS and stars == 1:
            return OBJECTS[base], "p", 0
        if base in OBJECTS and stars == 2:
            return ("LIST", "p", "K_" + OBJECTS[base]) if "*const" in t.replace(" ", "") else ("OUT", "p", 0)
        if base == "char" and stars == 1:
            return ("TEXT" if "const" in t else "OUT"), "p", 0
        if base == "FILE":
            return "FILE", "p", 0
        if base in self.structs and stars == 1:
            return "STRUCT", "p", "&struct_" + base
        if base in WHOLE | NUMBER | {"void", "char"} and stars:
            numbers = {"int64_t": 1, "double": 2, "float": 3, "int32_t": 4, "void": 5}.get(base, 0)
            return ("ARRAY" if "const" in t else "OUT"), "p", numbers
        return None, None, t

    def parameter(self, text):
        array = re.fullmatch(r"(.*?)(\w+)\[\d+\]", text)
        if array:
            return array.group(1).strip() + " *", array.group(2)
        pointer = re.match(r".*\(\*(\w+)\)", text)
        if pointer:
            return text, pointer.group(1)
        m = re.fullmatch(r"(.*?)(\w+)", text)
        return m.group(1).strip(), m.group(2)

    def fields(self, name):
        body = re.sub(r"union \{([^{}]*)\}\s*;", r"\1", self.structs[name])
        body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
        for line in split(body, ";"):
            line = re.sub(r"\s+", " ", line).strip()
            if not line:
                continue
            if "(*" in line:
                yield line, re.match(r".*?\(\*(\w+)\)", line).group(1), 0
                continue
            first, *more = split(line)
            m = re.fullmatch(r"(.*?)(\*(?:const \*)?)?(\w+)((?:\[[^\]]*\])*)", first)
            for declarator in [(m.group(2) or "") + m.group(3) + m.group(4)] + more:
                d = re.fullmatch(r"(\*(?:const \*)?)?(\w+)((?:\[[^\]]*\])*)", declarator)
                yield (m.group(1).strip() + " " + (d.group(1) or "")).strip(), d.group(2), d.group(3).count("[")


def rows(h, unknown):
    used, out, functions = [], [], []

    def struct(name):
        if name in used:
            return
        lines = []
        for t, field, arrays in h.fields(name):
            kind, _, detail = h.kind(t)
            if kind in (None, "STRUCT", "FIELD") or (t in h.structs and kind is None):
                continue  # only the library fills in structs within structs, except for those that have makers
            lines.append(f'    {{ "{field}", K_{kind}, offsetof({name}, {field}), '
                         f'sizeof {"*" if arrays else ""}(({name} *)0)->{field}, {detail if kind == "ENUM" else 0} }},')
        used.append(name)
        out.append(f"static const field fields_{name}[] = {{\n" + "\n".join(lines) +
                   f'\n    {{ NULL, K_WHOLE, 0, 0, 0 }},\n}};\n'
                   f'static const structure struct_{name} = {{ "{name}", sizeof({name}), fields_{name} }};')

    for n, d in enumerate(h.declarations):
        m = re.fullmatch(r"(.*?)\b(cn_\w+)\((.*)\)", d)
        result, name, parameters = m.group(1).strip(), m.group(2), split(m.group(3))
        values, kinds = [], []
        for i, p in enumerate([p for p in parameters if p not in ("void", "...")]):
            t, label = h.parameter(p)
            kind, member, detail = h.kind(t)
            if not kind:
                unknown.append(f"{name}: no kind for {p}")
                continue
            if kind == "STRUCT":
                struct(detail[len("&struct_"):])
            cast = re.sub(r"\(\*\w+\)", "(*)", t, count=1) if "(*" in t else t
            values.append(f"v[{i}].{member}" if member in ("dims", "params", "scope", "field") else
                          f"({cast})v[{i}].{member}")
            structure = detail if kind == "STRUCT" else "NULL"
            number = detail if kind != "STRUCT" else 0
            pointee = re.sub(r"[\s*]|const", "", t) if "(*" not in t else label
            kinds.append(f'{{ "{label}", "{pointee}", K_{kind}, {number}, {structure}, '
                         f'sizeof({t if "(*" not in t else "void *"}) }}')
        call = f"{name}({', '.join(values)})"
        if result == "void":
            body, kind = call + ";", "NOTHING"
        elif "*" in result:
            body, kind = f"r->p = (const void *){call};", "POINTER"
            if h.kind(result)[0] in OBJECTS.values():
                kind = "K_" + h.kind(result)[0]
        elif result == "_Bool":
            body, kind = f"r->i = {call};", "TRUTH"
        elif result in WHOLE or result in h.enums:
            body, kind = f"r->i = (int64_t){call};", "COUNT"
        elif result in NUMBER:
            body, kind = f"r->f = {call};", "REAL"
        else:
            body, kind = f"(void){call};", "NOTHING"
        result_kind = f"R_OBJECT, {kind}" if kind.startswith("K_") else f"R_{kind}, K_WHOLE"
        out.append(f"static void call_{n}(const value *v, outcome *r)\n{{\n    (void)v, (void)r;\n    {body}\n}}\n"
                   f"static const parameter parameters_{n}[] = {{ {', '.join(kinds) or '{ 0 }'} }};")
        functions.append(f'    {{ "{name}", call_{n}, {result_kind}, {len(kinds)}, parameters_{n} }},')
    return out, functions


def main():
    compiler, nm, library, target = sys.argv[1:]
    headers, text = preprocessed(compiler)
    h = Headers(text)
    unknown = []
    out, functions = rows(h, unknown)
    declared = {re.search(r"(cn_\w+)\(", d).group(1) for d in h.declarations}
    unknown += [f"{name} is exported, but no header declares it" for name in exported(nm, library) - declared]
    unknown += [f"{name} is declared, but not exported" for name in declared - exported(nm, library)]
    if unknown:
        sys.exit("make_misuse.py: " + "\n                ".join(unknown))
    pathlib.Path(target).write_text(
        "/* Every exported function: written by tools/make_misuse.py from the headers. */\n" + "\n".join(out) +
        "\nstatic const function functions[] = {\n" + "\n".join(functions) + "\n};\n")


if __name__ == "__main__":
    main()
