"""Writes sparse.txt: what PyTorch's SparseAdam and SGD give for an embedding with sparse gradients.

    python tests/reference/make_sparse.py

The problem is the same in tests/test_sparse.c: element i of the weight (9, 4) starts as cos(i/2). Step t looks up the
rows (t + 3 j) % 9 and (t + 3 j²) % 7 for j < 5; element i of what is found is multiplied by sin(0.7 t + 0.3 i) and
summed. A line: name, type, step, then all elements of the weight.
"""

import math
from pathlib import Path

import torch

ROWS, WIDTH, STEPS, SHOWN = 9, 4, 20, (1, 2, 3, 20)
O = torch.optim
RULES = {
    "sparse_adam": lambda p: O.SparseAdam(p, lr=0.1),
    "sparse_adam_betas": lambda p: O.SparseAdam(p, lr=0.05, betas=(0.5, 0.9), eps=1e-3),
    "sparse_adam_maximize": lambda p: O.SparseAdam(p, lr=0.1, maximize=True),
    "sgd": lambda p: O.SGD(p, lr=0.1),
}


def numbers(name, dtype):
    table = torch.nn.Embedding(ROWS, WIDTH, sparse=True, dtype=dtype)
    with torch.no_grad():
        table.weight.copy_(torch.tensor([math.cos(i / 2) for i in range(ROWS * WIDTH)]).view(ROWS, WIDTH))
        if dtype == torch.float64:
            start = torch.tensor([math.cos(i / 2) for i in range(ROWS * WIDTH)], dtype=dtype)
            table.weight.copy_(start.view(ROWS, WIDTH))
    optimizer = RULES[name](list(table.parameters()))
    for t in range(1, STEPS + 1):
        index = torch.tensor([(t + 3 * j) % 9 for j in range(5)] + [(t + 3 * j * j) % 7 for j in range(5)])
        factor = torch.tensor([math.sin(0.7 * t + 0.3 * i) for i in range(len(index) * WIDTH)], dtype=torch.float64)
        optimizer.zero_grad()
        (table(index) * factor.to(dtype).view(-1, WIDTH)).sum().backward()
        optimizer.step()
        if t in SHOWN:
            yield t, table.weight.detach().flatten().tolist()


with open(Path(__file__).resolve().parent / "sparse.txt", "w") as out:
    for name in RULES:
        for kind, dtype in (("f32", torch.float32), ("f64", torch.float64)):
            for t, values in numbers(name, dtype):
                digits = ".9g" if kind == "f32" else ".17g"
                print(name, kind, t, *(format(v, digits) for v in values), file=out)
