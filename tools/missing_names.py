"""Says which of the names that a PyTorch script uses are missing in Cairn's Python package, and what is nearest.

    tools/missing_names.py FILE...

It reads the scripts without running them. Names below torch and torchvision are looked up in the installed package, or
in python/ if that has been built. What a method belongs to is guessed: a name that PyTorch's tensors have, Cairn's
tensors have not, and no type of Python's has either, is listed as a method of tensors. Exits with 1 if one is missing.
"""

import ast
import difflib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LISTED = ROOT / "tools" / "torch_tensor_names.txt"  # what PyTorch's tensors have
PACKAGES = {"torch": "cairn", "torchvision": "cairn.vision"}
TYPES = (str, bytes, list, dict, set, tuple, int, float, Path, type(sys.stdout))
ELSEWHERE = {name for kind in TYPES for name in dir(kind)}

# What to use in place of a name that has no counterpart under a similar name. A key also stands for all names below it.
INSTEAD = {
    "torch.jit": "nothing has to be compiled: leave the decorator out",
    "torch.fx": "nothing has to be traced: leave it out",
    "torch.onnx": "cairn.onnx.export and cairn.onnx.load",
    "torch.sparse": "dense tensors; gather, index_select and index_add for products by an index",
    "torch.quantization": "float16 and bfloat16 as dtypes of modules: module.to(cairn.bfloat16)",
    "torch.ao": "float16 and bfloat16 as dtypes of modules: module.to(cairn.bfloat16)",
    "torch.hub": "load_state_dict of a file you have",
    "torch.complex64": "the real and the imaginary part as a last axis of 2",
    "torch.complex128": "the real and the imaginary part as a last axis of 2",
    "torchvision.models": "a module of your own; its state dict loads",
    "torchvision.io": "cairn.vision.datasets.ImageFolder",
}


def load_cairn():
    try:
        import cairn
    except ImportError:
        sys.path.insert(0, str(ROOT / "python"))
        try:
            import cairn
        except ImportError as error:
            raise SystemExit(f"{error}; install the package by `pip install ./python`") from error
    return cairn


class Names(ast.NodeVisitor):
    """Collects the dotted names of a script: {name: line of its first use}."""

    def __init__(self):
        self.known = {}  # what a name of the script stands for: {"F": "torch.nn.functional"}
        self.dotted, self.methods = {}, {}

    def note(self, table, name, node):
        table.setdefault(name, node.lineno)

    def visit_Import(self, node):
        for item in node.names:
            package = item.name.split(".")[0]
            if package in PACKAGES:
                self.note(self.dotted, item.name, node)
                self.known[item.asname or package] = item.name if item.asname else package

    def visit_ImportFrom(self, node):
        if node.level or (node.module or "").split(".")[0] not in PACKAGES:
            return
        for item in node.names:
            name = f"{node.module}.{item.name}" if item.name != "*" else node.module
            self.note(self.dotted, name, node)
            self.known[item.asname or item.name] = name

    def chain(self, node):
        """The dotted name of an expression if it begins with a known name, else None."""
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name) and node.id in self.known:
            return ".".join([self.known[node.id], *reversed(parts)])
        return None

    def visit_Attribute(self, node):
        name = self.chain(node)
        if name:
            self.note(self.dotted, name, node)
        else:
            self.note(self.methods, node.attr, node)
            self.visit(node.value)


def is_prefix(name, others):
    return any(other.startswith(name + ".") for other in others)


def find(cairn, name):
    """(whether the package has it, what it says about it): torch.nn.Linear is looked up as cairn.nn.Linear."""
    package, _, rest = name.partition(".")
    path = ".".join(filter(None, [PACKAGES[package].partition(".")[2], rest]))
    here, where = cairn, "cairn"
    for part in filter(None, path.split(".")):
        try:
            here = getattr(here, part)
        except NotImplementedError as error:
            return False, str(error)
        except AttributeError:
            close = difflib.get_close_matches(part, dir(here), 1, 0.75)
            return False, f"nearest: {where}.{close[0]}" if close else ""
        where += "." + part
        if not isinstance(here, (type, type(sys))):
            break  # what follows is an attribute of an object: a shape of a tensor, a method of a function
    return True, ""


def advice(name):
    while name:
        if name in INSTEAD:
            return INSTEAD[name]
        name = name.rpartition(".")[0]
    return ""


def missing(cairn, text):
    """(line, name, what is nearest) of each missing name; and how many names were looked up."""
    names = Names()
    names.visit(ast.parse(text))
    found = []
    for name, line in names.dotted.items():
        there, hint = find(cairn, name)
        if not there and not is_prefix(name, names.dotted):
            found.append((line, name, advice(name) or hint))
    listed = set(LISTED.read_text(encoding="utf-8").split())
    guessed = {name: line for name, line in names.methods.items() if name in listed and name not in ELSEWHERE}
    for name, line in guessed.items():
        if not hasattr(cairn.Tensor, name):
            close = difflib.get_close_matches(name, dir(cairn.Tensor), 1, 0.75)
            found.append((line, f"Tensor.{name}", f"nearest: Tensor.{close[0]}" if close else ""))
    return sorted(found), len(names.dotted) + len(guessed)


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 2
    cairn, total, absent = load_cairn(), 0, 0
    for path in sys.argv[1:]:
        found, count = missing(cairn, Path(path).read_text(encoding="utf-8"))
        for line, name, hint in found:
            print(f"{path}:{line}: {name} is missing" + (f"; {hint}" if hint else ""))
        total, absent = total + count, absent + len(found)
    print(f"{total} names, {absent} missing")
    return 1 if absent else 0


if __name__ == "__main__":
    sys.exit(main())
