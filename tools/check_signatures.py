"""Compares the public prototypes in include/cairn with the signatures of operators in build/operators.json.

Every operator that is not internal, and every function in that file, must have a prototype cn_NAME whose parameters
agree with its signature in number, order, name and type. Parameters that are not in the prototype must be fields of its
descriptor. Every public function of the operator headers must belong to a signature. Prints each difference, and exits
with 1 if there is one.
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "include/cairn"
HEADERS = sorted((INCLUDE / "ops").glob("*.h")) + [INCLUDE / "loss.h", INCLUDE / "grad.h"]

TYPES = {"Tensor": "cn_tensor *", "float": "double", "int": "int64_t", "int[]": "cn_dims", "bool": "bool",
         "dtype": "cn_dtype", "str": "const char *"}

# Fields of descriptors with another name than their parameter, because 0 must mean the default.
FIELDS = {"count_include_pad": "exclude_padding", "log_input": "no_log_input", "center": "no_center",
          "onesided": "two_sided"}
# Fields that tell whether another field is used, or that its 0 is meant as 0.
FLAGS = {"has_ignore": "ignore_index", "no_margin": "margin", "has_padding": "padding_idx"}


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def split_declaration(text):
    """("cn_tensor *", "input", "") of "cn_tensor *input"; the last is the text in brackets."""
    found = re.fullmatch(r"(.*?[\s*])(\w+)\s*(?:\[(\w+)\])?", text.strip(), flags=re.S)
    if not found:
        return text.strip(), "", ""
    kind = re.sub(r"\s+", " ", found.group(1)).strip()
    return kind, found.group(2), found.group(3) or ""


def read_structs(text):
    """Fields of each struct: name to {field: (type, size)}."""
    structs = {}
    # Of a union, which holds one field under several names, the first name counts.
    text = re.sub(r"union \{\s*([^,;]*),[^;]*;\s*\};", r"\1;", text)
    for body, name in re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", text, flags=re.S):
        fields = {}
        for line in body.split(";"):
            if not line.strip() or "(" in line:  # pointers to functions are not parameters
                continue
            first, *others = line.split(",")
            kind, field, size = split_declaration(first)
            fields[field] = (kind, size)
            for other in others:
                star, field, size = re.fullmatch(r"\s*(\**)\s*(\w+)\s*(?:\[(\w+)\])?\s*", other).groups(default="")
                fields[field] = (kind.rstrip("* ") + (" *" if star else ""), size)
        structs[name] = fields
    return structs


def read_enums(text):
    return {name: [word.strip().split(" ")[0] for word in body.split(",") if word.strip()]
            for body, name in re.findall(r"typedef enum \w+ \{(.*?)\} (\w+);", text, flags=re.S)}


def read_functions(text):
    """Each public function: name to (result, [(type, name)])."""
    functions = {}
    for result, name, inside in re.findall(r"CN_(?:API|PURE)\s+([\w ]+?[\s*]+)(cn_\w+)\(([^;]*)\);", text):
        parameters = [split_declaration(word)[:2] for word in inside.split(",")]
        functions[name] = (re.sub(r"\s+", " ", result).strip(), parameters)
    return functions


class Headers:
    def __init__(self):
        text = "\n".join(without_comments(path.read_text(encoding="utf-8")) for path in HEADERS)
        self.structs, self.enums, self.functions = read_structs(text), read_enums(text), read_functions(text)


def type_problem(headers, parameter, kind):
    """The problem of a C type for a parameter; None if there is none."""
    if parameter["kind"] == "enum":
        names = headers.enums.get(kind)
        if not names:
            return f"is a {kind}, which is no enumeration"
        wanted = [choice.upper() for choice in parameter["choices"]]
        if len(names) < len(wanted) or not all(name.endswith("_" + w) for name, w in zip(names, wanted)):
            return f"is a {kind}, whose names are {', '.join(names)}"
        return None
    wanted = TYPES[parameter["kind"]]
    return None if kind == wanted else f"is '{kind}', not '{wanted}'"


def in_c(signature):
    """The parameters in the order of C: functions that create tensors have the dtype first."""
    parameters = signature["parameters"]
    if any(p["kind"].startswith("Tensor") for p in parameters):
        return False, parameters
    return True, sorted(parameters, key=lambda p: p["kind"] != "dtype")


def field_problems(headers, descriptor, parameters):
    fields = headers.structs.get(descriptor)
    if fields is None:
        yield f"descriptor {descriptor} is not declared"
        return
    for parameter in parameters:
        name = FIELDS.get(parameter["name"], parameter["name"])
        if name not in fields:
            yield f"'{parameter['name']}' is neither a parameter nor a field of {descriptor}"
            continue
        kind, size = fields[name]
        if parameter["kind"] == "int[]":
            if kind != "int64_t" or not size.isdigit() or int(size) < parameter["count"]:
                yield f"field '{name}' must hold {parameter['count']} integers"
        else:
            problem = type_problem(headers, parameter, kind)
            if problem:
                yield f"field '{name}' {problem}"


def expected(parameter):
    """The C parameters that one parameter may become: lists of (name, type); type None: any that fits its kind."""
    name, kind = parameter["name"], parameter["kind"]
    if kind == "Tensor[]":
        return [[(name, "cn_tensor *const *"), ("n", "int")]]
    if kind == "int[]" and parameter.get("count") == 2:
        return [[("height", "int64_t"), ("width", "int64_t")], [(name, "cn_dims")]]
    return [[(name, None)]]


def take(headers, parameter, rest):
    """(problem, number of C parameters) if `parameter` is the first in rest; None if another one is."""
    for form in expected(parameter):
        if [name for name, _ in form] != [name for _, name in rest[:len(form)]]:
            continue
        for (name, wanted), (kind, _) in zip(form, rest):
            problem = type_problem(headers, parameter, kind) if wanted is None else (
                None if kind == wanted else f"is '{kind}', not '{wanted}'")
            if problem:
                return f"'{name}' {problem}", len(form)
        return None, len(form)
    return None


def signature_problems(headers, signature):
    name = "cn_" + signature["name"]
    if name not in headers.functions:
        yield f"{name} is not declared"
        return
    result, rest = headers.functions[name]
    needs_context, parameters = in_c(signature)
    if needs_context:
        if rest[:1] != [("cn_ctx *", "ctx")]:
            yield "takes no context first"
        rest = rest[1:]
    descriptor = None
    for kind in [kind for kind, parameter in rest if parameter == "desc"]:
        descriptor, rest = re.sub(r"const (\w+) \*", r"\1", kind), [p for p in rest if p[1] != "desc"]
    in_descriptor = []
    for parameter in parameters:
        taken = take(headers, parameter, rest)
        if taken:
            problem, used = taken
            rest = rest[used:]
            if problem:
                yield problem
        elif descriptor:
            in_descriptor.append(parameter)
        else:
            yield f"'{parameter['name']}' expected, found '{rest[0][1] if rest else 'the end'}'"
            return
    yield from field_problems(headers, descriptor, in_descriptor) if descriptor else ()
    yield from result_problems(signature, result, rest)


def result_problems(signature, result, rest):
    if signature["result_list"]:
        wanted, more = "int", [("cn_tensor **", "out"), ("int", "room")]
    else:
        wanted, more = "cn_tensor *", [("cn_tensor **", name) for name in signature["results"][1:]]
    if result != wanted:
        yield f"returns '{result}', not '{wanted}'"
    if rest != more:
        yield f"ends in {[name for _, name in rest]}, not in {[name for _, name in more]}"


def form_problems(headers, signatures):
    """cn_NAME_s has a number as its second operand; cn_NAME_ changes the first operand."""
    for name, (result, parameters) in headers.functions.items():
        base = re.sub(r"^cn_|_s_$|_s$|_$", "", name)
        base = re.sub(r"_s_$|_s$|_$", "", base)
        if name[3:] in signatures or "cn_" + base not in headers.functions or base not in signatures:
            continue
        own = list(headers.functions["cn_" + base][1])
        if name.endswith(("_s", "_s_")):
            own[1] = ("double", own[1][1])
        if parameters != own:
            yield f"{name}: parameters are not those of cn_{base}"
        if result != ("bool" if name.endswith("_") else "cn_tensor *"):
            yield f"{name}: returns '{result}'"


def stray_functions(headers, signatures):
    """Functions of the operator headers that no signature describes."""
    for path in HEADERS:
        if path.name == "grad.h":
            continue
        for name, (result, _) in read_functions(without_comments(path.read_text(encoding="utf-8"))).items():
            base = re.sub(r"(_s)?_?$", "", name[3:]) if name[3:] not in signatures else name[3:]
            if base not in signatures and name[3:] not in signatures:
                yield f"{name} in {path.name} belongs to no operator and to no function of the list"


def main():
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/operators.json"
    listed = json.loads(path.read_text(encoding="utf-8"))
    headers = Headers()
    public = [s for s in listed["operators"] + listed["functions"] if not s["internal"]]
    signatures = {s["name"]: s for s in public}
    problems = [f"{s['call']}\n    {problem}" for s in public for problem in signature_problems(headers, s)]
    problems += form_problems(headers, signatures)
    problems += stray_functions(headers, signatures)
    known = {FIELDS.get(p["name"], p["name"]) for s in public for p in s["parameters"]} | set(FLAGS)
    for struct in ("cn_conv_desc", "cn_pool_desc", "cn_unpool_desc", "cn_unfold_desc", "cn_interpolate_desc",
                   "cn_batch_norm_desc", "cn_attention_desc", "cn_loss_desc"):
        strays = [field for field in headers.structs[struct] if field not in known]
        problems += [f"{struct}: field '{field}' is no parameter" for field in strays]
    print("\n".join(problems) if problems else f"{len(public)} signatures agree with their prototypes")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
