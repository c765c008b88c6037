#!/usr/bin/env python3
"""Writes further_keys.bin beside this file: MultiheadAttention with add_bias_kv and add_zero_attn, for
tests/test_transformer.c.

    .venv/torch/bin/python tests/reference/make_further_keys.py

The cases are those of make_recurrent.py: p.NAME, in.K, m.NAME, out.K, gi.K, gp.NAME.
"""
import pathlib

import torch
from torch import nn

import named_cases

HERE = pathlib.Path(__file__).parent
torch.manual_seed(11)


def attention(bias_kv, zero, masks=None, weights=False, causal=False, batch_first=False, tq=3, tk=4):
    module = nn.MultiheadAttention(4, 2, add_bias_kv=bias_kv, add_zero_attn=zero, batch_first=batch_first).double()
    with torch.no_grad():
        for p in module.parameters():
            p.add_(0.1 * torch.randn_like(p))
    shape = lambda t: (2, t, 4) if batch_first else (t, 2, 4)
    inputs = [torch.randn(shape(t), dtype=torch.float64, requires_grad=True) for t in (tq, tk, tk)]
    given = dict(masks or {})
    if causal:
        given["attn_mask"] = torch.triu(torch.ones(tq, tk, dtype=torch.bool), 1)
    y, w = module(*inputs, need_weights=weights, **given)
    out = [y, w] if weights else [y]
    sum((t * named_cases.weights(t, k)).sum() for k, t in enumerate(out)).backward()
    tensors = {f"p.{k}": v for k, v in module.state_dict().items()}
    tensors |= {f"in.{k}": v for k, v in enumerate(inputs)} | {f"m.{k}": v for k, v in (masks or {}).items()}
    tensors |= {f"out.{k}": v for k, v in enumerate(out)} | {f"gi.{k}": v.grad for k, v in enumerate(inputs)}
    tensors |= {f"gp.{k}": v.grad for k, v in module.named_parameters() if v.grad is not None}
    options = dict(width=4, heads=2, bias=1, batch_first=batch_first, weights=weights, causal=causal, bias_kv=bias_kv,
                   zero=zero, f32=0, train=1)
    text = " ".join(f"{k}={int(v)}" for k, v in options.items())
    return "attention", text, {k: v.detach().clone() for k, v in tensors.items()}


padding = torch.tensor([[False, False, True, True], [False, False, False, True]])
named_cases.write(HERE / "further_keys.bin", [
    attention(True, False), attention(False, True), attention(True, True, weights=True),
    attention(True, True, masks={"key_padding_mask": padding}, batch_first=True),
    attention(True, False, masks={"attn_mask": torch.randn(3, 4, dtype=torch.float64)}, weights=True),
    attention(False, True, causal=True, tk=3), attention(True, True, causal=True, tk=3, masks={"key_padding_mask": padding[:, 1:]}),
])
