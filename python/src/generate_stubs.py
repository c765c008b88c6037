"""Writes what type checkers read (*.pyi) into a package that has been built.

    generate_stubs.py OPERATORS.json PACKAGE

Functions and methods of operators get their types and their documentation from the operators' signatures; whatever else
the extension module has is listed with the types of FIXED, or as Any. A Python module gets a stub from its source: its
annotations as they are, and Any for what has none. Modules that are annotated throughout, or have a stub written by
hand, need none: a type checker reads their source.
"""

import ast
import importlib
import inspect
import json
import pkgutil
import sys
import types
from pathlib import Path

# int, float and bool are dtypes and methods of tensors as well: below, the types have names of their own.
HEAD = """from builtins import bool as _bool, float as _float, int as _int, str as _str
from typing import Any, Callable, Iterator, Literal, Optional, Sequence, Tuple, TypeVar, Union, overload
_F = TypeVar("_F", bound=Callable[..., Any])
"""
KINDS = {"Tensor": "Tensor", "Tensor[]": "Sequence[Tensor]", "float": "_float", "int": "_int", "int[]": "_ints",
         "bool": "_bool", "dtype": "_dtype", "str": "_str"}

# What is no operator: members of Tensor.
FIXED = {
    "shape": "@property\ndef shape(self) -> Size: ...",
    "dtype": "@property\ndef dtype(self) -> _dtype: ...",
    "device": "@property\ndef device(self) -> _device: ...",
    "requires_grad": "requires_grad: _bool",
    "is_leaf": "@property\ndef is_leaf(self) -> _bool: ...",
    "grad": "grad: Optional[Tensor]",
    "grad_fn": "@property\ndef grad_fn(self) -> Any: ...",
    "data": "data: Tensor",
    "ndim": "@property\ndef ndim(self) -> _int: ...",
    "itemsize": "@property\ndef itemsize(self) -> _int: ...",
    "nbytes": "@property\ndef nbytes(self) -> _int: ...",
    "T": "@property\ndef T(self) -> Tensor: ...",
    "mT": "@property\ndef mT(self) -> Tensor: ...",
    "H": "@property\ndef H(self) -> Tensor: ...",
    "mH": "@property\ndef mH(self) -> Tensor: ...",
    "is_cuda": "@property\ndef is_cuda(self) -> _bool: ...",
    "item": "def item(self) -> Any: ...",
    "tolist": "def tolist(self) -> Any: ...",
    "numpy": "def numpy(self, *, force: _bool = ...) -> Any: ...",
    "size": "@overload\ndef size(self, dim: None = ...) -> Size: ...\n"
            "@overload\ndef size(self, dim: _int) -> _int: ...",
    "dim": "def dim(self) -> _int: ...",
    "numel": "def numel(self) -> _int: ...",
    "nelement": "def nelement(self) -> _int: ...",
    "element_size": "def element_size(self) -> _int: ...",
    "stride": "def stride(self, dim: Optional[_int] = ...) -> Any: ...",
    "is_contiguous": "def is_contiguous(self, memory_format: Any = ...) -> _bool: ...",
    "is_floating_point": "def is_floating_point(self) -> _bool: ...",
    "backward": "def backward(self, gradient: Optional[Tensor] = ..., retain_graph: Optional[_bool] = ...,\n"
                "             create_graph: _bool = ..., inputs: Any = ...) -> None: ...",
    "max": "def max(self, dim: Any = ..., keepdim: _bool = ...) -> Any: ...",
    "min": "def min(self, dim: Any = ..., keepdim: _bool = ...) -> Any: ...",
    "median": "def median(self, dim: Any = ..., keepdim: _bool = ...) -> Any: ...",
    "__len__": "def __len__(self) -> _int: ...",
    "__bool__": "def __bool__(self) -> _bool: ...",
    "__int__": "def __int__(self) -> _int: ...",
    "__float__": "def __float__(self) -> _float: ...",
    "__index__": "def __index__(self) -> _int: ...",
    "__iter__": "def __iter__(self) -> Iterator[Tensor]: ...",
    "__contains__": "def __contains__(self, value: Any) -> _bool: ...",
    "__getitem__": "def __getitem__(self, index: Any) -> Tensor: ...",
    "__setitem__": "def __setitem__(self, index: Any, value: Any) -> None: ...",
    "__array__": "def __array__(self, dtype: Any = ..., copy: Any = ...) -> Any: ...",
    "__eq__": "def __eq__(self, other: Any) -> Tensor: ...  # type: ignore[override]",
    "__ne__": "def __ne__(self, other: Any) -> Tensor: ...  # type: ignore[override]",
    "__hash__": "def __hash__(self) -> _int: ...",
    "__repr__": None,
}
RETURN_TENSOR = """clone detach contiguous to cpu cuda float double half bfloat16 int long short bool char byte type_as
    view reshape permute expand repeat tile flip squeeze unsqueeze view_as reshape_as expand_as t ravel pin_memory
    new_zeros new_ones new_full new_empty new_tensor""".split()
MAKE_TENSOR = """tensor as_tensor asarray from_numpy frombuffer from_dlpack zeros ones empty full rand randn randint
    randperm arange linspace logspace eye empty_like""".split()
BINARY = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
COMPARE = "lt le gt ge".split()


class Operators:
    """The signatures of operators as stubs."""

    def __init__(self, path):
        listed = json.loads(Path(path).read_text(encoding="utf-8"))
        self.all = {s["name"]: s for s in listed["operators"] + listed["functions"] if not s["internal"]}

    def type_of(self, signature, parameter, first):
        kind = parameter["kind"]
        if kind == "enum":
            return "Literal[%s]" % ", ".join(f'"{choice}"' for choice in parameter["choices"])
        text = KINDS[kind]
        if kind == "Tensor" and not first and signature.get("kind") == "MAP":
            text = "_operand"
        if parameter["optional"] or parameter["default"] == "None":
            text = f"Optional[{text}]"
        return text

    def result_of(self, signature):
        if signature["result_list"]:
            return "Tuple[Tensor, ...]"
        count = len(signature["results"])
        return "Tensor" if count == 1 else "Tuple[%s]" % ", ".join(["Tensor"] * count)

    def collected(self, signature):
        """The parameter whose numbers may be given one by one, as in x.view(2, 3); None if there is none."""
        positional = [p for p in signature["parameters"] if not p["by_name"]]
        last = positional[-1] if positional else {"kind": None}
        return last if last["kind"] == "int[]" and not last.get("count") else None

    def parameters(self, signature, method, collected=None):
        texts, named = [], False
        for i, parameter in enumerate(signature["parameters"]):
            if method and i == 0:
                texts.append("self")
                continue
            if parameter is collected:
                texts.append(f"*{parameter['name']}: _int")
                named = True
                continue
            if parameter["by_name"] and not named:
                texts.append("*")
                named = True
            default = " = ..." if parameter["default"] is not None else ""
            own = "_self" if parameter["name"] == "self" else parameter["name"]
            texts.append(f"{own}: {self.type_of(signature, parameter, i == 0)}{default}")
        return texts

    def stub(self, name, method=False):
        base = name[:-1] if name.endswith("_") and name[:-1] in self.all else name
        signature = self.all[base]
        collected = self.collected(signature)
        if collected:
            forms = [self.form(name, signature, method, form) for form in (None, collected)]
            return "\n".join("@overload\n" + text for text in forms)
        return self.form(name, signature, method, None)

    def form(self, name, signature, method, collected):
        texts = self.parameters(signature, method, collected)
        if not method and not any(p["kind"].startswith("Tensor") for p in signature["parameters"]):
            bare = [] if "*" in texts or collected else ["*"]
            texts += bare + ["device: Any = ...", "requires_grad: _bool = ..."]
        doc = signature["doc"].replace("\\", "\\\\").replace('"""', "'''")
        return f'def {name}({", ".join(texts)}) -> {self.result_of(signature)}:\n    """{doc}"""'


def indented(text, by="    "):
    return "\n".join(by + line if line else line for line in text.splitlines())


def plain_function(name, value, method=False):
    """A function whose types nobody told: the names of its parameters, if it knows them."""
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        inside = ["self"] if method else []
        return f"def {name}({', '.join([*inside, '*args: Any', '**kwargs: Any'])}) -> {returned(name, method)}: ..."
    texts, star = [], False
    for i, p in enumerate(parameters):
        if p.kind is p.KEYWORD_ONLY and not star:
            texts.append("*")
        star = star or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        mark = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        kind = "" if method and i == 0 else ": _bool" if isinstance(p.default, bool) else ": Any"
        texts.append(mark + p.name + kind + (" = ..." if p.default is not p.empty else ""))
        following = parameters[i + 1].kind if i + 1 < len(parameters) else None
        if p.kind is p.POSITIONAL_ONLY and following is not p.POSITIONAL_ONLY:
            texts.append("/")
    if method and not texts:
        texts = ["self"]
    return f"def {name}({', '.join(texts)}) -> {returned(name, method)}: ..."


def returned(name, method):
    if not method:
        return "Tensor" if name in MAKE_TENSOR else "Any"
    return "Tensor" if name in RETURN_TENSOR or name.endswith("_") and not name.startswith("_") else "Any"


def inner(node):
    """The nodes of a function, without those of functions inside of it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            yield child
            yield from inner(child)


def tensor_member(operators, name, value):
    if name in FIXED:
        return FIXED[name]
    if name.startswith("__"):
        word = name.strip("_")
        plain = word[1:] if word[:1] in "ri" and word[1:] in BINARY else word
        if plain in BINARY or word in COMPARE:
            return f"def {name}(self, other: Any) -> Tensor: ..."
        return f"def {name}(self) -> Tensor: ..." if word in ("neg", "pos", "abs", "invert") else None
    if name.startswith("_"):
        return None
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType)) and name not in operators.all:
        return plain_function(name, value, True)
    single = name in operators.all and operators.result_of(operators.all[name]) == "Tensor"
    base = name[:-1] if name.endswith("_") and name[:-1] in operators.all else name
    if base in operators.all and callable(value) and operators.all[base]["parameters"][0]["kind"] == "Tensor":
        if isinstance(value, types.FunctionType):
            return plain_function(name, value, True).replace("-> Any:", "-> Tensor:" if single else "-> Any:")
        return operators.stub(name, True)
    if callable(value):
        return plain_function(name, value, True)
    return f"@property\ndef {name}(self) -> Any: ..."


def tensor_stub(operators, tensor):
    members = {}
    for name in dir(tensor):
        if hasattr(object, name) and name.strip("_") not in [*COMPARE, "eq", "ne", "hash"]:
            continue
        text = tensor_member(operators, name, inspect.getattr_static(tensor, name))
        if text:
            members[name] = text
    members.setdefault("grad", FIXED["grad"])
    body = ["def __init__(self, *args: Any, **kwargs: Any) -> None: ...", *members.values()]
    return "class Tensor:\n" + "\n".join(indented(text) for text in body)


def special_member(owner, member):
    """A method that an operator of Python's calls; None for those that every object has."""
    word = member.strip("_")
    plain = word[1:] if word[:1] in "ri" and word[1:] in BINARY else word
    if plain in BINARY:
        return f"def {member}(self, other: Any) -> {owner}: ..."
    if word in ("neg", "pos", "abs", "invert"):
        return f"def {member}(self) -> {owner}: ..."
    if word in COMPARE:
        return f"def {member}(self, other: Any) -> _bool: ..."
    return {"call": "def __call__(self, *args: Any, **kwargs: Any) -> Any: ...", "len": FIXED["__len__"],
            "float": FIXED["__float__"], "int": FIXED["__int__"], "bool": FIXED["__bool__"],
            "iter": "def __iter__(self) -> Iterator[Any]: ...",
            "getitem": "def __getitem__(self, index: Any) -> Any: ..."}.get(word)


def class_stub(name, value):
    """A type of the extension module."""
    base = ", ".join(b.__name__ for b in value.__bases__ if b is not object)
    lines = []
    if not issubclass(value, BaseException):
        lines.append("def __init__(self, *args: Any, **kwargs: Any) -> None: ...")
    for member, item in vars(value).items():
        if member.startswith("__"):
            text = special_member(name, member)
            lines += [text] if text else []
        if member.startswith("_"):
            continue
        lines.append(plain_function(member, item, True) if callable(item) else
                     f"@property\ndef {member}(self) -> Any: ...")
    if issubclass(value, tuple):
        base = "Tuple[_int, ...]"
    return f"class {name}{f'({base})' if base else ''}:\n" + (indented("\n".join(lines)) or "    ...")


COMMON = '''_device = device
_dtype = dtype
_operand = Union[Tensor, _float]
_ints = Union[_int, Sequence[_int]]
'''


def extension_stub(operators, module):
    """The stub of cairn._C."""
    out = [HEAD]
    later = []
    for name, value in vars(module).items():
        if name.startswith("__"):
            continue
        if name == "Tensor":
            out.append(tensor_stub(operators, value))
        elif isinstance(value, type):
            out.append(class_stub(name, value) if value.__name__ == name or value.__module__.startswith("cairn")
                       else f"{name} = {value.__name__}")
        elif name in operators.all and callable(value):
            later.append(operators.stub(name))
        elif callable(value):
            later.append(plain_function(name, value))
        else:
            later.append(f"{name}: {type_text(value, module)}")
    if not hasattr(module, "Size"):
        out.append("class Size(Tuple[_int, ...]):\n    def numel(self) -> _int: ...")
    if not hasattr(module, "device"):
        out.append("class device:\n    type: _str\n    index: Optional[_int]\n"
                   "    def __init__(self, *args: Any) -> None: ...")
    return "\n\n".join([*out, COMMON, "__version__: _str", *later]) + "\n"


def type_text(value, module=None):
    kind = type(value)
    if kind in (int, float, bool, str):
        return "_" + kind.__name__
    return kind.__name__ if module is not None and vars(module).get(kind.__name__) is kind else "Any"


# ---- Python modules


def is_annotated(tree):
    """Whether every function says the types of its parameters and its result."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            bare = [a for a in given if a.annotation is None and a.arg not in ("self", "cls")]
            if bare or (node.returns is None and not (node.name == "__init__" and given[1:])):
                return False
    return True


class Stub:
    """The stub of a Python module from its source, with what can only be seen when it is imported."""

    def __init__(self, operators, module, path):
        self.operators, self.module, self.path = operators, module, path
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.done = set()

    def text(self):
        """None if a type checker reads the source just as well."""
        dynamic = any(isinstance(n, ast.FunctionDef) and n.name == "__getattr__" for n in self.tree.body)
        if is_annotated(self.tree) and not dynamic and not self.unseen_names():
            return None
        lines = [line for node in self.tree.body for line in self.statement(node)]
        self.done |= self.defined(lines)
        lines += self.rest()
        ours = "from cairn._C import Tensor as Tensor, _dtype, _ints, _operand\n"
        return HEAD + ours + "\n".join(lines) + "\n"

    def defined(self, lines):
        names = set()
        for node in ast.parse("\n".join(lines)).body:
            names |= names_of(node)
        return names

    def unseen_names(self):
        """Public names of the module that its source does not show."""
        shown = set()
        for node in self.tree.body:
            for part in [node, *ast.walk(node)] if isinstance(node, (ast.If, ast.Try)) else [node]:
                shown |= names_of(part)
        return [name for name in public_names(self.module) if name not in shown]

    def statement(self, node):
        if isinstance(node, ast.Import):
            return [ast.unparse(node)]
        if isinstance(node, ast.ImportFrom):
            if node.module == "__future__" or node.names[0].name == "*":
                return []  # what a star brings is told name by name, by rest()
            for item in node.names:
                if item.name != "*" and not (item.asname or item.name).startswith("_") and self.is_ours(node):
                    item.asname = item.asname or item.name  # a name that the module offers
            return [ast.unparse(node)]
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return [] if node.name.startswith("__getattr") or node.name == "__dir__" else [self.function(node)]
        if isinstance(node, ast.ClassDef):
            return [self.klass(node)]
        if isinstance(node, ast.AnnAssign):
            return [f"{ast.unparse(node.target)}: {ast.unparse(node.annotation)}"]
        if isinstance(node, ast.Assign):
            return self.assignment(node)
        if isinstance(node, ast.If):
            return [line for part in node.body for line in self.statement(part)]
        return []

    def is_ours(self, node):
        return node.level > 0 or (node.module or "").split(".")[0] == "cairn"

    def assignment(self, node):
        found = []
        for target in node.targets:
            names = [target] if isinstance(target, ast.Name) else getattr(target, "elts", [])
            for name in names:
                if not isinstance(name, ast.Name):
                    continue
                alias = len(names) == 1 and isinstance(node.value, (ast.Name, ast.Attribute)) and (
                    isinstance(node.value, ast.Name) or self.value(name.id) is not None)
                if name.id == "__all__":
                    found.append(ast.unparse(node))
                elif alias and isinstance(self.value(name.id), (type, types.FunctionType, types.BuiltinFunctionType)):
                    found.append(f"{name.id} = {ast.unparse(node.value)}")
                elif not name.id.startswith("__"):
                    found.append(f"{name.id}: {type_text(self.value(name.id))}")
        return found

    def value(self, name):
        return getattr(self.module, name, None)

    def function(self, node, owner=None):
        arguments = node.args
        static = any(ast.unparse(d) == "staticmethod" for d in node.decorator_list)
        every = [*arguments.posonlyargs, *arguments.args]
        defaults = dict(zip(reversed([a.arg for a in every]), reversed(arguments.defaults)))
        defaults.update({a.arg: d for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults) if d is not None})
        for i, argument in enumerate([*every, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]):
            if argument is None or argument.annotation is not None or (owner and i == 0 and not static):
                continue
            default = defaults.get(argument.arg)
            value = default.value if isinstance(default, ast.Constant) else None
            argument.annotation = ast.Name("_bool" if isinstance(value, bool) else "Any")
        arguments.defaults = [ast.Constant(...) for _ in arguments.defaults]
        arguments.kw_defaults = [d and ast.Constant(...) for d in arguments.kw_defaults]
        result = ast.unparse(node.returns) if node.returns else self.result(node, owner)
        decorators = [ast.unparse(d) for d in node.decorator_list]
        lines = [f"@{d}" for d in decorators
                 if d in ("staticmethod", "classmethod", "property", "overload") or d.endswith(".setter")]
        lines += ["@property" for d in decorators if "cached_property" in d]
        lines.append(f"def {node.name}({ast.unparse(arguments)}) -> {result}:")
        doc = ast.get_docstring(node)
        lines.append("    " + (doc_text(doc) if doc else "..."))
        return "\n".join(lines)

    def result(self, node, owner):
        name = node.name
        if name == "__init__" or name in ("__setattr__", "__delattr__", "__setitem__", "__exit__"):
            return "None"
        fixed = {"__len__": "_int", "__repr__": "_str", "__str__": "_str", "__bool__": "_bool",
                 "__contains__": "_bool", "__dir__": "Any", "__eq__": "_bool", "__hash__": "_int", "extra_repr": "_str"}
        if name in fixed:
            return fixed[name]
        if name in ("__enter__", "__new__"):
            return owner
        signature = self.operators.all.get(name.rstrip("_"))
        if not owner and signature and len(signature["results"]) == 1 and not signature["result_list"]:
            return "Any" if name in ("max", "min", "median") else "Tensor"
        if not owner and (name in MAKE_TENSOR or self.module.__name__ in ("cairn.nn.functional", "cairn.nn.init")):
            return "Tensor"
        returns = [n for n in inner(node) if isinstance(n, ast.Return) and n.value is not None]
        yields = any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in inner(node))
        if yields:
            return "Iterator[Any]"
        raises = isinstance(node.body[-1], ast.Raise)  # what subclasses define
        return "Any" if returns or raises or name == "forward" else "None"

    def klass(self, node):
        bases = ["type" if ast.unparse(b).startswith("type(") else ast.unparse(b) for b in node.bases]
        enum = any(b.endswith(("Enum", "Flag")) for b in bases)
        bases += [ast.unparse(k) for k in node.keywords]
        lines, seen = [], set()
        doc = ast.get_docstring(node)
        if doc:
            lines.append(doc_text(doc))
        has = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
        for part in node.body:
            if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
                seen.add(part.name)
                if part.name == "__call__" and "__enter__" in has:  # a context that is a decorator, too
                    lines.append("def __call__(self, function: _F) -> _F: ...")
                elif part.name != "__new__" or "__init__" not in has:
                    lines.append(self.function(part, node.name))
            elif isinstance(part, ast.AnnAssign):
                seen.add(ast.unparse(part.target))
                lines.append(f"{ast.unparse(part.target)}: {ast.unparse(part.annotation)}")
            elif isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name):
                name = part.targets[0].id
                seen.add(name)
                if name in ("__slots__", "__doc__"):
                    continue
                alias = isinstance(part.value, ast.Name) and part.value.id in seen
                lines.append(f"{name} = {part.value.id}" if alias else f"{name} = ..." if enum else f"{name}: Any")
            elif isinstance(part, ast.ClassDef):
                seen.add(part.name)
                lines.append(self.klass(part))
        stored = [n for n in ast.walk(node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)]
        attributes = {n.attr: None for n in stored if ast.unparse(n.value) == "self" and n.attr not in seen}
        lines += [f"{name}: Any" for name in attributes if not name.startswith("__")]
        inside = "\n".join(indented(line) for line in lines) or "    ..."
        return f"class {node.name}{'(' + ', '.join(bases) + ')' if bases else ''}:\n{inside}"

    def rest(self):
        """Names that the source does not show: made by loops, or loaded when they are first used."""
        lines = []
        package = getattr(self.module, "__path__", None)
        if package:
            for item in pkgutil.iter_modules(package):
                if not item.name.startswith("_") and item.name not in self.done:
                    lines.append(f"from . import {item.name} as {item.name}")
                    self.done.add(item.name)
        extension = sys.modules["cairn._C"]
        for name in public_names(self.module):
            value = self.value(name)
            if name in self.done or isinstance(value, types.ModuleType):
                continue
            home = getattr(value, "__module__", None)
            if getattr(extension, name, None) is value:
                lines.append(f"from cairn._C import {name} as {name}")
            elif isinstance(home, str) and home.startswith("cairn.") and home != self.module.__name__ and \
                    getattr(sys.modules.get(home), name, None) is value:
                lines.append(f"from {home} import {name} as {name}")
            elif callable(value) and not isinstance(value, type):
                ours = name in self.operators.all and not isinstance(value, types.FunctionType)
                lines.append(self.operators.stub(name) if ours else plain_function(name, value))
            else:
                lines.append(f"{name}: {type_text(value)}")
        return lines


def doc_text(doc):
    text = '"""' + doc.replace("\\", "\\\\").replace('"""', "'''") + '"""'
    return text if not doc.endswith('"') else text[:-3] + ' """'


def names_of(node):
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {item.asname or item.name.split(".")[0] for item in node.names}
    if isinstance(node, ast.AnnAssign):
        return {node.target.id} if isinstance(node.target, ast.Name) else set()
    if isinstance(node, ast.Assign):
        return {n.id for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)}
    return set()


def public_names(module):
    """The names that a module has, and those that it loads when they are first used."""
    names = [name for name in [*vars(module), *dir(module)] if not name.startswith("_") or name == "__version__"]
    return [name for name in dict.fromkeys(names) if is_there(module, name)]


def is_there(module, name):
    try:
        getattr(module, name)
    except (AttributeError, ImportError, NotImplementedError):
        return False
    return True


def modules_of(package):
    """A module that needs a package of others, which is not installed here, is left out: it has no stub."""
    yield package
    for item in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        try:
            yield importlib.import_module(item.name)
        except ModuleNotFoundError as error:
            if (error.name or "").split(".")[0] == package.__name__:
                raise


def main():
    operators, package = Operators(sys.argv[1]), Path(sys.argv[2]).resolve()
    sys.path.insert(0, str(package.parent))
    import cairn
    extension = importlib.import_module("cairn._C")
    (package / "_C.pyi").write_text(extension_stub(operators, extension), encoding="utf-8")
    for module in list(modules_of(cairn)):
        path = Path(module.__file__)
        if path.suffix != ".py" or path.with_suffix(".pyi").exists():
            continue
        text = Stub(operators, module, path).text()
        if text is not None:
            path.with_suffix(".pyi").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
