"""One call asked of both, Cairn and PyTorch: does it fail, which dtype, which shape, which values, which gradient; and
which differences are known.

A float result differs if it is neither close to PyTorch's nor close to PyTorch's in f64: where PyTorch rounds halves in
the middle of a computation, Cairn need not.
"""

import collections
import re

import torch

import cases
import library
import pytorch

TABLE = library.ROOT / "docs/from-pytorch.md"
CLOSE = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float32: 2e-5, torch.float64: 1e-10}
FLOATS = set(CLOSE)
NO_KERNEL = re.compile(r"not implemented|not supported|unsupported|only support|Could not run|expected scalar type|"
                       r"mixed dtype|invalid combination of arguments|unexpected keyword|missing .* required|must match|"
                       r"same dtype|same scalar type|should be the same|not support|expected dtype|Found dtype|INTERNAL ASSERT|"
                       r"must be Tensor, not|Expected a long tensor|no longer supported|common dtype|"
                       r"Expected tensor .* to have|should have dtype", re.I)


class Difference(Exception):
    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


# ---- what both say to one call ----

def torch_operand(value, leaves, wide=False):
    """The tensor of an operand. Leaves that want gradients are appended to `leaves`."""
    if isinstance(value, list) and any(isinstance(v, cases.Operand) for v in value):
        return [torch_operand(v, leaves, wide) for v in value]
    if not isinstance(value, cases.Operand):
        return value
    base = value.base.clone()
    if wide and base.dtype in FLOATS:
        base = base.double()
    if leaves is not None and base.dtype in FLOATS:
        base.requires_grad_()
        leaves.append(base)
    return value.torch(base)


def cairn_operand(lib, value, leaves):
    if isinstance(value, list) and any(isinstance(v, cases.Operand) for v in value):
        return [cairn_operand(lib, v, leaves) for v in value]
    if not isinstance(value, cases.Operand):
        return value
    leaf = value.leaf(lib)
    if leaves is not None and value.base.dtype in FLOATS:
        lib.check(lib.set_requires_grad(leaf, True))
        leaves.append(leaf)
    return value.cairn(lib, leaf)


def run_torch(name, form, signature, values, leaves=None, wide=False):
    given = {k: torch_operand(v, leaves, wide) for k, v in values.items()}
    results = pytorch.call(name, form, signature, given)
    # Which of equal elements topk and its like take is not said: what their indices name is compared.
    return [picked(*r) if isinstance(r, tuple) else r for r in results]


def picked(input, dim, indices):
    input = input.detach()  # indices have no gradient
    if input.dim() == 0:
        return input.expand(indices.shape)
    if indices.dim() < input.dim():
        return torch.gather(input, dim, indices.unsqueeze(dim)).squeeze(dim)
    return torch.gather(input, dim, indices)


def read(lib, name, handles, values):
    found = [lib.value(h) for h in handles]
    if name in pytorch.PICKING:
        found[1] = picked(values["input"].torch(), values["dim"], found[1])
    return found


# ---- comparing ----

def differs(got, wanted, factor, elementwise, floor=0.0):
    """The first place where two tensors differ; None if they do not. Below `floor` the difference counts absolutely."""
    if got.dtype not in FLOATS:
        wrong = got != wanted
    else:
        a, b = got.double(), wanted.double()
        finite = b[torch.isfinite(b)].abs()
        scale = float(finite.max()) if finite.numel() else 0.0
        close = CLOSE[got.dtype] * factor
        floor = max(floor, min(1e-3 * scale, 1.0) if elementwise else scale)
        limit = close * torch.maximum(b.abs(), torch.full_like(b, floor))
        limit = limit + 4 * torch.finfo(got.dtype).tiny
        wrong = ~((a == b) | (a.isnan() & b.isnan()) | ((a - b).abs() <= limit))
        # Near the largest number one rounds to infinity, the other not.
        edge = torch.finfo(got.dtype).max
        wrong &= ~((a.abs() >= edge * (1 - close)) & (b.abs() >= edge * (1 - close)) & (a.sign() == b.sign()))
    where = wrong.nonzero()
    return where[0].tolist() if len(where) else None


def compare_values(kind, got, wanted, truth, factor, elementwise, floor=0.0, place=""):
    where = differs(got, wanted, factor, elementwise, floor)
    if where is None:
        return
    if truth is not None:
        exact = truth()
        if exact is not None and exact.shape == got.shape:
            rounded = exact.to(got.dtype) if got.dtype in FLOATS else exact
            if differs(got, rounded, factor, elementwise, floor) is None:
                return
    at = tuple(where)
    raise Difference(kind, f"{place}at {where} got {got[at].item()!r}, PyTorch has {wanted[at].item()!r}")


class Case:
    """One call with its arguments, asked of both."""

    def __init__(self, lib, name, form, draw):
        self.lib, self.name, self.form, self.draw = lib, name, form, draw
        self.signature = lib.signatures[name]
        self.values = self.draw.arguments(self.signature, form)
        self.tags = self.draw.tags
        self.elementwise = self.signature.get("kind") == "MAP"
        self.counts = collections.Counter()
        if len({v.dtype for v in self.operands()}) > 1:
            self.tags.add("mixed")

    def operands(self):
        for value in self.values.values():
            for v in value if isinstance(value, list) else [value]:
                if isinstance(v, cases.Operand):
                    yield v

    def text(self):
        return f"{self.name}{self.form}({', '.join(f'{k}={v!r}' for k, v in self.values.items())})"

    def run(self):
        """Raises Difference; counts what was compared."""
        try:
            wanted, refused = run_torch(self.name, self.form, self.signature, self.values), None
        except pytorch.NoCounterpart:
            self.counts["no such call"] += 1
            return
        except Exception as error:  # whatever PyTorch raises is its refusal
            wanted, refused = None, f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"
        scope = self.lib.scope_begin(self.lib.ctx)
        try:
            self.against(wanted, refused)
        finally:
            self.lib.scope_end(self.lib.ctx, scope)
            if self.lib.failed(self.lib.ctx):
                self.lib.error_clear(self.lib.ctx)

    def against(self, wanted, refused):
        try:
            given = {k: cairn_operand(self.lib, v, None) for k, v in self.values.items()}
        except library.Unspeakable:
            self.counts["no such call"] += 1
            return
        try:
            handles = self.lib.call(self.name, self.form, given)
            got = read(self.lib, self.name, handles, self.values)
        except library.Unspeakable:
            self.counts["no such call"] += 1
            return
        except library.Refused as error:
            self.counts["error"] += 1
            if not str(error):
                raise Difference("silent", "returned NULL without an error") from None
            if refused is None:
                raise Difference("refuses", f"{error}; PyTorch computes {brief(wanted)}") from None
            return
        if refused is not None:
            if NO_KERNEL.search(refused):
                self.counts["PyTorch has no kernel"] += 1
                return
            self.counts["error"] += 1
            raise Difference("accepts", f"computes {brief(got)}; PyTorch: {refused}")
        self.counts["error"] += 1
        self.results(got, wanted)
        if self.draw.gradient:
            self.gradients()

    def results(self, got, wanted):
        if len(got) != len(wanted):
            raise Difference("shape", f"{len(got)} results, PyTorch has {len(wanted)}")
        for k, (a, b) in enumerate(zip(got, wanted)):
            self.counts["dtype"] += 1
            if a.dtype != b.dtype:
                raise Difference("dtype", f"{library.NAME_OF[a.dtype]}, PyTorch has {b.dtype}")
            self.counts["shape"] += 1
            if a.shape != b.shape:
                raise Difference("shape", f"{list(a.shape)}, PyTorch has {list(b.shape)}")
            if self.name in pytorch.RANDOM:
                continue
            self.counts["value"] += 1
            compare_values("value", a, b, lambda k=k: self.truth(k), 1, self.elementwise)

    def truth(self, k):
        try:
            return run_torch(self.name, self.form, self.signature, self.values, wide=True)[k]
        except Exception:
            return None

    # ---- gradients ----

    def gradients(self):
        """Gradients of the float operands, of a sum of the results with fixed weights; then gradients of those."""
        if self.form.endswith("_") or self.name in pytorch.RANDOM or self.signature.get("gradient") is False:
            return
        if not any(v.base.dtype in FLOATS for v in self.operands()) or any(v.scalar for v in self.operands()):
            return
        lib, wanted = self.lib, self.torch_gradients(False)
        if wanted is None:
            return
        leaves = []
        given = {k: cairn_operand(lib, v, leaves) for k, v in self.values.items()}
        try:
            outs = [h for h in lib.call(self.name, self.form, given)
                    if library.DTYPES[library.NAMES[lib.type(h)]] in FLOATS]
            seeds = [lib.tensor(weights(lib.value(h))) for h in outs]
            second = self.draw.second and wanted[1] is not None
            first = lib.gradients(outs, seeds, leaves, create_graph=second)
            self.same("gradient", [None if h is None else lib.value(h) for h in first], wanted[0], 0)
            if second:
                some = [h for h in first if h is not None]
                seeds = [lib.tensor(weights(lib.value(h))) for h in some]
                more = self.second_gradients(some, seeds, leaves)
                self.same("second gradient", [None if h is None else lib.value(h) for h in more], wanted[1], 1)
        except library.Refused as error:
            raise Difference("gradient", f"fails: {error}") from None

    def second_gradients(self, first, seeds, leaves):
        """Gradients of gradients, of one weighted sum: some may be constant. If all are, PyTorch has zeros."""
        lib, total = self.lib, None
        for gradient, seed in zip(first, seeds):
            part = lib.check(lib.sum(lib.check(lib.mul(gradient, seed)), library.dims(None), False))
            total = part if total is None else lib.check(lib.add(total, part))
        try:
            one = torch.ones((), dtype=library.DTYPES[library.NAMES[lib.type(total)]])
            return lib.gradients([total], [lib.tensor(one)], leaves)
        except library.Refused as error:
            if "must depend on a tensor that requires a gradient" not in str(error):
                raise
            return [None] * len(leaves)

    def torch_gradients(self, wide):
        """(gradients, gradients of gradients or None), or None if PyTorch has none."""
        leaves = []
        try:
            outs = [r for r in run_torch(self.name, self.form, self.signature, self.values, leaves, wide)
                    if r.dtype in FLOATS and r.requires_grad]
            if not outs:
                return None
            seeds = [weights(r.detach()) for r in outs]
            first = torch.autograd.grad(outs, leaves, seeds, allow_unused=True, create_graph=self.draw.second)
        except Exception:
            return None
        some = [g for g in first if g is not None]
        try:
            rough = [g for g in some if g.requires_grad]
            if not self.draw.second or len(rough) != len(some) or not some:
                return first, None
            second = torch.autograd.grad(some, leaves, [weights(g.detach()) for g in some], allow_unused=True)
        except Exception:
            return first, None
        return first, second

    def same(self, kind, got, wanted, order):
        for k, (a, b) in enumerate(zip(got, wanted)):
            self.counts[kind] += 1
            a = torch.zeros(()) if a is None else a
            b = torch.zeros(()) if b is None else b.detach()
            if a.shape != b.shape:  # nothing on one side: zeros on the other
                a, b = torch.broadcast_tensors(a, b)
            if b.dtype != a.dtype:
                a, b = a.double(), b.double()
            exact = lambda k=k: self.exact(order, k)
            compare_values(kind, a, b, exact, 20 if order else 5, False, 1.0, f"operand {k} ")

    def exact(self, order, k):
        found = self.torch_gradients(True)
        if found is None or found[order] is None or found[order][k] is None:
            return None
        return found[order][k].detach()


def weights(x):
    """Fixed weights of the elements of a result, so that no two errors cancel each other."""
    n = torch.arange(x.numel(), dtype=torch.float64)
    return (torch.cos(n) + 0.25).reshape(x.shape).to(x.dtype)


def brief(tensors):
    names = [library.NAME_OF.get(t.dtype, str(t.dtype)) for t in tensors]
    return ", ".join(f"{name}{list(t.shape)}{t.flatten()[:4].tolist()}" for name, t in zip(names[:2], tensors))


def compare_call(lib, name, form, draw, tell, counts, found):
    """Compares one call. Adds what was compared to `counts`, a difference to `found`, and returns the difference."""
    case, difference = Case(lib, name, form, draw), None
    tell(case.text())
    try:
        case.run()
    except Difference as d:
        difference = (d.kind, frozenset(case.tags))
        found.setdefault(difference, [0, case.text(), str(d)])[0] += 1
    counts += case.counts
    return difference


# ---- known differences ----

def known_differences():
    """Rows of the table: (names of operators, kind, tags), each with the number of differences it explains."""
    rows = []
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        found = re.match(r"^\| ((?:`[\w*]+`,? ?)+) \| `([^`]+)`", line)
        if found:
            kind, *tags = [word.strip() for word in found.group(2).split(",")]
            rows.append([set(re.findall(r"`([\w*]+)`", found.group(1))), kind, set(tags), 0])
    return rows


def is_known(rows, name, kind, tags, count):
    for row in rows:
        names, own, wanted, _ = row
        if ("*" in names or name in names) and kind == own and wanted <= tags:
            row[3] += count
            return True
    return False
