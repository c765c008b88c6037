"""Arguments for a call, drawn at random from an operator's signature.

A parameter's kind and name decide what is drawn; nothing here is about one operator, except SHAPES at the end: operands
whose shapes or values belong together in a way that chance would rarely find.
"""

import math

import torch

from library import DTYPES, NAME_OF, NAMES

FLOATS = ["f16", "bf16", "f32", "f64"]
SIZES = [(), (1,), (5,), (3, 4), (2, 3, 4), (1, 3), (3, 1), (2, 1, 3, 2), (0,), (2, 0, 3), (1, 1), (4, 4)]
NUMBERS = [0.0, 1.0, 2.0, -1.0, 3.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-3, 100.0]
SPECIAL_NUMBERS = [math.inf, -math.inf, math.nan, 1e300, -1e300, 1e-300, -0.0, 127.0, 128.0, -128.0, -129.0, 255.0, 256.0,
                   300.0, -1.0, 2147483647.0, 2147483648.0, -2147483649.0, 1e10, 9.3e18, 1e20, 65504.0, 65520.0, 1e39,
                   3.4e38, 16777217.0, 0.1]
KINKS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 6.0]


class Operand:
    """A tensor with a layout: a base, and the views that lead from it to the tensor."""

    def __init__(self, base, steps=(), scalar=False):
        self.base, self.steps, self.scalar = base, list(steps), scalar
        self.dtype = NAME_OF[base.dtype]

    def torch(self, base=None):
        x = self.base if base is None else base
        for kind, *a in self.steps:
            if kind == "permute":
                x = x.permute(*a)
            elif kind == "slice":
                x = x[(slice(None),) * a[0] + (slice(a[1], a[2], a[3]),)]
            else:
                x = x.expand(*a)
        return x

    def cairn(self, lib, leaf):
        import library
        x = leaf
        for kind, *a in self.steps:
            if kind == "permute":
                x = lib.check(lib.permute(x, library.dims(a[0])))
            elif kind == "slice":
                x = lib.check(lib.slice(x, *a))
            else:
                x = lib.check(lib.expand(x, library.dims(a[0])))
        return x

    def leaf(self, lib):
        if self.scalar:
            return lib.check(lib.scalar(lib.ctx, NAMES.index(self.dtype), float(self.base)))
        return lib.tensor(self.base)

    def __repr__(self):
        shape = "x".join(map(str, self.torch().shape)) or "0-d"
        how = "".join(f" {s[0]}" for s in self.steps) + (" number" if self.scalar else "")
        values = self.torch().flatten()[:6].tolist()
        return f"{self.dtype}[{shape}{how}]{values}"


class T:
    """What a recipe asks for: a tensor of a shape, with a dtype and values of its own if need be."""

    def __init__(self, *shape, dtype=None, values=None):
        self.shape, self.dtype, self.values = shape, dtype, values


class M:
    """What a recipe asks for: matrices with singular values from 0.6 to 4 that differ; of a kind."""

    def __init__(self, *shape, kind="any"):
        self.shape, self.kind = shape, kind

    def values(self, r):
        *lead, m, n = self.shape
        k, generator = min(m, n), torch.Generator().manual_seed(r.randrange(1 << 30))
        draw = lambda *size: torch.randn(*size, generator=generator, dtype=torch.float64)
        left, right = torch.linalg.qr(draw(*lead, m, k))[0], torch.linalg.qr(draw(*lead, n, k))[0]
        s = torch.tensor([0.6 + 0.8 * i + 0.2 * r.random() for i in range(k)], dtype=torch.float64)
        if self.kind == "triangular":
            return 0.5 * draw(*lead, n, n) + 2 * torch.eye(n, dtype=torch.float64)
        if self.kind == "symmetric":
            s, right = s * torch.tensor([r.choice([1.0, -1.0]) for _ in range(k)], dtype=torch.float64), left
        elif self.kind == "positive":
            right = left
        return (left * s) @ right.mT


class Draw:
    """The arguments of one call. `turn` counts calls: it goes through all pairs of dtypes. `r` draws everything, but
    `elements_r`, if given, the elements of tensors."""

    def __init__(self, r, turn, elements_r=None):
        self.r, self.elements_r = r, elements_r or r
        n = len(NAMES)
        self.dtypes = [NAMES[turn % n], NAMES[turn // n % n], NAMES[turn // n // n % n]]
        self.style = self.r.choice(["ordinary"] * 4 + ["kinks"] * 2 + ["special"] * 3)
        self.tags, self.shape = set(), None
        self.tensors = 0
        self.gradient = self.r.random() < (0.2 if self.style == "special" else 0.6)
        self.second = self.gradient and self.r.random() < 0.3
        self.same = self.r.random() < 0.35
        if self.style == "special":
            self.tags.add("special")

    # ---- tensors ----

    def dtype(self):
        name = self.dtypes[0 if self.same else min(self.tensors, 2)]
        self.tensors += 1
        return name

    def elements(self, n, dtype, style=None):
        style, r = style or self.style, self.elements_r
        if dtype == "bool":
            return [r.random() < 0.5 for _ in range(n)]
        if dtype in FLOATS:
            if style == "ordinary":
                return [r.gauss(0, 1.5) for _ in range(n)]
            if style == "kinks":
                return [r.choice(KINKS) for _ in range(n)]
            info = torch.finfo(DTYPES[dtype])
            pool = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, info.max, -info.max, info.tiny, -info.tiny,
                    info.eps, 0.5, 1.5, 2.5, -0.5, 88.0, -88.0, 1e4, r.gauss(0, 1), r.gauss(0, 50)]
            return [r.choice(pool) for _ in range(n)]
        info = torch.iinfo(DTYPES[dtype])
        low = 0 if dtype == "u8" else -6
        if style == "special":
            pool = [info.min, info.max, info.max - 1, info.min + 1, 0, 1, 2, 3, low // 6, low // 3, 100, 7]
            return [r.choice(pool) for _ in range(n)]
        return [r.randint(low, 9) for _ in range(n)]

    def tag_dtype(self, dtype):
        self.tags.add(dtype)
        if dtype in ("f16", "bf16"):
            self.tags.add("half")
        elif dtype not in FLOATS:
            self.tags.add("whole")

    def operand(self, shape, dtype, values=None):
        r, shape = self.r, list(shape)
        layout = r.choice(["plain"] * 4 + ["permute", "slice", "expand"]) if shape else r.choice(["plain", "scalar"])
        self.tag_dtype(dtype)
        if not shape:
            self.tags.add("0-d")
        if 0 in shape:
            self.tags.add("empty")
        base, steps = list(shape), []
        if layout == "permute" and len(shape) > 1:
            order = list(range(len(shape)))
            r.shuffle(order)
            base = [0] * len(shape)
            for k, axis in enumerate(order):
                base[axis] = shape[k]
            steps = [("permute", order)]
        elif layout == "slice":
            axis = r.randrange(len(shape))
            base[axis] = 2 * shape[axis] + 1
            steps = [("slice", axis, 1, 2 * shape[axis] + 1, 2)]
        elif layout == "expand":
            axis = r.randrange(len(shape))
            base[axis] = 1
            steps = [("expand", shape)] if shape[axis] else []
            base = base if steps else list(shape)
        n = math.prod(base)
        numbers = [values(r) for _ in range(n)] if values else self.elements(n, dtype)
        if dtype in FLOATS:
            data = torch.tensor(numbers, dtype=torch.float64).to(DTYPES[dtype])
        else:
            data = torch.tensor(numbers, dtype=DTYPES[dtype])
        scalar = layout == "scalar" and (dtype in FLOATS or abs(int(data)) < 2 ** 53)
        return Operand(data.reshape(base), steps, scalar)

    def tensor(self, name):
        """A tensor parameter that no recipe describes: the first has any shape, others fit it most of the time."""
        if self.shape is None:
            self.shape = shape = self.r.choice(SIZES)
        else:
            shape = self.relative(self.shape)
        if name in ("mask", "condition") and self.r.random() < 0.8:
            self.tensors += 1
            return self.operand(shape, "bool")
        return self.operand(shape, self.dtype())

    def relative(self, shape):
        r, choice = self.r, self.r.random()
        if choice < 0.5:
            return shape
        if choice < 0.65:
            return ()
        if choice < 0.85:
            broadcast = [1 if r.random() < 0.4 else n for n in shape]
            return tuple(broadcast[r.randint(0, len(shape)):] if r.random() < 0.4 else broadcast)
        return r.choice(SIZES)

    # ---- everything else ----

    def number(self):
        """Without -0.0, which is whole in C and a float in Python."""
        value = self.r.choice(SPECIAL_NUMBERS if self.style == "special" else NUMBERS) + 0.0
        self.tags.add("number")
        if not math.isfinite(value) or abs(value) > 1e18 or 0 < abs(value) < 1e-30:
            self.tags.add("extreme number")
        return value

    def axis(self):
        n = len(self.shape or ())
        return self.r.randint(-n, max(n - 1, 0)) if self.r.random() < 0.93 else self.r.choice([n, -n - 1, n + 1])

    def axes(self):
        n, choice = len(self.shape or ()), self.r.random()
        if choice < 0.3:
            return [self.axis()]
        if choice < 0.36:
            self.tags.add("no axes")
            return []
        if choice < 0.4:
            return [self.axis(), self.axis()]
        return [k - (n if self.r.random() < 0.3 else 0) for k in self.r.sample(range(n), self.r.randint(0, n))] or [0]

    def sizes(self):
        """Sizes: of a shape with as many elements as the first operand has, or any."""
        r, shape = self.r, list(self.shape if self.shape is not None else r_shape(self.r))
        if r.random() < 0.35:
            shape = list(r_shape(r))
        elif len(shape) > 1 and r.random() < 0.5:
            k = r.randrange(len(shape) - 1)
            shape[k:k + 2] = [shape[k] * shape[k + 1]]
        if shape and r.random() < 0.2:
            shape[r.randrange(len(shape))] = -1
        return shape

    def value(self, p):
        """The value of a parameter."""
        kind, name, r = p["kind"], p["name"], self.r
        if p["default"] is not None and r.random() < 0.3 and not (kind == "dtype"):
            return default_of(p)
        if p["optional"] and r.random() < 0.4:
            return None
        if kind == "Tensor":
            return self.tensor(name)
        if kind == "Tensor[]":
            return [self.tensor(name) for _ in range(r.choice([0, 1, 2, 2, 3]))]
        if kind == "float":
            return self.number()
        if kind == "bool":
            return r.random() < 0.5
        if kind == "dtype":
            name = self.dtype()
            self.tag_dtype(name)
            return name
        if kind == "enum":
            return r.choice(p["choices"])
        if kind == "str":
            return r.choice(["", "i,i", "ij->ji", "i->", "..."])
        if kind == "int[]":
            if p.get("count", 1) > 1:
                return [r.randint(0, 4) for _ in range(p["count"])]
            if p.get("count") == 1:
                return [self.axis()] if name.startswith("dim") else [r.randint(1, 3)]
            if name.startswith("dim"):
                return self.axes()
            if name in ("size", "shape"):
                return self.sizes()
            return [r.randint(-1, 3) for _ in range(r.randint(0, 4))]
        if name.startswith("dim") or name.endswith("_dim"):
            return self.axis()
        return r.choice([0, 1, 1, 2, 2, 3, 4, 7, -1, -2])

    def arguments(self, signature, form=""):
        recipe = RECIPES.get(signature["name"])
        values = {}
        if recipe and self.r.random() < 0.93:
            for name, given in recipe(self.r).items():
                values[name] = self.given(given)
        second = 0
        for p in signature["parameters"]:
            second += p["kind"] == "Tensor"
            if "_s" in form and second == 2 and p["kind"] == "Tensor":
                values[p["name"]] = self.number()
            elif p["name"] not in values:
                values[p["name"]] = self.value(p)
        if any(isinstance(v, list) and 0 in v for k, v in values.items() if k.endswith("size")):
            self.tags.add("empty")
        if signature["name"] == "arange" and 1e6 < abs((values["end"] - values["start"]) / (values["step"] or 1)) < 1e18:
            values["end"] = values["start"]  # both would fill the memory
        if signature["name"] == "interpolate" and isinstance(values["scale_factor"], float) and values["scale_factor"] > 9:
            values["scale_factor"] = 9.0  # the same
        return values

    def given(self, given):
        if isinstance(given, T):
            if self.shape is None:
                self.shape = given.shape
            dtype = given.dtype or self.dtype()
            return self.operand(given.shape, dtype, given.values)
        if isinstance(given, M):
            dtype = self.dtype() if self.r.random() < 0.2 else self.r.choice(["f64", "f64", "f32"])
            self.shape = self.shape or given.shape
            self.tag_dtype(dtype)
            if 0 in given.shape:
                self.tags.add("empty")
            data = given.values(self.r).to(DTYPES[dtype])
            order = [*range(data.dim() - 2), data.dim() - 1, data.dim() - 2]
            return Operand(data.mT.contiguous(), [("permute", order)]) if self.r.random() < 0.3 else Operand(data)
        if isinstance(given, list) and any(isinstance(t, T) for t in given):
            return [self.given(t) for t in given]
        return given


def r_shape(r):
    return r.choice([(), (1,), (3,), (2, 3), (0,), (2, 2, 2), (12,), (6, 2), (4, 3)])


def default_of(p):
    text, kind = p["default"], p["kind"]
    if text == "None":
        return None
    if kind in ("int", "int[]"):
        return int(text)
    return float(text) if kind == "float" else text == "True" if kind == "bool" else text


# ---- operands that belong together ----

def index(n):
    """Indices along an axis of n elements, now and then one out of range."""
    low, high = (0, n - 1) if n else (0, 0)
    return lambda r: r.randint(low, high) if r.random() < 0.995 else r.choice([n, -n - 1, -1])


def whole(r):
    return r.choice(["i64", "i64", "i64", "i32", None])


def gather(r):
    shape = r.choice([(5,), (3, 4), (2, 3, 4), (1, 3), (2, 0)])
    dim = r.randrange(len(shape))
    size = [r.randint(0 if r.random() < 0.1 else 1, n) if k != dim and n else r.randint(0, 4)
            for k, n in enumerate(shape)]
    return {"input": T(*shape), "dim": dim, "index": T(*size, dtype=whole(r), values=index(shape[dim]))}


def scatter(r):
    given = gather(r)
    # Which of several sources for one place wins is not said: distinct places along the axis.
    n, dim = given["input"].shape[given["dim"]], given["dim"]
    size = list(given["index"].shape)
    size[dim] = 1
    return given | {"index": T(*size, dtype="i64", values=index(n)), "src": same_dtype(r, size)}


def same_dtype(r, size):
    return T(*size)


def index_select(r):
    shape = r.choice([(5,), (3, 4), (2, 3, 4)])
    dim = r.randrange(len(shape))
    return {"input": T(*shape), "dim": dim, "index": T(r.randint(0, 5), dtype=whole(r), values=index(shape[dim]))}


def index_add(r):
    given = index_select(r)
    size = list(given["input"].shape)
    size[given["dim"]] = given["index"].shape[0]
    return given | {"source": T(*size)}


def take(r):
    return {"input": T(3, 4), "index": T(*r_shape(r), dtype=r.choice(["i64", "i64", "i32"]), values=index(12))}


def embedding(r):
    return {"weight": T(5, 3), "indices": T(*r_shape(r), dtype=whole(r), values=index(5))}


def embedding_bag(r):
    dtype, mode, listed = r.choice(["f32", "f64"]), r.choice(["mean", "sum", "max"]), r.random() < 0.5
    size = (r.choice([0, 1, 6]),) if listed else r.choice([(2, 3), (3, 1), (0, 2), (2, 0), (4, 5)])
    # Offsets of 0: empty bags, and one of all indices.
    offsets = T(r.choice([1, 2, 3]), dtype="i64", values=lambda r: 0) if listed else None
    return {"weight": T(5, 3, dtype=dtype), "indices": T(*size, dtype="i64", values=index(5)), "offsets": offsets,
            "mode": mode, "per_sample_weights": T(*size, dtype=dtype) if mode == "sum" and r.random() < 0.5 else None,
            "include_last_offset": False, "padding_idx": r.choice([None, None, 2, -1])}


def wrapping(n):
    """Indices along an axis of n elements, from both ends, now and then one out of range."""
    return lambda r: r.randint(-n, n - 1) if r.random() < 0.995 else r.choice([n, -n - 1])


def indices(r, shape):
    """What stands in x[...] for the axes of x: indices that broadcast, masks, or None for a whole axis."""
    found, common = [], r.choice([(), (1,), (3,), (2, 3), (0,)])
    masked = r.random() < 0.3
    while len(found) < len(shape) and r.random() < 0.8:
        n = shape[len(found)]
        if masked and r.random() < 0.5:
            found.append(T(n, dtype="bool"))
            masked, common = False, (1,)
        elif r.random() < 0.3:
            found.append(None)
        else:
            own = [1 if r.random() < 0.3 else k for k in common]
            found.append(T(*own[r.randint(0, len(own)) if r.random() < 0.3 else 0:], values=wrapping(n),
                           dtype=r.choice(["i64", "i64", "i32"])))
    return found if any(isinstance(t, T) for t in found) else [T(2, dtype="i64", values=wrapping(shape[0]))]


def indexed(r):
    shape = r.choice([(5,), (4, 3), (2, 3, 4), (3, 1, 2, 4)])
    return {"input": T(*shape), "indices": indices(r, shape)}


def index_put(r):
    one = T(3, dtype="i64", values=index(4))
    if r.random() < 0.5:
        given = indexed(r)
        # Which of several values for one place wins is not said: one value, or a sum.
        return given | {"values": T(*r.choice([(), (1,)])), "accumulate": r.random() < 0.5}
    return {"input": T(4, 5), "indices": r.choice([[one], [one, T(3, dtype="i64", values=index(5))]]),
            "values": T(*r.choice([(), (1,)])), "accumulate": r.random() < 0.5}


def put(r):
    size = r_shape(r)
    # Which of several sources for one place wins is not said: a sum, or one index.
    accumulate = r.random() < 0.7
    size = size if accumulate else (1,)
    return {"input": T(3, 4), "index": T(*size, dtype="i64", values=wrapping(12)), "source": T(*size),
            "accumulate": accumulate}


def index_fill(r):
    shape = r.choice([(5,), (3, 4), (2, 3, 4)])
    dim = r.randrange(len(shape))
    return {"input": T(*shape), "dim": dim, "index": T(r.randint(0, 5), dtype="i64", values=wrapping(shape[dim]))}


def take_along_dim(r):
    shape = r.choice([(5,), (3, 4), (2, 3, 4), (1, 3)])
    if r.random() < 0.3:
        return {"input": T(*shape), "indices": T(*r_shape(r), dtype="i64", values=index(math.prod(shape))), "dim": None}
    dim = r.randrange(len(shape))
    size = [r.choice([1, n]) if k != dim else r.randint(0, 4) for k, n in enumerate(shape)]
    return {"input": T(*shape), "indices": T(*size, dtype="i64", values=wrapping(shape[dim])), "dim": [dim]}


def scatter_reduce(r):
    given = gather(r)
    size, dtype = given["index"].shape, r.choice(FLOATS + ["i64", "i32", "u8", "bool"])
    return given | {"input": T(*given["input"].shape, dtype=dtype), "src": T(*size, dtype=dtype),
                    "index": T(*size, dtype="i64", values=index(given["input"].shape[given["dim"]]))}


def index_reduce(r):
    given = index_add(r)
    dtype = r.choice(FLOATS + ["i64", "i32", "u8"])
    return given | {name: T(*given[name].shape, dtype=dtype) for name in ("input", "source")}


def masked_scatter(r):
    shape, dtype = r.choice([(5,), (3, 4), (2, 3, 4)]), r.choice([*DTYPES])
    return {"input": T(*shape, dtype=dtype), "source": T(r.choice([24, 24, 30, 3]), dtype=dtype),
            "mask": T(*[1 if r.random() < 0.2 else n for n in shape], dtype="bool")}


def bincount(r):
    n = r.choice([0, 1, 5, 9])
    weights = {"weights": r.choice([None, T(n)])}
    return {"input": T(n, dtype=r.choice(["i64", "i32", "u8", None]), values=index(7)),
            "minlength": r.choice([0, 0, 3, 12])} | weights


def histc(r):
    return {"bins": r.choice([1, 3, 10, 0]), "min": r.choice([0.0, -2.0]), "max": r.choice([0.0, 1.0, 3.0])}


def searchsorted(r):
    front, dtype = r.choice([(), (2,), (2, 3)]), r.choice([*DTYPES])
    values = r_shape(r) if not front else (*front, r.randint(0, 4))
    n = r.choice([0, 1, 4, 7])
    sorter = r.choice([None, None, T(*front, n, dtype="i64", values=index(n) if n else None)])
    return {"sorted_sequence": T(*front, n, dtype=dtype), "input": T(*values, dtype=dtype), "sorter": sorter}


def bucketize(r):
    dtype = r.choice([*DTYPES])
    return {"input": T(*r_shape(r), dtype=dtype), "boundaries": T(r.choice([0, 1, 4]), dtype=dtype)}


def few(r):
    return float(r.randint(0, 3))


def repeating(r):
    """Elements of which many are equal."""
    shape = r.choice([(), (1,), (6,), (4, 3), (2, 3, 4), (0,), (3, 0)])
    return {"input": T(*shape, values=few), "dim": r.choice([None, None, [r.randrange(len(shape))] if shape else [0]])}


def most_frequent(r):
    return {"input": T(*r.choice([(), (1,), (6,), (4, 3), (2, 5, 4)]), values=few)}


def quantile(r):
    shape, dtype = r.choice([(), (1,), (6,), (4, 3), (2, 3, 4)]), r.choice(["f32", "f64", "f32", "f64", "f16"])
    level = lambda r: r.choice([0.0, 0.25, 0.5, 0.3, 0.77, 1.0]) if r.random() < 0.99 else 1.5  # noqa: E731
    return {"input": T(*shape, dtype=dtype), "q": T(*r.choice([(), (1,), (3,)]), dtype=dtype, values=level),
            "dim": r.choice([None, [r.randrange(-len(shape), len(shape))] if shape else [0]])}


def kthvalue(r):
    shape = r.choice([(), (1,), (5,), (3, 4), (2, 3, 4)])
    dim = r.randrange(-len(shape), len(shape)) if shape else 0
    return {"input": T(*shape), "dim": dim, "k": r.randint(1, shape[dim] if shape else 1)}


def one_hot(r):
    return {"input": T(*r_shape(r), dtype="i64", values=index(4)), "num_classes": r.choice([-1, 4, 6, 2])}


def slice_assign(r):
    start, end, step = r.randint(-2, 3), r.randint(-1, 5), r.choice([1, 1, 2])
    n = len(range(4)[start:end:step])
    return {"input": T(4, 3), "dim": 0, "start": start, "end": end, "step": step, "value": T(n, 3)}


def matmul(r):
    m, k, n = r.choice([0, 1, 2, 3]), r.choice([0, 1, 3, 4, 5]), r.choice([1, 2, 4])
    a, b = r.choice([((k,), (k,)), ((m, k), (k,)), ((k,), (k, n)), ((m, k), (k, n)), ((2, m, k), (k, n)),
                     ((2, m, k), (2, k, n)), ((m, k), (3, k, n)), ((2, 1, m, k), (3, k, n)), ((m, k), (k + 1, n))])
    return {"input": T(*a), "other": T(*b)}


def linear(r):
    k, o = r.choice([0, 1, 3, 5]), r.choice([1, 2, 4])
    bias = {} if r.random() < 0.4 else {"bias": T(o)}
    return {"input": T(*r.choice([(k,), (2, k), (2, 3, k), (0, k)])), "weight": T(o, k)} | bias


def vectors(second):
    return lambda r: {"input": T(4), second: T(r.choice([4, 4, 4, 3]) if second == "tensor" else r.randint(0, 5))}


def einsum(r):
    equation, shapes = r.choice([
        ("ij,jk->ik", [(2, 3), (3, 4)]), ("bij,bjk->bik", [(2, 3, 4), (2, 4, 2)]), ("ii->i", [(3, 3)]), ("ii", [(3, 3)]),
        ("ij->ji", [(2, 3)]), ("ij->", [(2, 3)]), ("i,j->ij", [(2,), (3,)]), ("...ij,...jk->...ik", [(2, 2, 3), (3, 2)]),
        ("ij,ij->i", [(2, 3), (2, 3)]), ("ij,jk,kl->il", [(2, 3), (3, 2), (2, 4)]), ("ij,jk", [(2, 3), (4, 4)]),
        ("ij,k", [(2, 3), (2,)]), ("", []), ("->", []), ("ij,ik->jk", [(3, 2), (3, 4)]), ("i,i->", [(0,), (0,)])])
    return {"equation": equation, "operands": [T(*s) for s in shapes]}


def conv(axes, transposed=False):
    def recipe(r):
        groups, deep = r.choice([1, 1, 1, 2]), r.choice([1, 2])
        c, o = groups * deep, groups * r.choice([1, 2, 3])
        kernel = [r.randint(1, 3) for _ in range(axes)]
        weight = (c, o // groups, *kernel) if transposed else (o, c // groups, *kernel)
        batch = [r.choice([0, 1, 2])] if r.random() < 0.8 else []
        stride = [r.randint(1, 3) for _ in range(axes)]
        given = {"input": T(*batch, c, *[r.randint(3, 6) for _ in range(axes)]), "weight": T(*weight), "groups": groups,
                 "stride": stride, "padding": [r.randint(0, 2) for _ in range(axes)],
                 "dilation": [r.randint(1, 2) for _ in range(axes)], "bias": T(o) if r.random() < 0.5 else None}
        return given | ({"output_padding": [r.randint(0, 2) for _ in range(axes)]} if transposed else {})
    return recipe


def pool(axes, dilation):
    def recipe(r):
        shape = [2, 2][:r.choice([1, 2, 2])] + [r.randint(3, 7) for _ in range(axes)]
        given = {"input": T(*shape), "kernel_size": [r.randint(1, 3) for _ in range(axes)],
                 "stride": r.choice([None, [r.randint(1, 3) for _ in range(axes)]]),
                 "padding": [r.choice([0, 0, 1]) for _ in range(axes)]}
        return given | ({"dilation": [r.choice([1, 1, 2]) for _ in range(axes)]} if dilation else {})
    return recipe


def lp_pool(axes):
    def recipe(r):
        given = pool(axes, False)(r)
        del given["padding"]
        return given | {"norm_type": r.choice([2.0, 1.0, 3.0, 4.0, math.inf, -math.inf])}
    return recipe


def averages(axes):
    return lambda r: pool(axes, False)(r) | {"divisor_override": r.choice([None, None, 3, -2])}


def unpool(axes):
    """One element in each plane: which of equal indices wins is not said."""
    def recipe(r):
        kernel = [r.randint(2, 3) for _ in range(axes)]
        shape = [2, 3][:r.choice([1, 2])] + [1] * axes
        return {"input": T(*shape), "indices": T(*shape, dtype=whole(r), values=index(math.prod(kernel))),
                "kernel_size": kernel, "stride": r.choice([None, [2] * axes]), "padding": [0] * axes,
                "output_size": r.choice([None, None, kernel, [k + 1 for k in kernel], [k + 9 for k in kernel]])}
    return recipe


def interpolate(r):
    mode, axes = r.choice([("nearest", 1), ("nearest", 2), ("nearest", 3), ("linear", 1), ("bilinear", 2), ("bicubic", 2),
                           ("trilinear", 3), ("area", 1), ("area", 2), ("area", 3), ("nearest_exact", 2),
                           ("nearest_exact", 1), ("bilinear", 2), ("bicubic", 2), ("linear", 2)])
    given = {"input": T(r.choice([0, 1, 2]), 2, *[r.randint(1, 6) for _ in range(axes)]), "mode": mode,
             "align_corners": mode not in ("nearest", "nearest_exact", "area") and r.random() < 0.4,
             "antialias": mode in ("bilinear", "bicubic") and r.random() < 0.4, "recompute_scale_factor": False}
    if r.random() < 0.5:
        return given | {"size": [r.randint(1, 8) for _ in range(axes)], "scale_factor": None}
    return given | {"size": None, "recompute_scale_factor": r.random() < 0.4,
                    "scale_factor": r.choice([2.0, 1.7, 0.6, [r.choice([1.3, 0.5, 2.0, 3.0]) for _ in range(axes)]])}


def blocks(r):
    two = lambda low, high: [r.randint(low, high), r.randint(low, high)]
    return {"kernel_size": two(1, 3), "dilation": two(1, 2), "padding": two(0, 2), "stride": two(1, 3)}


def im2col(r):
    return blocks(r) | {"input": T(*[2][:r.choice([0, 1])], r.randint(1, 3), r.randint(1, 7), r.randint(1, 7))}


def fold(r):
    given, size = blocks(r), [r.randint(3, 7), r.randint(3, 7)]
    count = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, p, d, k, s in
             zip(size, given["padding"], given["dilation"], given["kernel_size"], given["stride"])]
    rows = 2 * math.prod(given["kernel_size"])
    blocks_ = max(math.prod(count), 0) + r.choice([0, 0, 0, 0, 1])
    return given | {"output_size": size, "input": T(*[2][:r.choice([0, 1])], rows, blocks_)}


def grid_sample(r):
    axes, dtype = r.choice([2, 2, 3]), r.choice(["f32", "f64"])
    n = r.choice([1, 2])
    point = lambda r: r.choice([r.uniform(-1.6, 1.6)] * 12 + [-1.0, 1.0, 0.0])
    return {"input": T(n, 2, *[r.randint(1, 5) for _ in range(axes)], dtype=dtype),
            "grid": T(n, *[r.randint(1, 3) for _ in range(axes)], axes, dtype=dtype, values=point)}


def affine_grid(r):
    axes, n = r.choice([2, 3]), r.choice([1, 2])
    return {"theta": T(n, axes, axes + 1, dtype=r.choice(FLOATS)), "size": [n, 3] + [r.randint(1, 4) for _ in range(axes)]}


def shuffle(name):
    def recipe(r):
        n = r.choice([1, 2, 3])
        shape = {"upscale_factor": (2 * n * n, 2, 3), "downscale_factor": (2, 2 * n, 3 * n), "groups": (2, 2 * n, 3)}[name]
        return {"input": T(*[2][:r.choice([0, 1])] if name != "groups" else [], *shape), name: n}
    return recipe


def response_norm(r):
    return {"input": T(2, r.randint(1, 5), *[3, 2, 2][:r.randint(1, 3)]), "size": r.randint(1, 4), "alpha": r.choice([1e-4, 0.5]),
            "beta": r.choice([0.75, 0.5]), "k": r.choice([1.0, 2.0])}


def planes(axes):
    return lambda r: {"input": T(*[2, 3][:r.choice([1, 2, 2])], *[r.randint(1, 6) for _ in range(axes)])}


def resize(r, axes=2):
    size = [r.randint(1, 7) for _ in range(axes)]
    return {"input": T(1, 2, *[r.randint(1, 5) for _ in range(axes)]), "size": size}


def adaptive(axes):
    def recipe(r):
        size = [r.randint(1, 5) for _ in range(axes)]
        return planes(axes)(r) | {"output_size": size if axes > 1 else size[0]}
    return recipe


def normalized(r):
    shape = r.choice([(4,), (2, 5), (2, 3, 4)])
    n = r.randint(1, len(shape))
    own = lambda: T(*shape[len(shape) - n:]) if r.random() < 0.6 else None
    return {"input": T(*shape), "normalized_dims": n, "weight": own(), "bias": own(), "eps": r.choice([1e-5, 1e-3])}


def rms(r):
    given = normalized(r)
    del given["bias"]
    return given


def channels(r, groups=None):
    c = r.choice([2, 4])
    own = lambda: T(c) if r.random() < 0.6 else None
    shape = r.choice([(2, c, 3), (3, c, 2, 2)] + ([] if groups is None else [(2, c)]))
    return {"input": T(*shape), "weight": own(), "bias": own(), "eps": 1e-5} | ({"num_groups": groups} if groups else {})


def batch_norm(r):
    given, training = channels(r), r.random() < 0.5
    c = given["input"].shape[1]
    keep = not training or r.random() < 0.5
    positive = lambda r: 0.5 + r.random()
    return given | {"training": training, "running_mean": T(c) if keep else None, "momentum": 0.1,
                    "running_var": T(c, values=positive) if keep else None}


def attention(r):
    t, s, w = r.randint(1, 4), r.randint(1, 4), r.choice([2, 4])
    lead = r.choice([(), (2,), (2, 3)])
    dtype = r.choice(FLOATS)
    mask = r.choice([None, None, T(t, s, dtype="bool"), T(t, s, dtype=dtype)])
    return {"query": T(*lead, t, w, dtype=dtype), "key": T(*lead, s, w, dtype=dtype),
            "value": T(*lead, s, w + 1, dtype=dtype), "attn_mask": mask, "dropout_p": 0.0,
            "is_causal": mask is None and r.random() < 0.5, "scale": r.choice([None, 0.3])}


def classes(r, soft=False):
    n, c = r.randint(1, 3), r.randint(2, 4)
    more = r.choice([(), (), (2,)])
    dtype = r.choice(FLOATS)
    target = T(n, *more, dtype="i64", values=index(c))
    given = {"input": T(n, c, *more, dtype=dtype), "target": target, "ignore_index": r.choice([-100, 0, 1]),
             "weight": r.choice([None, T(c, dtype=dtype, values=lambda r: r.random() + 0.1)])}
    if soft:
        given["label_smoothing"] = r.choice([0.0, 0.0, 0.2])
        if r.random() < 0.3:
            given["target"] = T(n, c, *more, dtype=dtype, values=lambda r: r.random())
            given["ignore_index"] = -100
    return given


def multi_margin(r):
    given = classes(r)
    n, c = given["input"].shape[:2]
    given |= {"input": T(n, c, dtype=given["input"].dtype), "target": T(n, dtype="i64", values=index(c)),
              "p": r.choice([1, 2]), "margin": r.choice([1.0, 0.5, 0.0])}
    del given["ignore_index"]
    return given


def labels(r):
    n, c, dtype = r.choice([2, 3]), r.choice([1, 4]), r.choice(["f32", "f64"])
    return {"input": T(n, c, dtype=dtype), "target": T(n, c, dtype="i64", values=lambda r: r.randint(-1, c - 1))}


def soft_labels(r):
    given = pair(values=None)(r)
    shape, dtype = r.choice([(4,), (2, 3)]), given["input"].dtype
    return {"input": T(*shape, dtype=dtype), "target": T(*shape, dtype=dtype, values=lambda r: float(r.randint(0, 1))),
            "weight": r.choice([None, T(shape[-1], dtype=dtype)])}


def ctc(r):
    t, n, c, s = 6, 2, 4, 2
    return {"log_probs": T(t, n, c, dtype=r.choice(["f32", "f64"]), values=lambda r: -r.random() - 1),
            "targets": T(n, s, dtype="i64", values=lambda r: r.randint(1, c - 1)), "blank": 0,
            "input_lengths": T(n, dtype="i64", values=lambda r: r.randint(5, 6)),
            "target_lengths": T(n, dtype="i64", values=lambda r: r.randint(1, s))}


def pair(first="input", second="target", values=None):
    def recipe(r):
        shape, dtype = r.choice([(), (4,), (2, 3), (0,)]), r.choice(FLOATS)
        return {first: T(*shape, dtype=dtype, values=values), second: T(*shape, dtype=dtype, values=values)}
    return recipe


def probability(r):
    return r.random()


def bce(r):
    given = pair(values=probability)(r)
    shape, dtype = given["input"].shape, given["input"].dtype
    return given | {"weight": r.choice([None, T(*shape, dtype=dtype)])}


def bce_logits(r):
    given = bce(r)
    shape, dtype = given["input"].shape, given["input"].dtype
    return given | {"input": T(*shape, dtype=dtype), "pos_weight": r.choice([None, T(*shape[-1:], dtype=dtype)])}


def sign(r):
    return r.choice([1.0, -1.0])


def signed(r):
    given = pair()(r)
    return given | {"target": T(*given["target"].shape, dtype=given["target"].dtype, values=sign)}


def ranking(r):
    shape, dtype = r.choice([(4,), (2, 3)]), r.choice(FLOATS)
    return {"input1": T(*shape, dtype=dtype), "input2": T(*shape, dtype=dtype),
            "target": T(*shape, dtype=dtype, values=sign), "margin": r.choice([0.0, 0.5])}


def cosine_embedding(r):
    given = ranking(r)
    dtype = given["input1"].dtype
    return given | {"input1": T(3, 4, dtype=dtype), "input2": T(3, 4, dtype=dtype), "target": T(3, dtype=dtype, values=sign)}


def gaussian(r):
    given = pair()(r)
    shape, dtype = given["input"].shape, given["input"].dtype
    return given | {"var": T(*shape, dtype=dtype, values=lambda r: 0.2 + r.random()), "eps": 1e-6}


def poisson(r):
    return pair(values=lambda r: r.random() * 3)(r) | {"eps": 1e-8}


def triplet(r):
    dtype = r.choice(FLOATS)
    shape = r.choice([(4,), (2, 3)])
    return {name: T(*shape, dtype=dtype) for name in ("anchor", "positive", "negative")} | {
        "margin": r.choice([1.0, 0.5]), "p": r.choice([2.0, 1.0, 3.0]), "eps": 1e-6}


def distance(r):
    dtype = r.choice(FLOATS)
    shape = r.choice([(4,), (2, 3), (2, 1, 3)])
    return {"x1": T(*shape, dtype=dtype), "x2": T(*shape, dtype=dtype), "eps": 1e-6}


def similarity(r):
    return distance(r) | {"eps": 1e-8, "dim": r.choice([-1, 0])}


def expand(r):
    shape = r.choice([(), (1,), (3, 1), (1, 4), (2, 3)])
    front = r.choice([[], [], [2], [3, 2]])
    return {"input": T(*shape), "size": front + [r.choice([n, -1]) if n != 1 else r.choice([1, 3, 0]) for n in shape]}


def permute(r):
    shape = r.choice([(), (3,), (3, 4), (2, 3, 4)])
    order = list(range(len(shape)))
    r.shuffle(order)
    return {"input": T(*shape), "dims": [k - (len(shape) if r.random() < 0.3 else 0) for k in order]}


def pad(r):
    shape = r.choice([(4,), (2, 5), (2, 3, 4), (1, 2, 3, 4)])
    mode = r.choice(["constant", "constant", "reflect", "replicate", "circular"])
    axes = r.randint(1, len(shape)) if mode == "constant" else max(1, len(shape) - r.choice([1, 2]))
    low = -1 if mode == "constant" else 0
    return {"input": T(*shape), "mode": mode, "pad": [r.randint(low, 2) for _ in range(2 * axes)]} | (
        {} if mode == "constant" else {"value": 0.0})


def joined(r):
    shape = list(r.choice([(3,), (2, 3), (2, 3, 2)]))
    dim, parts = r.randrange(len(shape)), []
    for _ in range(r.randint(1, 4)):
        own = list(shape)
        own[dim] = r.randint(0, 3)
        parts.append(T(*own))
    return {"tensors": parts, "dim": r.choice([dim, dim - len(shape)])}


def stacked(r):
    shape = r.choice([(), (3,), (2, 3)])
    return {"tensors": [T(*shape) for _ in range(r.randint(1, 3))]}


def repeats(name):
    def recipe(r):
        shape = r.choice([(), (3,), (2, 3)])
        n = len(shape) + r.choice([0, 0, 1, -1])
        return {"input": T(*shape), name: [r.choice([1, 2, 3, 0]) for _ in range(max(n, 0))]}
    return recipe


def roll(r):
    n = r.randint(1, 2)
    return {"input": T(3, 4), "shifts": [r.randint(-5, 5) for _ in range(n)],
            "dims": None if n == 1 and r.random() < 0.3 else r.sample([0, 1], n)}


def bernoulli(r):
    return {"input": T(*r_shape(r), values=lambda r: r.choice([0.0, 1.0]) if r.random() < 0.99 else r.choice([1.5, 2.0]))}


def multinomial(r):
    weight = lambda r: r.choice([0.5, 1.0, 2.0, 3.0]) if r.random() < 0.98 else r.choice([0.0, -1.0])  # noqa: E731
    return {"input": T(*r.choice([(4,), (3, 4), (2, 1), (1, 5), (0, 3), (2, 3, 4)]), values=weight,
                       dtype=r.choice(FLOATS + ["i64"])), "num_samples": r.choice([1, 2, 4, 6, 0])}


def arange(r):
    start, step = r.choice([0.0, 1.0, -2.0, 0.5, 3.0]), r.choice([1.0, 2.0, -1.0, 0.5, 0.3, 0.0, 1.5])
    return {"start": start, "end": start + step * r.choice([0, 1, 4, 4.5, 5, -1]), "step": step}


def created(r):
    return {"size": list(r_shape(r))}


def signals(complex):
    """The shape of signals, with the last axis of complex ones."""
    def recipe(r):
        shape = r.choice([(5,), (8,), (3, 4), (2, 7, 3), (1,), (67,)])
        axis = r.randrange(len(shape))
        n = r.choice([0, 0, 3, 9, shape[axis]])
        if complex == "half" and n == 0 and shape[axis] == 1:
            n = 1
        return {"input": T(*shape, *((2,) if complex else ()), dtype=r.choice(["f32", "f64"])), "n": n,
                "dim": r.choice([axis, axis - len(shape)]), "norm": r.choice(["backward", "forward", "ortho"])}
    return recipe


def spectra(complex):
    def recipe(r):
        given = signals(complex)(r)
        del given["n"]
        ndim = len(given["input"].shape) - (1 if complex else 0)
        return given | {"dim": r.choice([None, r.sample(range(ndim), r.randint(1, ndim)), [-1]])}
    return recipe


def frames(r):
    n_fft = r.choice([4, 7, 8])
    given = {"n_fft": n_fft, "hop_length": r.choice([0, 1, 2, 3]), "win_length": r.choice([0, n_fft, n_fft - 1]),
             "center": r.random() < 0.6, "normalized": r.random() < 0.5, "onesided": r.random() < 0.7}
    return n_fft, given | {"window": r.choice([None, "window"])}


def with_window(given, dtype):
    if given["window"]:
        given["window"] = T(given["win_length"] or given["n_fft"], dtype=dtype, values=lambda r: 0.5 + r.random())
    return given


def stft(r):
    n_fft, given = frames(r)
    dtype = r.choice(["f32", "f64"])
    return with_window(given, dtype) | {"input": T(*r.choice([(20,), (2, 17)]), dtype=dtype),
                                        "pad_mode": r.choice(["reflect", "constant", "replicate", "circular"])}


def istft(r):
    n_fft, given = frames(r)
    given["hop_length"] = r.choice([0, 1, 2])
    given["win_length"] = 0 if not given["center"] else given["win_length"]
    dtype, bins = r.choice(["f32", "f64"]), n_fft // 2 + 1 if given["onesided"] else n_fft
    return with_window(given, dtype) | {"input": T(*r.choice([(bins, 6, 2), (2, bins, 9, 2)]), dtype=dtype),
                                        "length": r.choice([0, 0, 3, 5])}


def product(names, shapes):
    """Operands of a product: the letters of `shapes` are sizes; a first operand without letters broadcasts."""
    def recipe(r):
        size = {letter: r.choice([1, 2, 3, 3, 0]) for letter in "bnmp"}
        given = {name: T(*[size[letter] for letter in shape]) for name, shape in zip(names, shapes)}
        if r.random() < 0.1:
            given[names[-1]] = T(*[size[letter] + 1 for letter in shapes[-1]])
        if names[0] in given and len(names) == 3 and r.random() < 0.4:
            given[names[0]] = T(*r.choice([(), (1,), tuple(size[k] for k in shapes[0][-1:])]))
        return given
    return recipe


def tensordot(r):
    a, b, dims_self, dims_other = r.choice([
        ((2, 3, 4), (4, 3, 2), [1, 2], [1, 0]), ((2, 3), (3, 2), [1], [0]), ((2,), (3,), [], []),
        ((3, 2), (3, 2), [0, -1], [0, -1]), ((2, 3), (4, 2), [1], [0]), ((2, 0), (0, 3), [1], [0])])
    return {"a": T(*a), "b": T(*b), "dims_self": dims_self, "dims_other": dims_other}


def small_pair(first, second):
    return lambda r: {first: T(*r.choice([(), (2,), (1, 3), (2, 2), (0, 2)])), second: T(*r.choice([(), (3,), (2, 1), (2, 2)]))}


def cross(r):
    a, b, dim = r.choice([((3,), (3,), 0), ((2, 3), (2, 3), 1), ((2, 3), (1, 3), -1), ((3, 2), (3, 2), 0), ((0, 3), (0, 3), 1),
                          ((2, 3), (3,), -1), ((2, 4), (2, 4), 1)])
    return {"input": T(*a), "other": T(*b), "dim": dim}


def cdist(r):
    a, b = r.choice([((2, 3), (4, 3)), ((1, 2), (2, 2)), ((2, 3, 2), (2, 1, 2)), ((2, 2), (3, 2, 2)), ((0, 3), (2, 3)),
                     ((2, 0), (3, 0)), ((2, 3), (2, 4))])
    return {"x1": T(*a), "x2": T(*b), "p": r.choice([2.0, 2.0, 1.0, 0.0, 3.0, 1.5, math.inf, -1.0])}


def movedim(r):
    n = r.randint(0, 2)
    return {"input": T(2, 3, 4), "source": r.sample([0, 1, -1], n), "destination": r.sample([0, -2, 2], n)}


def swapaxes(r):
    return {"input": T(2, 3, 4), "axis0": r.randint(-3, 3), "axis1": r.randint(-3, 2)}


def unflatten(r):
    dim, sizes = r.choice([(0, [2, 3]), (0, [-1, 2]), (1, [4]), (-1, [2, -1, 1]), (1, [3, 2]), (0, [-1, 4]), (1, []), (0, [-1, -1])])
    return {"input": T(6, 4), "dim": dim, "sizes": sizes}


def rot90(r):
    return {"input": T(*r.choice([(2, 3), (2, 3, 2), (0, 2), (3,)])), "k": r.randint(-5, 5), "dims": r.choice([[0, 1], [1, 0], [-1, 0], [0, 0], [0]])}


def matrix(r):
    return {"input": T(*r.choice([(2, 3), (3, 3), (0, 2), (4,), (1,), (2, 3, 2)]))}


def vander(r):
    return {"x": T(r.choice([0, 1, 3])), "N": r.choice([-1, 0, 1, 2, 4])}


def listing(*shapes):
    return lambda r: {"tensors": [T(*r.choice(shapes)) for _ in range(r.randint(1, 3))]}


def hstack(r):
    return {"tensors": [T(*s) for s in r.choice([[(), (2,)], [(2, 1), (2, 3)], [(2, 1, 2), (2, 2, 2)], [(2,), (2, 2)]])]}


def vstack(r):
    return {"tensors": [T(*s) for s in r.choice([[(), (1,)], [(2,), (1, 2)], [(2, 1, 2), (1, 1, 2)], [(2,), (2, 3)]])]}


def dstack(r):
    return {"tensors": [T(*s) for s in r.choice([[(), ()], [(2,), (1, 2)], [(2, 1, 2), (2, 1)], [(2,), (3,)]])]}


def close(r):
    dtype, shape = r.choice(FLOATS + ["i32", "bool"]), r.choice([(), (4,), (2, 3)])
    near = lambda r: 1 + r.choice([0, 1e-6, -1e-6, 1e-3, 1e-9])
    near = near if dtype in FLOATS and r.random() < 0.6 else None
    return {"input": T(*shape, dtype=dtype, values=near), "other": T(*shape, dtype=dtype, values=near),
            "rtol": r.choice([1e-5, 0.0, 0.1]), "atol": r.choice([1e-8, 0.0, 0.5, -1.0])}


def unit(r):
    return r.choice([0.0, 1.0, 0.5, -0.5, 0.1, 0.9]) if r.random() < 0.3 else r.random() * 2.1 - 1.05


def normalize(r):
    return {"input": T(*r.choice([(2, 3), (2, 3, 2), (3, 1)])), "p": r.choice([2.0, 1.0, 3.0]), "dim": r.choice([1, 0, -1]),
            "eps": r.choice([1e-12, 1e-3])}


ADDED = {"addmm": ("mat1", "mat2", "np", "nm", "mp"), "addmv": ("mat", "vec", "n", "nm", "m"), "addr": ("vec1", "vec2", "np", "n", "p"),
         "baddbmm": ("batch1", "batch2", "bnp", "bnm", "bmp"), "addbmm": ("batch1", "batch2", "np", "bnm", "bmp")}
def matrices(kind="any", **rest):
    """A parameter A; the rest are functions of the random numbers and its shape."""
    def recipe(r):
        lead, n = r.choice([(), (), (2,), (2, 3), (0,)]), r.choice([0, 1, 2, 3, 3, 4])
        m = n if kind != "any" or rest.get("square") else r.choice([n, 1, 2, 3, 5])
        given = {"A": M(*lead, m, n, kind=kind)}
        return given | {name: value(r, (*lead, m, n)) for name, value in rest.items() if name != "square"}
    return recipe


def right_side(r, shape):
    *lead, m, n = shape
    return r.choice([M(*lead, m, r.randint(0, 3)), M(*lead, m, 2), M(m, 2), M(4, *[1 for _ in lead], m, 1)])


def tolerance(r, shape):
    return r.choice([0.0, 0.0, 1.0, 0.3])


ORDERS = [None, "fro", "nuc", "inf", "-inf", "1", "-1", "2", "-2"]


def matrix_norm(r):
    shape = r.choice([(3, 3), (2, 4), (2, 3, 4), (2, 3, 2, 2), (3, 1)])
    dim = r.choice([None, [-2, -1], [0, 1], r.sample(range(len(shape)), 2)])
    return {"A": M(*shape), "ord": r.choice(ORDERS[1:]), "dim": dim, "keepdim": r.random() < 0.5}


def any_norm(r):
    given = matrix_norm(r)
    one = r.random() < 0.4
    dim = [r.randrange(len(given["A"].shape))] if one else r.choice([given["dim"], None])
    return given | {"ord": r.choice([None, "0", "3", "0.5", "inf", "-1"] if one else ORDERS), "dim": dim}


RECIPES = {
    "fft": signals(True), "ifft": signals(True), "rfft": signals(False), "irfft": signals("half"), "fftn": spectra(True),
    "ifftn": spectra(True), "rfftn": spectra(False), "stft": stft, "istft": istft,
    "fftfreq": lambda r: {"n": r.randint(1, 9), "d": r.choice([1.0, 0.5, 2.0]), "dtype": r.choice(["f32", "f64"])},
    "rfftfreq": lambda r: {"n": r.randint(1, 9), "d": r.choice([1.0, 0.5, 2.0]), "dtype": r.choice(["f32", "f64"])},
    "mm": product(("input", "mat2"), ("nm", "mp")), "bmm": product(("input", "mat2"), ("bnm", "bmp")),
    "mv": product(("input", "vec"), ("nm", "m")),
    **{name: product(("input", *of[:2]), of[2:]) for name, of in ADDED.items()},
    "tensordot": tensordot, "kron": small_pair("input", "other"), "cross": cross, "cdist": cdist, "movedim": movedim,
    "swapaxes": swapaxes, "unflatten": unflatten, "rot90": rot90, "trace": matrix, "diag": matrix, "vander": vander,
    "meshgrid": listing((), (2,), (3,)), "cartesian_prod": listing((2,), (3,), (1,)), "hstack": hstack, "vstack": vstack,
    "dstack": dstack, "block_diag": listing((), (2,), (2, 1), (1, 2)), "isclose": close, "normalize": normalize,
    "erfinv": lambda r: {"input": T(*r_shape(r), dtype=r.choice(FLOATS), values=unit)}, "broadcast_to": expand,
    "logit": lambda r: {"input": T(*r_shape(r), dtype=r.choice(FLOATS), values=unit), "eps": r.choice([None, 0.1, 0.0, 0.25])},
    "linalg_cholesky": matrices("positive"), "linalg_eigh": matrices("symmetric"), "linalg_qr": matrices(),
    "linalg_eigvalsh": matrices("symmetric"), "linalg_svd": matrices(), "linalg_svdvals": matrices(),
    "linalg_solve": matrices(square=True, B=right_side), "linalg_lstsq": matrices(B=right_side),
    "linalg_solve_triangular": matrices("triangular", B=right_side), "linalg_inv": matrices(square=True),
    "linalg_det": matrices(square=True), "linalg_slogdet": matrices(square=True),
    "linalg_pinv": matrices("positive", atol=tolerance, rtol=tolerance),
    "linalg_matrix_rank": matrices(atol=tolerance, rtol=tolerance, hermitian=lambda r, shape: False),
    "linalg_cond": matrices(p=lambda r, shape: r.choice(ORDERS)), "linalg_matrix_exp": matrices(square=True),
    "linalg_matrix_power": matrices(square=True, n=lambda r, shape: r.randint(-3, 5)),
    "linalg_matrix_norm": matrix_norm, "linalg_norm": any_norm,
    "gather": gather, "scatter": scatter, "scatter_add": scatter, "index_select": index_select, "index_add": index_add,
    "take": take, "embedding": embedding, "embedding_bag": embedding_bag, "index_put": index_put, "one_hot": one_hot, "index": indexed,
    "put": put, "index_fill": index_fill, "take_along_dim": take_along_dim, "scatter_reduce": scatter_reduce,
    "index_reduce": index_reduce, "masked_scatter": masked_scatter, "bincount": bincount, "histc": histc,
    "searchsorted": searchsorted, "bucketize": bucketize, "unique": repeating, "unique_consecutive": repeating,
    "mode": most_frequent, "quantile": quantile, "nanquantile": quantile, "kthvalue": kthvalue,
    "slice_assign": slice_assign,
    "matmul": matmul, "linear": linear, "dot": vectors("tensor"), "outer": vectors("vec2"), "einsum": einsum,
    "conv1d": conv(1), "conv2d": conv(2), "conv3d": conv(3), "conv_transpose1d": conv(1, True),
    "conv_transpose2d": conv(2, True), "max_pool1d": pool(1, True), "max_pool2d": pool(2, True),
    "max_pool3d": pool(3, True), "max_pool1d_with_indices": pool(1, True), "max_pool2d_with_indices": pool(2, True),
    "max_pool3d_with_indices": pool(3, True), "adaptive_max_pool1d_with_indices": adaptive(1),
    "adaptive_max_pool2d_with_indices": adaptive(2), "adaptive_max_pool3d_with_indices": adaptive(3),
    "adaptive_max_pool3d": adaptive(3), "adaptive_avg_pool3d": adaptive(3), "max_unpool1d": unpool(1),
    "max_unpool2d": unpool(2), "max_unpool3d": unpool(3), "lp_pool1d": lp_pool(1), "lp_pool2d": lp_pool(2),
    "lp_pool3d": lp_pool(3), "local_response_norm": response_norm, "conv_transpose3d": conv(3, True),
    "interpolate": interpolate, "im2col": im2col, "col2im": fold, "grid_sample": grid_sample, "affine_grid": affine_grid,
    "pixel_shuffle": shuffle("upscale_factor"), "pixel_unshuffle": shuffle("downscale_factor"),
    "channel_shuffle": shuffle("groups"), "avg_pool3d": averages(3),
    "avg_pool1d": pool(1, False), "avg_pool2d": averages(2), "adaptive_max_pool1d": adaptive(1),
    "adaptive_max_pool2d": adaptive(2), "adaptive_avg_pool1d": adaptive(1), "adaptive_avg_pool2d": adaptive(2),
    "interpolate_nearest": lambda r: resize(r, r.choice([1, 2, 3])), "interpolate_bilinear": resize,
    "layer_norm": normalized, "rms_norm": rms, "group_norm": lambda r: channels(r, r.choice([1, 2])),
    "instance_norm": channels, "batch_norm": batch_norm, "scaled_dot_product_attention": attention,
    "cross_entropy": lambda r: classes(r, True), "nll_loss": classes, "ctc_loss": ctc, "mse_loss": pair(),
    "l1_loss": pair(), "smooth_l1_loss": pair(), "huber_loss": pair(), "bce_loss": bce,
    "bce_with_logits_loss": bce_logits, "kl_div": pair(values=probability), "gaussian_nll_loss": gaussian,
    "poisson_nll_loss": poisson, "hinge_embedding_loss": signed, "margin_ranking_loss": ranking,
    "cosine_embedding_loss": cosine_embedding, "soft_margin_loss": signed, "multi_margin_loss": multi_margin,
    "multilabel_margin_loss": labels, "multilabel_soft_margin_loss": soft_labels,
    "triplet_margin_loss": triplet, "cosine_similarity": similarity, "pairwise_distance": distance, "expand": expand,
    "permute": permute, "pad": pad, "cat": joined, "stack": stacked, "repeat": repeats("repeats"),
    "tile": repeats("dims"), "roll": roll, "bernoulli": bernoulli, "multinomial": multinomial, "arange": arange, "zeros": created, "ones": created,
    "full": created, "rand": created, "randn": created, "randint": created,
}
