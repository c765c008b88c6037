#!/usr/bin/env python3
"""Writes tests/reference/gpt2.safetensors: a small GPT-2 as Hugging Face's transformers saves it, with what it answers.

Needs the packages torch, transformers and safetensors. Besides the model's tensors the file has
check.tokens (1,T), check.logits (T,vocab) and check.greedy: the tokens with which greedy decoding goes on.
"""
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from tempfile import TemporaryDirectory
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
config = GPT2Config(vocab_size=61, n_positions=40, n_embd=16, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=60)
model = GPT2LMHeadModel(config).eval()
for parameter in model.parameters():  # far from the small initial values, so that mistakes show
    parameter.data += 0.3 * torch.randn_like(parameter)
tokens = (torch.arange(17)[None] ** 2 * 7 + 3) % 60
with torch.no_grad():
    logits = model(tokens).logits[0]
    greedy = model.generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=20, do_sample=False,
                            pad_token_id=60, eos_token_id=None)[0, tokens.shape[1]:]
with TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    file = load_file(Path(folder) / "model.safetensors")
file |= {"check.tokens": tokens.int(), "check.logits": logits.contiguous(), "check.greedy": greedy.int()}
save_file(file, Path(__file__).parent / "gpt2.safetensors", metadata={"format": "pt"})
