"""Runs a script with weights and random numbers that do not depend on the framework: for scripts.py.

    same_draws.py torch|cairn SCRIPT [ARGUMENT ...]
"""

import importlib
import math
import runpy
import sys

import numpy


class Draws:
    """Random numbers of NumPy's in place of a framework's own."""

    def __init__(self, torch):
        self.torch, self.random = torch, numpy.random.RandomState(0)
        self.seen = {}  # modules and parameters by their id; kept, so that no other object gets it

    def tensor(self, values, dtype=None, requires_grad=False):
        made = self.torch.from_numpy(numpy.ascontiguousarray(values, dtype=numpy.float32))
        made = made if dtype is None else made.to(dtype)
        return made.requires_grad_() if requires_grad else made

    def replace_functions(self):
        def shape(size):
            return tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size

        def normal(*size, dtype=None, requires_grad=False, **_):
            return self.tensor(self.random.standard_normal(shape(size)), dtype, requires_grad)

        def uniform(*size, dtype=None, requires_grad=False, **_):
            return self.tensor(self.random.random_sample(shape(size)), dtype, requires_grad)

        def permutation(n, **_):
            return self.torch.from_numpy(self.random.permutation(n))

        torch = self.torch
        torch.randn, torch.rand, torch.randperm = normal, uniform, permutation
        torch.randn_like = lambda x, **_: normal(*x.shape, dtype=x.dtype)
        torch.rand_like = lambda x, **_: uniform(*x.shape, dtype=x.dtype)

    def replace_filling(self):
        """x.uniform_() and x.normal_()"""
        def uniform_(x, low=0, high=1, **_):
            return x.copy_(self.tensor(low + (high - low) * self.random.random_sample(tuple(x.shape)), x.dtype))

        def normal_(x, mean=0, std=1, **_):
            return x.copy_(self.tensor(mean + std * self.random.standard_normal(tuple(x.shape)), x.dtype))

        self.torch.Tensor.uniform_, self.torch.Tensor.normal_ = uniform_, normal_

    def replace_dropout(self):
        nn = self.torch.nn

        def same(x, *_, **__):
            return x

        nn.functional.dropout = nn.functional.dropout2d = same
        for name in ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout"):
            getattr(nn, name).forward = lambda module, x: x

    def replace_order(self):
        sampler = self.torch.utils.data.RandomSampler
        sampler.__iter__ = lambda s: iter(self.random.permutation(len(s.data_source)).tolist())

    def replace_weights(self):
        """Draws the parameters of a module again before its first call."""
        torch, call = self.torch, self.torch.nn.Module.__call__

        def drawn_call(module, *args, **kwargs):
            if id(module) not in self.seen:
                self.draw(module)
            return call(module, *args, **kwargs)

        torch.nn.Module.__call__ = drawn_call

    def leave_loaded(self):
        """A module from a file keeps its values."""
        load = self.torch.load

        def loaded(*args, **kwargs):
            made = load(*args, **kwargs)
            if isinstance(made, self.torch.nn.Module):
                self.seen.update({id(part): part for part in [*made.modules(), *made.parameters()]})
            return made

        self.torch.load = loaded

    def draw(self, module):
        for part in module.modules():
            self.seen[id(part)] = part
            if isinstance(getattr(part, "dropout", None), float):
                part.dropout = 0.0
        with self.torch.no_grad():
            for name, parameter in module.named_parameters():
                if id(parameter) in self.seen:
                    continue
                self.seen[id(parameter)] = parameter
                shape = tuple(parameter.shape)
                bound = 1 / math.sqrt(max(1, math.prod(shape[1:]))) if len(shape) > 1 else 0.1
                values = self.random.uniform(-bound, bound, shape)
                if len(shape) == 1 and name.endswith(("weight", "gain")):
                    values += 1  # of a norm
                parameter.copy_(self.tensor(values).to(parameter.dtype))


def main():
    framework, script, *arguments = sys.argv[1:]
    sys.path[0] = "."  # not the folder of this file, where cairn.py is another module
    torch = importlib.import_module(framework)
    for part in ("nn", "nn.functional", "utils.data"):
        importlib.import_module(f"{framework}.{part}")
    draws = Draws(torch)
    draws.replace_functions()
    draws.replace_dropout()
    draws.replace_order()
    draws.replace_weights()
    draws.leave_loaded()
    sys.argv = [script, *arguments]
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
