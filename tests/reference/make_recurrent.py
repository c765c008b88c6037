#!/usr/bin/env python3
"""Writes recurrent.bin and transformer.bin beside this file: PyTorch's results and gradients for tests/test_recurrent.c and
tests/test_transformer.c.

    .venv/torch/bin/python tests/reference/make_recurrent.py

A case holds p.NAME (state_dict), in.K, m.NAME (masks), out.K, and gradients of the sum of out.K * weights(K): gi.K, gp.NAME.
"""
import pathlib
import warnings

import torch
from torch import nn
from torch.nn.utils import rnn

import named_cases

warnings.filterwarnings("ignore")
torch.manual_seed(7)
HERE = pathlib.Path(__file__).parent


def case(name, options, module, call, inputs, masks=None, dtype=torch.float64, train=True, gradients=True):
    module = module.to(dtype).train(train)
    with torch.no_grad():
        for p in module.parameters():  # biases and norms too: nothing stays at zero or one
            p.add_(0.1 * torch.randn_like(p))
    inputs = [t.to(dtype).requires_grad_() for t in inputs]
    masks = {k: m.to(dtype) if m.is_floating_point() else m for k, m in (masks or {}).items()}
    out = call(module, inputs, masks)
    tensors = {f"p.{k}": v for k, v in module.state_dict().items()}
    tensors |= {f"in.{k}": v for k, v in enumerate(inputs)}
    tensors |= {f"m.{k}": v for k, v in masks.items()}
    tensors |= {f"out.{k}": v for k, v in enumerate(out)}
    if gradients:
        sum((t * named_cases.weights(t, k)).sum() for k, t in enumerate(out)).backward()
        tensors |= {f"gi.{k}": v.grad for k, v in enumerate(inputs) if v.grad is not None}
        tensors |= {f"gp.{k}": v.grad for k, v in module.named_parameters() if v.grad is not None}
    options = " ".join(f"{k}={int(v) if isinstance(v, bool) else v}" for k, v in options.items())
    options += f" f32={int(dtype == torch.float32)} train={int(train)}"
    return name, options, {k: v.clone() for k, v in tensors.items()}


# ---- recurrent ----

KINDS = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
CELLS = {"rnn_cell": nn.RNNCell, "lstm_cell": nn.LSTMCell, "gru_cell": nn.GRUCell}


def sequence(kind, steps=4, batch=2, size=3, hidden=4, layers=1, bidirectional=False, batch_first=False, bias=True,
             relu=False, dropout=0.0, states=False, unbatched=False, proj=0, lengths=None, **more):
    keywords = {"nonlinearity": "relu"} if relu else {"proj_size": proj} if proj else {}
    module = KINDS[kind](size, hidden, layers, bias=bias, batch_first=batch_first, dropout=dropout,
                         bidirectional=bidirectional, **keywords)
    n = layers * (2 if bidirectional else 1)
    x = (steps, size) if unbatched else (batch, steps, size) if batch_first else (steps, batch, size)
    shape = lambda width: (n, width) if unbatched else (n, batch, width)
    widths = [proj or hidden, hidden] if kind == "lstm" else [hidden]
    inputs = [torch.randn(x)] + [torch.randn(shape(width)) for width in widths * states]
    packing = dict(batch_first=batch_first)

    def call(m, t, masks):
        given = () if len(t) == 1 else ((tuple(t[1:]),) if kind == "lstm" else (t[1],))
        if not lengths:
            y, last = m(t[0], *given)
        else:
            packed = rnn.pack_padded_sequence(t[0], masks["lengths"], enforce_sorted=False, **packing)
            y, last = m(packed, *given)
            y, _ = rnn.pad_packed_sequence(y, total_length=steps, **packing)
        return [y, *last] if kind == "lstm" else [y, last]

    options = dict(size=size, hidden=hidden, layers=layers, bidirectional=bidirectional, batch_first=batch_first,
                   bias=bias, relu=relu, dropout=dropout, proj=proj)
    return case(kind, options, module, call, inputs, lengths and {"lengths": torch.tensor(lengths)}, **more)


def cell(kind, batch=3, size=3, hidden=4, bias=True, relu=False, states=True, **more):
    keywords = {"nonlinearity": "relu"} if relu else {}
    module = CELLS[kind](size, hidden, bias=bias, **keywords)
    row = lambda width: torch.randn((batch, width) if batch else (width,))
    inputs = [row(size)] + [row(hidden) for _ in range((2 if kind == "lstm_cell" else 1) * states)]

    def call(m, t, masks):
        if kind == "lstm_cell":
            return list(m(t[0], tuple(t[1:]) if len(t) > 1 else None))
        return [m(t[0], t[1] if len(t) > 1 else None)]

    return case(kind, dict(size=size, hidden=hidden, bias=bias, relu=relu), module, call, inputs, **more)


def recurrent_cases():
    f32 = torch.float32
    for kind in KINDS:
        yield sequence(kind)
        yield sequence(kind, states=True)
        yield sequence(kind, layers=2, bidirectional=True, states=True)
        yield sequence(kind, layers=3, batch_first=True, hidden=2)
        yield sequence(kind, bias=False, bidirectional=True, batch_first=True, states=True)
        yield sequence(kind, steps=1, states=True)
        yield sequence(kind, batch=1, steps=3, bidirectional=True)
        yield sequence(kind, unbatched=True)
        yield sequence(kind, unbatched=True, states=True, bidirectional=True, batch_first=True)
        yield sequence(kind, layers=2, dropout=1.0)
        yield sequence(kind, layers=2, dropout=0.4, train=False)
        yield sequence(kind, steps=7, batch=19, hidden=5, size=2, dtype=f32)
    yield sequence("rnn", relu=True, states=True)
    yield sequence("rnn", relu=True, layers=2, bidirectional=True)
    for kind in CELLS:
        yield cell(kind)
        yield cell(kind, states=False)
        yield cell(kind, batch=0)
        yield cell(kind, bias=False)
        yield cell(kind, dtype=f32)
    yield cell("rnn_cell", relu=True)


def length_and_projection_cases():
    f32 = torch.float32
    for kind in KINDS:
        yield sequence(kind, lengths=[2, 4, 1], batch=3)
        yield sequence(kind, lengths=[4, 1, 3], batch=3, states=True, bidirectional=True)
        yield sequence(kind, lengths=[3, 2], states=True, layers=2, bidirectional=True, batch_first=True)
        yield sequence(kind, lengths=[1, 5, 2, 3, 5], steps=6, batch=5, layers=2, dropout=1.0)
        yield sequence(kind, lengths=[1] * 3, batch=3, steps=1, states=True, bidirectional=True)
        yield sequence(kind, lengths=[7, 1, 3, 6, 2], steps=7, batch=5, hidden=5, size=2, states=True,
                       bidirectional=True, dtype=f32)
    yield sequence("lstm", proj=2)
    yield sequence("lstm", proj=3, states=True, hidden=5)
    yield sequence("lstm", proj=2, states=True, layers=2, bidirectional=True)
    yield sequence("lstm", proj=1, states=True, layers=3, batch_first=True, bias=False)
    yield sequence("lstm", proj=2, states=True, unbatched=True, bidirectional=True)
    yield sequence("lstm", proj=2, steps=1, states=True, bidirectional=True)
    yield sequence("lstm", proj=2, states=True, layers=2, bidirectional=True, batch=3, lengths=[2, 4, 1])
    yield sequence("lstm", proj=2, layers=2, bidirectional=True, batch=3, lengths=[2, 3, 1], batch_first=True)
    yield sequence("lstm", proj=3, steps=7, batch=9, hidden=5, size=2, states=True, dtype=f32)


# ---- attention ----

def triangle(n, k=None):
    return torch.triu(torch.ones(n, k or n, dtype=torch.bool), 1)


def padding(batch, n):
    """The last ones of every row but the first."""
    return torch.stack([torch.arange(n) >= n - b for b in range(batch)])


def attention(self_attention=False, tq=3, tk=4, batch=2, width=4, heads=2, kdim=0, vdim=0, bias=True, batch_first=False,
              weights=False, per_head=False, causal=False, masks=None, unbatched=False, dropout=0.0, shared_kv=False, **more):
    module = nn.MultiheadAttention(width, heads, kdim=kdim or None, vdim=vdim or None, bias=bias,
                                   batch_first=batch_first, dropout=dropout)
    shape = lambda t, w: (t, w) if unbatched else (batch, t, w) if batch_first else (t, batch, w)
    if self_attention:
        inputs = [torch.randn(shape(tq, width))]
    elif shared_kv:
        inputs = [torch.randn(shape(tq, width)), torch.randn(shape(tk, width))]
    else:
        inputs = [torch.randn(shape(tq, width)), torch.randn(shape(tk, kdim or width)), torch.randn(shape(tk, vdim or width))]

    def call(m, t, masks):
        q, k, v = (t[0], t[len(t) // 2], t[-1])
        if causal:
            masks = dict(masks, attn_mask=triangle(q.shape[1 if batch_first and not unbatched else 0]), is_causal=True)
        y, w = m(q, k, v, need_weights=weights, average_attn_weights=not per_head, **masks)
        return [y, w] if weights else [y]

    options = dict(width=width, heads=heads, kdim=kdim, vdim=vdim, bias=bias, batch_first=batch_first, weights=weights,
                   per_head=per_head, causal=causal, dropout=dropout)
    return case("attention", options, module, call, inputs, masks, **more)


def attention_cases():
    f32 = torch.float32
    yield attention()
    yield attention(self_attention=True)
    yield attention(self_attention=True, batch_first=True)
    yield attention(shared_kv=True, batch_first=True)
    yield attention(unbatched=True, weights=True)
    yield attention(unbatched=True, masks={"key_padding_mask": torch.tensor([False, True, False, False])})
    yield attention(weights=True)
    yield attention(weights=True, per_head=True, batch_first=True)
    yield attention(weights=True, bias=False)
    yield attention(kdim=3, vdim=5)
    yield attention(kdim=3, vdim=4, bias=False, batch_first=True)
    yield attention(heads=1)
    yield attention(heads=4, batch=1, tq=1)
    yield attention(self_attention=True, causal=True, tq=4)
    yield attention(self_attention=True, causal=True, tq=4, weights=True)
    yield attention(self_attention=True, causal=True, tq=4, masks={"key_padding_mask": padding(2, 4)})
    yield attention(masks={"key_padding_mask": padding(2, 4)})
    yield attention(masks={"key_padding_mask": padding(2, 4)}, weights=True, batch_first=True)
    yield attention(masks={"attn_mask": triangle(3, 4)})
    yield attention(masks={"attn_mask": torch.randn(3, 4)})
    yield attention(masks={"attn_mask": torch.randn(3, 4)}, weights=True)
    three = torch.rand(4, 3, 4) < 0.4
    three[:, :, 0] = False
    yield attention(masks={"attn_mask": three, "key_padding_mask": padding(2, 4)})
    yield attention(masks={"attn_mask": three}, weights=True, per_head=True)
    yield attention(masks={"attn_mask": torch.randn(3, 4), "key_padding_mask": torch.randn(2, 4)})
    yield attention(masks={"attn_mask": torch.randn(4, 3, 4), "key_padding_mask": torch.zeros(2, 4).masked_fill(padding(2, 4), float("-inf"))})
    yield attention(dropout=1.0)
    yield attention(dropout=0.5, train=False, weights=True)
    nobody = torch.tensor([[False] * 4, [True] * 4])
    yield attention(masks={"key_padding_mask": nobody}, weights=True, gradients=False)
    yield attention(self_attention=True, dtype=f32, width=8, tq=5, batch=3)
    yield attention(dtype=f32, weights=True, masks={"key_padding_mask": padding(2, 4)})


# ---- transformers ----

def options_of(width, heads, inner, gelu, norm_first, batch_first, bias, dropout, eps, layers=1, norm=False, both=False):
    words = dict(width=width, heads=heads, inner=inner, gelu=gelu, norm_first=norm_first, batch_first=batch_first,
                 bias=bias, dropout=dropout, eps=eps, layers=layers, norm=norm)
    keywords = dict(dim_feedforward=inner, dropout=dropout, activation="gelu" if gelu else "relu", layer_norm_eps=eps,
                    batch_first=batch_first, norm_first=norm_first, bias=bias)
    return words, keywords


def transformer(kind, width=4, heads=2, inner=6, gelu=False, norm_first=False, batch_first=False, bias=True, dropout=0.0,
                eps=1e-5, layers=2, norm=False, batch=2, src=4, tgt=3, masks=None, causal=False, unbatched=False, **more):
    words, keywords = options_of(width, heads, inner, gelu, norm_first, batch_first, bias, dropout, eps, layers, norm)
    end = nn.LayerNorm(width, eps=eps, bias=bias) if norm else None
    if kind == "encoder_layer":
        module = nn.TransformerEncoderLayer(width, heads, **keywords)
    elif kind == "decoder_layer":
        module = nn.TransformerDecoderLayer(width, heads, **keywords)
    elif kind == "encoder":
        module = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, heads, **keywords), layers, end, enable_nested_tensor=False)
    elif kind == "decoder":
        module = nn.TransformerDecoder(nn.TransformerDecoderLayer(width, heads, **keywords), layers, end)
    else:
        module = nn.Transformer(width, heads, layers, layers + 1, **keywords)
    shape = lambda t: (t, width) if unbatched else (batch, t, width) if batch_first else (t, batch, width)
    two = kind in ("decoder_layer", "decoder")
    inputs = [torch.randn(shape(tgt)), torch.randn(shape(src))] if two else [torch.randn(shape(src))]
    if kind == "transformer":
        inputs.append(torch.randn(shape(tgt)))

    def call(m, t, masks):
        if causal and two:
            masks = dict(masks, tgt_mask=nn.Transformer.generate_square_subsequent_mask(tgt, dtype=t[0].dtype), tgt_is_causal=True)
        elif causal and kind == "transformer":
            masks = dict(masks, tgt_mask=nn.Transformer.generate_square_subsequent_mask(tgt, dtype=t[0].dtype), tgt_is_causal=True)
        elif causal:
            name = "src_mask" if kind == "encoder_layer" else "mask"
            masks = dict(masks, is_causal=True)
            masks[name] = nn.Transformer.generate_square_subsequent_mask(src, dtype=t[0].dtype)
        elif kind == "encoder" and "src_mask" in masks:
            masks = dict(masks)
            masks["mask"] = masks.pop("src_mask")
        return [m(*t, **masks)]

    return case(kind, dict(words, causal=causal), module, call, inputs, masks, **more)


def transformer_cases():
    f32 = torch.float32
    for kind in ("encoder_layer", "decoder_layer"):
        yield transformer(kind)
        yield transformer(kind, norm_first=True)
        yield transformer(kind, gelu=True, batch_first=True, eps=1e-3)
        yield transformer(kind, bias=False, norm_first=True)
        yield transformer(kind, causal=True)
        yield transformer(kind, unbatched=True)
        yield transformer(kind, dropout=1.0)
        yield transformer(kind, dropout=0.3, train=False, batch_first=True)
        yield transformer(kind, dtype=f32, gelu=True)
    yield transformer("encoder_layer", masks={"src_key_padding_mask": padding(2, 4), "src_mask": torch.randn(4, 4)})
    yield transformer("encoder_layer", masks={"src_mask": triangle(4)}, norm_first=True)
    yield transformer("decoder_layer", masks={"tgt_mask": triangle(3), "memory_mask": torch.randn(3, 4)})
    yield transformer("decoder_layer", masks={"tgt_key_padding_mask": padding(2, 3), "memory_key_padding_mask": padding(2, 4)})
    yield transformer("encoder")
    yield transformer("encoder", norm=True, norm_first=True, batch_first=True,
                      masks={"src_key_padding_mask": padding(2, 4)})
    yield transformer("encoder", norm=True, causal=True, layers=1)
    yield transformer("decoder", norm=True, masks={"memory_key_padding_mask": padding(2, 4)}, causal=True)
    yield transformer("decoder", norm_first=True, batch_first=True, layers=1)
    yield transformer("transformer", layers=1, causal=True, batch_first=True)
    yield transformer("transformer", layers=1, norm_first=True, gelu=True,
                      masks={"src_key_padding_mask": padding(2, 4), "memory_key_padding_mask": padding(2, 4)})
    yield transformer("encoder", dtype=f32, norm=True)


recurrent = list(recurrent_cases())
named_cases.write(HERE / "transformer.bin", list(attention_cases()) + list(transformer_cases()))
named_cases.write(HERE / "recurrent.bin", recurrent + list(length_and_projection_cases()))
