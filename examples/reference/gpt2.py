#!/usr/bin/env python3
"""Writes tests/models/reference/gpt2.safetensors, a small GPT-2 of the library transformers with weights by a seed, and gpt2.npy: the scores
that PyTorch makes with them of what follows each of two times 20 tokens, (t * (t + 3) + 5 n) modulo 61. Needs torch, transformers,
safetensors and numpy."""
import tempfile
from pathlib import Path

import numpy
import torch
from transformers import GPT2Config, GPT2LMHeadModel

OUT = Path(__file__).resolve().parent.parent.parent / "tests/models/reference"

torch.manual_seed(1)
model = GPT2LMHeadModel(GPT2Config(vocab_size=61, n_positions=24, n_embd=24, n_layer=2, n_head=3, bos_token_id=None, eos_token_id=None)).eval()
for name, p in model.named_parameters():  # large enough that each of them shows in the scores
    torch.nn.init.normal_(p, 1.0 if ".ln_" in name and name.endswith("weight") else 0.0, 0.3)
with tempfile.TemporaryDirectory() as folder:
    model.half().save_pretrained(folder)
    (OUT / "gpt2.safetensors").write_bytes((Path(folder) / "model.safetensors").read_bytes())
t = torch.arange(20)
with torch.no_grad():
    numpy.save(OUT / "gpt2.npy", model.float()(torch.stack([(t * (t + 3) + 5 * n) % 61 for n in range(2)])).logits.numpy())
