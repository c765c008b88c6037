"""Cairn's operators through its Python package: the same interface as library.Library.

The calls take turns: arguments by position, by name, and as a method of the first operand.
"""

import sys

import torch

import library
from library import NAME_OF, NAMES, ROOT, Refused

SHORT = {"bool": "bool", "u8": "uint8", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "f16": "float16",
         "bf16": "bfloat16", "f32": "float32", "f64": "float64"}


class Package:
    def __init__(self, build):
        sys.path.insert(0, str(ROOT / "python"))
        import cairn
        self.cairn, self.ctx, self.turn = cairn, None, 0
        self.signatures = library.listed(build)
        self.headers = library.check_signatures.Headers()

    # ---- what a context in C has ----

    def scope_begin(self, ctx):
        return None

    def scope_end(self, ctx, scope):
        pass

    def failed(self, ctx):
        return False

    def check(self, x):
        return x

    def asked(*args, **named):
        f, *args = args[1:]  # a parameter may be called self
        try:
            return f(*args, **named)
        except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError, OverflowError) as error:
            raise Refused(str(error) or type(error).__name__) from None

    # ---- tensors ----

    def dtype(self, name):
        return getattr(self.cairn, SHORT[name])

    def tensor(self, data):
        data = data.detach().contiguous()
        if data.dtype == torch.bfloat16:
            return self.cairn.from_dlpack(data).clone()
        return self.cairn.tensor(data.numpy())

    def scalar(self, ctx, dtype, value):
        return self.cairn.tensor(value, dtype=self.dtype(NAMES[dtype]))

    def value(self, x):
        x = self.asked(lambda: x.detach().contiguous().eval())
        if x.dtype is self.cairn.bfloat16:
            return torch.from_dlpack(x).clone()
        return torch.from_numpy(x.numpy().copy())

    def type(self, x):
        return NAMES.index(NAME_OF[getattr(torch, str(x.dtype).split(".")[1])])

    def set_requires_grad(self, x, on):
        return x.requires_grad_(on)

    def permute(self, x, dims):
        return x.permute(*dims.v[:dims.n])

    def slice(self, x, dim, start, end, step):
        return x[(slice(None),) * dim + (slice(start, end, step),)]

    def expand(self, x, dims):
        return x.expand(*dims.v[:dims.n])

    def mul(self, x, y):
        return x * y

    def add(self, x, y):
        return x + y

    def sum(self, x, dims, keepdim):
        return x.sum()

    # ---- calls ----

    def forms(self, name):
        own = [form for form in ("", "_s", "_", "_s_") if "cn_" + name + form in self.headers.functions]
        return [form for form in own if not form or name + form not in self.signatures]

    def call(self, name, form, values):
        signature = self.signatures[name]
        given = {p["name"]: (self.dtype(values[p["name"]]) if p["kind"] == "dtype" else values[p["name"]])
                 for p in signature["parameters"]}
        if "_s" in form:  # in C a number is a double; one without a fraction stands for an int
            number = list(given)[1]
            v = float(given[number])
            given[number] = int(v) if v.is_integer() and abs(v) < 2 ** 62 else given[number]
        by_name = {p["name"] for p in signature["parameters"] if p["by_name"]}
        self.turn += 1
        in_order = [v for k, v in given.items() if k not in by_name]
        rest = {k: v for k, v in given.items() if k in by_name}
        first = in_order[0] if in_order else None
        is_method = isinstance(first, self.cairn.Tensor) and signature["parameters"][0]["kind"] == "Tensor"
        if form.endswith("_"):
            self.asked(getattr(first, name + "_"), *in_order[1:], **rest)
            return [first]
        f = getattr(self.cairn._C, name)
        if self.turn % 3 == 0 and is_method:
            f = getattr(self.cairn._C.Tensor, name)
            f = f if type(f).__name__ == "method_descriptor" else getattr(self.cairn._C, name)
            got = self.asked(f, first, *in_order[1:], **rest)
        elif self.turn % 3 == 1:
            got = self.asked(f, **given)
        else:
            got = self.asked(f, *in_order, **rest)
        return [got] if isinstance(got, self.cairn.Tensor) else list(got)

    def gradients(self, outputs, seeds, leaves, create_graph=False):
        return list(self.asked(self.cairn.autograd.grad, outputs, leaves, seeds, retain_graph=True,
                               create_graph=create_graph, allow_unused=True))
