#!/usr/bin/env python3
"""The reference workloads in PyTorch: prints `name median_ms peak_rss_mb`, a line each, as build/bench_workloads does.

    .venv/torch/bin/python bench/peers/peer_torch.py [--threads 2] [--compile] [--extra] [--only gpt-mini,mlp]

Shapes, dtypes and the optimizers are those of bench/workloads/; change them there and in both peers, or not at all.
Each workload runs in a process of its own, so that its peak memory is its own.

With --cairn the same text runs on Cairn's Python package in place of PyTorch: what a step costs from Python. The package
must be there: installed, or PYTHONPATH=python after python/build_inplace.sh.
"""
import argparse
import os
import resource
import statistics
import sys
import time

parser = argparse.ArgumentParser(description="the reference workloads in PyTorch")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--compile", action="store_true", help="models and functions pass through torch.compile")
parser.add_argument("--cairn", action="store_true", help="Cairn's Python package in place of PyTorch")
parser.add_argument("--extra", action="store_true", help="the extra workloads instead of the reference ones")
parser.add_argument("--only", default="", help="names from either list, separated by commas")
parser.add_argument("--seconds", type=float, default=4.0, help="for each workload")
parser.add_argument("--turns", action="store_true", help="say `NAME ready`, then time it for every line that comes in")
args = parser.parse_args()
os.environ["OMP_NUM_THREADS"] = str(args.threads)  # read when torch is loaded

if args.cairn:
    import cairn as torch
    import cairn.nn.functional as F
    from cairn import nn
else:
    import torch
    import torch.nn.functional as F
    from torch import nn

torch.set_num_threads(args.threads)
torch.manual_seed(1)


def compiled(f):
    return torch.compile(f) if args.compile else f


def cross_entropy(logits, labels):
    """Logits are (..., classes), labels of the shape before that."""
    return F.cross_entropy(logits.flatten(0, -2), labels.flatten())


def training(model, optimizer, x, y, loss=cross_entropy):
    """A step: loss, gradients, update."""
    run = compiled(model)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss(run(x), y).backward()
        optimizer.step()

    return step


def mlp(batch, *width, dtype=torch.float32):
    parts = [nn.Linear(width[0], width[1])]
    for a, b in zip(width[1:], width[2:]):
        parts += [nn.ReLU(), nn.Linear(a, b)]
    model = nn.Sequential(*parts).to(dtype)
    return training(model, torch.optim.Adam(model.parameters(), lr=1e-3),
                    torch.randn(batch, width[0], dtype=dtype), torch.randint(width[-1], (batch,)))


def cnn(batch):
    parts = []
    for a, b in ((1, 32), (32, 64)):
        parts += [nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2)]
    model = nn.Sequential(*parts, nn.Flatten(), nn.Linear(64 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10))
    return training(model, torch.optim.Adam(model.parameters(), lr=1e-3),
                    torch.randn(batch, 1, 28, 28), torch.randint(10, (batch,)))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.ln2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):  # (B,T,C) -> (B,T,C)
        B, T, C = x.shape
        h = self.qkv(self.ln1(x)).view(B, T, 3, self.heads, C // self.heads)
        q, k, v = h.permute(2, 0, 3, 1, 4)  # (3,B,H,T,D)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(B, T, C))
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, vocab, context, layers, heads, width):
        super().__init__()
        self.tok = nn.Embedding(vocab, width)
        self.pos = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.ln = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab, bias=False)

    def forward(self, tokens):  # (B,T) -> (B,T,vocab)
        x = self.tok(tokens) + self.pos(torch.arange(tokens.shape[1]))
        return self.head(self.ln(self.blocks(x)))


def gpt(vocab, context, layers, heads, width, batch):
    model = GPT(vocab, context, layers, heads, width)
    return training(model, torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01),
                    torch.randint(vocab, (batch, context)), torch.randint(vocab, (batch, context)))


def chain(n):
    def f(a, b, c):
        a = a.abs()
        return (torch.tanh(a * b + c) * torch.sigmoid(a - b) + a * a).sqrt() / c - b

    run, a, b, c = compiled(f), torch.randn(n), torch.randn(n), torch.rand(n) + 0.5
    return lambda: run(a, b, c)


def matmul(n):
    a, b = torch.randn(n, n), torch.randn(n, n)
    return lambda: a @ b  # one call of the library: there is nothing for torch.compile to do


def conv_norm(a, b, size, stride):
    return nn.Sequential(nn.Conv2d(a, b, size, stride, size // 2, bias=False), nn.BatchNorm2d(b))


class Residual(nn.Module):
    """With stride 2: half the height and width, twice the channels."""

    def __init__(self, channels, stride):
        super().__init__()
        self.first = conv_norm(channels, stride * channels, 3, stride)
        self.second = conv_norm(stride * channels, stride * channels, 3, 1)
        self.shortcut = conv_norm(channels, stride * channels, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x):
        return F.relu(self.second(F.relu(self.first(x))) + self.shortcut(x))


def resnet(channels, strides, pool):
    parts, batch, side = [conv_norm(3, channels, 3, 1), nn.ReLU()], 32, 32
    for stride in strides:
        parts.append(Residual(channels, stride))
        channels, side = channels * stride, side // stride
    model = nn.Sequential(*parts, nn.AvgPool2d(pool), nn.Flatten(), nn.Linear(channels * (side // pool) ** 2, 10))
    return training(model, torch.optim.Adam(model.parameters(), lr=1e-3),
                    torch.randn(batch, 3, 32, 32), torch.randint(10, (batch,)))


def patches(sizes, channels):
    parts = []
    for size, a, b in zip(sizes, channels, channels[1:]):
        parts += [nn.Conv2d(a, b, size, size), nn.ReLU()]
    model = nn.Sequential(*parts[:-1])
    return training(model, torch.optim.SGD(model.parameters(), lr=0.1), torch.randn(4, channels[0], 224, 224), None,
                    lambda x, y: x.square().mean())


def autoencoder(batch):
    model = nn.Sequential(nn.Conv2d(1, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(),
                          nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(32, 1, 4, 2, 1), nn.Sigmoid())
    x = torch.rand(batch, 1, 28, 28)
    return training(model, torch.optim.Adam(model.parameters(), lr=1e-3), x, x, F.mse_loss)


class LSTM(nn.Module):
    def __init__(self, layers, width, hidden):
        super().__init__()
        self.lstm = nn.LSTM(width, hidden, layers)
        self.head = nn.Linear(hidden, 10)

    def forward(self, x):  # (T,B,width) -> (B,10)
        return self.head(self.lstm(x)[0][-1])


def lstm(layers, steps, batch, width, hidden):
    model = LSTM(layers, width, hidden)
    return training(model, torch.optim.Adam(model.parameters(), lr=1e-3),
                    torch.randn(steps, batch, width), torch.randint(10, (batch,)))


class EncoderBlock(Block):
    def forward(self, x):  # (B,T,C) -> (B,T,C)
        B, T, C = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(B, T, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v)
        x = x + F.dropout(self.proj(y.transpose(1, 2).reshape(B, T, C)), 0.1)
        return x + self.down(F.dropout(F.gelu(self.up(self.ln2(x))), 0.1))


class Encoder(nn.Module):
    def __init__(self, context, heads, width):
        super().__init__()
        self.pos = nn.Parameter(torch.randn(context, width))
        self.blocks = nn.Sequential(*(EncoderBlock(width, heads) for _ in range(2)))
        self.ln = nn.LayerNorm(width)
        self.head = nn.Linear(width, 10)

    def forward(self, x):  # (B,T,C) -> (B,10)
        return self.head(self.ln(self.blocks(x + self.pos)).mean(1))


def encoder(context, heads, width, batch):
    model = Encoder(context, heads, width)
    return training(model, torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01),
                    torch.randn(batch, context, width), torch.randint(10, (batch,)))


def softmax_rows(rows, width):
    run, x = compiled(lambda x: F.log_softmax(x, 1).sum(0)), torch.randn(rows, width)
    return lambda: run(x)


def layer_norm_backward(rows, width):
    model, x, gradient = nn.LayerNorm(width), torch.randn(rows, width, requires_grad=True), torch.randn(rows, width)
    run, inputs = compiled(model), [x, *model.parameters()]

    def step():
        y = run(x)
        return y, torch.autograd.grad(y, inputs, gradient)

    return step


def squares(x, axes):
    return (x - x.mean(axes, keepdim=True)).square().sum(axes)


def blocks(f):
    run, a, b = compiled(f), torch.randn(24, 40, 48, 64), torch.randn(24, 40, 48, 64)
    return lambda: run(a, b)


def table(rows, width, batch):
    model = nn.Embedding(rows, width)
    return training(model, torch.optim.SGD(model.parameters(), lr=0.1),
                    torch.randint(rows, (batch,)), torch.randn(batch, width), F.mse_loss)


REFERENCE = {
    "mlp-tiny": lambda: mlp(16, 2, 16, 16, 2),
    "mlp": lambda: mlp(64, 784, 128, 10),
    "mlp-wide": lambda: mlp(128, 784, 1024, 1024, 10),
    "cnn": lambda: cnn(64),
    "gpt-mini": lambda: gpt(65, 64, 4, 4, 128, 12),
    "gpt-small": lambda: gpt(512, 256, 6, 6, 384, 4),
    "chain-16m": lambda: chain(1 << 24),
    "matmul-256": lambda: matmul(256),
    "matmul-1024": lambda: matmul(1024),
    "matmul-2048": lambda: matmul(2048),
}

EXTRA = {
    "mlp-odd": lambda: mlp(37, 777, 301, 103, 11),
    "mlp-f64": lambda: mlp(64, 784, 256, 10, dtype=torch.float64),
    "cnn-strided": lambda: resnet(32, (2, 2), 4),
    "resnet": lambda: resnet(16, (1, 1, 2, 1, 2, 1), 8),
    "patches": lambda: patches((16,), (3, 192)),
    "downsample": lambda: patches((4, 2, 2), (3, 48, 96, 192)),
    "autoencoder": lambda: autoencoder(32),
    "lstm": lambda: lstm(1, 32, 32, 64, 128),
    "lstm-2x200": lambda: lstm(2, 50, 8, 100, 200),
    "lstm-odd": lambda: lstm(2, 40, 5, 77, 77),
    "encoder": lambda: encoder(100, 3, 192, 8),
    "softmax-rows": lambda: softmax_rows(4096, 1000),
    "layernorm-bwd": lambda: layer_norm_backward(4096, 768),
    "reduce-permuted": lambda: blocks(lambda a, b: squares(a.permute(3, 1, 0, 2)[::2], (0, 2))),
    "reduce-sliced": lambda: blocks(lambda a, b: squares(a.permute(2, 0, 3, 1)[:, :, 1:, ::2], (1, 3))),
    "permuted-add": lambda: blocks(lambda a, b: (a.permute(0, 2, 3, 1) + b.permute(0, 2, 3, 1)).contiguous()),
    "gather-embed": lambda: table(50000, 128, 8192),
    "gpt2": lambda: gpt(50257, 512, 12, 12, 768, 1),
}

WORKLOADS = REFERENCE | EXTRA
CHOSEN = args.only.split(",") if args.only else EXTRA if args.extra else REFERENCE


def seconds_of(step):
    start = time.perf_counter()
    result = step()
    if args.cairn and result is not None:
        result.eval()
    return time.perf_counter() - start


def median_of(step, seconds, least):
    """The median of the times of steps, in ms: for so many seconds, but `least` of them at the least."""
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < least:
        times.append(seconds_of(step))
    return statistics.median(times) * 1e3


def measure(name):
    """As in bench/workloads/run.c: a slow step is repeated less often; turns begin with steps that are not timed."""
    step = WORKLOADS[name]()
    step()
    slow = seconds_of(step) > 1
    if not slow:
        step()

    def print_line(ms):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{name} {ms:.4f} {peak:.0f}", flush=True)

    if not args.turns:
        print_line(median_of(step, args.seconds, 3 if slow else 5))
        return
    print(f"{name} ready", flush=True)
    for _ in sys.stdin:
        if not slow:
            median_of(step, args.seconds / 5, 1)
        print_line(median_of(step, args.seconds, 1))


bad = 0
for name in WORKLOADS:
    if name not in CHOSEN:
        continue
    child = os.fork()
    if child == 0:
        try:
            measure(name)
        except Exception as error:
            print(f"{name} FAILED {type(error).__name__}", flush=True)
            print(error, file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    bad |= os.waitpid(child, 0)[1] != 0
sys.exit(bad)
