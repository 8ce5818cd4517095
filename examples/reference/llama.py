#!/usr/bin/env python3
"""Writes to tests/models/reference, for a small Llama and a small Qwen2 of the library transformers with weights by a seed: NAME.safetensors and
NAME.json, the weights and the config.json as they are published; NAME.npy, the scores that PyTorch makes of what follows each of two times
20 tokens, (t * (t + 3) + 5 n) modulo 61; and NAME.tsv, for each parameter the norm of its gradient and the gradient times a ramp from 0 to 1,
where the loss is that of the next token. The Llama has grouped queries, heads of another size than features / heads, stretched
positions and a table of scores of its own; the Qwen2 has biases, and shares the table. Needs torch, transformers, safetensors and numpy."""
import tempfile
from pathlib import Path

import numpy
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

OUT = Path(__file__).resolve().parent.parent.parent / "tests/models/reference"

SHAPE = dict(vocab_size=61, hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_key_value_heads=2, max_position_embeddings=64,
             bos_token_id=None, eos_token_id=None)
STRETCHED = dict(rope_type="llama3", rope_theta=50.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)
MODELS = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**SHAPE, num_attention_heads=4, head_dim=8, rms_norm_eps=1e-5, rope_parameters=STRETCHED)),
    "qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**SHAPE, num_attention_heads=6, tie_word_embeddings=True)),
}

for file, make in MODELS.items():
    torch.manual_seed(1)
    model = make()
    for name, p in model.named_parameters():  # large enough that each of them shows in the scores
        torch.nn.init.normal_(p, 1.0 if "norm." in name else 0.0, 0.2)
    with tempfile.TemporaryDirectory() as folder:
        model.half().save_pretrained(folder)
        for suffix, made in (("safetensors", "model.safetensors"), ("json", "config.json")):
            (OUT / f"{file}.{suffix}").write_bytes((Path(folder) / made).read_bytes())
        model = type(model).from_pretrained(folder, dtype=torch.float32)  # the frequencies of positions were halves, too
    t = torch.arange(20)
    tokens = torch.stack([(t * (t + 3) + 5 * n) % 61 for n in range(2)])
    scores = model(tokens).logits
    numpy.save(OUT / f"{file}.npy", scores.detach().numpy())
    torch.nn.functional.cross_entropy(scores[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()).backward()
    with open(OUT / f"{file}.tsv", "w", encoding="utf-8") as lines:
        for name, p in model.named_parameters():
            g = p.grad.double().flatten()
            lines.write(f"{name}\t{g.norm():.8g}\t{g @ torch.linspace(0, 1, len(g), dtype=torch.double):.8g}\n")
