#!/usr/bin/env python3
"""Writes training.bin beside this file: 100 steps of training in PyTorch, in f32, for tests/test_training.c.

    .venv/torch/bin/python tests/reference/make_training.py

A case holds p.NAME (the state at the start), g.NAME (gradients of the first step), f.NAME (the state at the end) and losses.
Batches come from formulas, which the test has too: five of them in turn. Add a model to MODELS and to the table in the test.
"""
import pathlib

import torch
import torch.nn.functional as F
from torch import nn

import named_cases

STEPS, BATCHES = 100, 5
torch.set_num_threads(1)


def wave(shape, k):
    """Numbers of batch k."""
    n = torch.Size(shape).numel()
    i = torch.arange(n, dtype=torch.float64)
    return torch.sin(i * i * 0.013 + k).reshape(shape).float()


def labels(n, classes, k):
    i = torch.arange(n)
    return (i * 7 + k * 3) % classes


def tokens(batch, length, vocab, k):
    i = torch.arange(batch * length)
    return ((i * i * 3 + i * k + k) % vocab).reshape(batch, length)


class LSTMClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 12)
        self.head = nn.Linear(12, 5)

    def forward(self, x):  # (T,B,6) -> (B,5)
        return self.head(self.lstm(x)[0][-1])


class Product(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.weight = nn.Parameter(0.2 * torch.randn(i, o))
        self.bias = nn.Parameter(torch.zeros(o))

    def forward(self, x):
        return x @ self.weight + self.bias


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.c_attn, self.c_proj = heads, Product(width, 3 * width), Product(width, width)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.c_attn(x).view(B, T, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-2, -1)) / (C // self.heads) ** 0.5
        scores = scores.masked_fill(torch.triu(torch.ones(T, T, dtype=torch.bool), 1), float("-inf"))
        return self.c_proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, C))


class Network(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc, self.c_proj = Product(width, 4 * width), Product(4 * width, width)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(width), Attention(width, heads)
        self.ln_2, self.mlp = nn.LayerNorm(width), Network(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, vocab, context, layers, heads, width):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.h = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)

    def forward(self, x):  # (B,T) -> (B,T,vocab)
        h = self.wte(x) + self.wpe(torch.arange(x.shape[1]))
        for block in self.h:
            h = block(h)
        return self.ln_f(h) @ self.wte.weight.T


def mlp():
    return nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 5))


def cnn():
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(4, 6, 3, bias=False), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(24, 5))


def sequence(batch, k):
    t = tokens(batch, 9, 11, k)
    return t[:, :-1], t[:, 1:]


# name: the model, and its batch number k
MODELS = {
    "mlp": (mlp, lambda k: (wave((12, 10), k), labels(12, 5, k))),
    "lstm": (LSTMClassifier, lambda k: (wave((7, 8, 6), k), labels(8, 5, k))),
    "cnn": (cnn, lambda k: (wave((6, 1, 8, 8), k), labels(6, 5, k))),
    "gpt": (lambda: GPT(11, 8, 2, 2, 8), lambda k: sequence(4, k)),
}


def train(name, adamw, lr, weight_decay, momentum=0.0, nesterov=False):
    torch.manual_seed(11)
    model, batch = MODELS[name][0](), MODELS[name][1]
    if adamw:
        optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=weight_decay)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum, weight_decay=weight_decay, nesterov=nesterov)
    tensors = {f"p.{k}": v.clone() for k, v in model.state_dict().items()}
    losses = []
    for step in range(STEPS):
        x, y = batch(step % BATCHES)
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, -2), y.flatten())
        loss.backward()
        if step == 0:
            tensors |= {f"g.{k}": v.grad.clone() for k, v in model.named_parameters()}
        optimizer.step()
        losses.append(loss.item())
    tensors |= {f"f.{k}": v for k, v in model.state_dict().items()}
    tensors["losses"] = torch.tensor(losses, dtype=torch.float64)
    words = dict(adamw=int(adamw), lr=lr, weight_decay=weight_decay, momentum=momentum, nesterov=int(nesterov))
    print(f"{name:5} adamw {int(adamw)}: {losses[0]:.4f} -> {losses[-1]:.4f}")
    return name, " ".join(f"{k}={v}" for k, v in words.items()), tensors


named_cases.write(pathlib.Path(__file__).parent / "training.bin", [
    train("mlp", True, 1e-2, 0.01),
    train("mlp", False, 5e-2, 1e-3, momentum=0.9, nesterov=True),
    train("lstm", True, 1e-2, 0.01),
    train("lstm", False, 1e-1, 0.0, momentum=0.9),
    train("cnn", True, 3e-3, 0.01),
    train("cnn", False, 1e-2, 1e-3, momentum=0.9),
    train("gpt", True, 3e-3, 0.01),
    train("gpt", False, 3e-2, 0.0, momentum=0.9),
])
