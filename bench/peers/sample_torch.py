#!/usr/bin/env python3
"""Sampling from the gpt-small shape in PyTorch with a KV cache: prints tokens a second, best and median of the rounds.

    .venv/torch/bin/python bench/peers/sample_torch.py [--threads 2] [--tokens 200] [--rounds 5]

One sequence, keys and values written into preallocated caches, inference mode: what a careful PyTorch user would write.
build/bench_sample runs the same model in Cairn; scripts/bench_sample.py runs both in turn.
"""
import argparse
import os
import statistics
import time

parser = argparse.ArgumentParser(description="sampling with a KV cache in PyTorch")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--tokens", type=int, default=200)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--compile", action="store_true", help="the step passes through torch.compile")
args = parser.parse_args()
os.environ["OMP_NUM_THREADS"] = str(args.threads)  # read when torch is loaded

import torch
import torch.nn.functional as F
from torch import nn

torch.set_num_threads(args.threads)
torch.manual_seed(1)
VOCAB, CONTEXT, LAYERS, HEADS, WIDTH = 512, 256, 6, 6, 384


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.keys = torch.zeros(1, HEADS, CONTEXT, WIDTH // HEADS)
        self.values = torch.zeros_like(self.keys)

    def forward(self, x, at):  # x (1,T,C): the tokens at positions at ... at+T
        T = x.shape[1]
        q, k, v = self.qkv(self.ln1(x)).view(1, T, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        self.keys[:, :, at : at + T], self.values[:, :, at : at + T] = k, v
        y = F.scaled_dot_product_attention(q, self.keys[:, :, : at + T], self.values[:, :, : at + T], is_causal=T > 1)
        x = x + self.proj(y.transpose(1, 2).reshape(1, T, WIDTH))
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(VOCAB, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.ln, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCAB, bias=False)

    def forward(self, tokens, at):
        x = self.tok(tokens) + self.pos.weight[at : at + tokens.shape[1]]
        for block in self.blocks:
            x = block(x, at)
        return self.head(self.ln(x[:, -1]))


@torch.inference_mode()
def sample(model, n, temperature=1.0, top_k=40):
    tokens, at = torch.tensor([[1]]), 0
    for _ in range(n):
        logits = model(tokens, at)[0] / temperature
        at += tokens.shape[1]
        best, index = logits.topk(top_k)
        tokens = index[torch.multinomial(F.softmax(best, -1), 1)].view(1, 1)
        int(tokens)  # as a program that prints it would


model = GPT().eval()
if args.compile:
    model = torch.compile(model, dynamic=True)
sample(model, 20)
rates = []
for _ in range(args.rounds):
    start = time.perf_counter()
    sample(model, args.tokens)
    rates.append(args.tokens / (time.perf_counter() - start))
print(f"torch{'-compiled' if args.compile else ''} {max(rates):.0f} {statistics.median(rates):.0f}")
