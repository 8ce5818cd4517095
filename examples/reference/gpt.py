#!/usr/bin/env python3
"""Trains the network of 09_gpt in PyTorch on the same text, with as many steps, and prints the validation loss of each seed and their mean,
which 09_gpt.cpp holds as its default --mark. Needs torch."""
import math
import sys
from pathlib import Path

import torch
from torch import nn

CONTEXT, LAYERS, HEADS, FEATURES, BATCH, STEPS, LR, DECAY, CLIP = 64, 3, 4, 128, 16, 600, 1e-3, 0.1, 1.0


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(FEATURES), nn.LayerNorm(FEATURES)
        self.attn = nn.MultiheadAttention(FEATURES, HEADS, batch_first=True)
        self.c_fc, self.c_proj = nn.Linear(FEATURES, 4 * FEATURES), nn.Linear(4 * FEATURES, FEATURES)

    def forward(self, x, mask):
        y = self.ln_1(x)
        x = x + self.attn(y, y, y, attn_mask=mask, need_weights=False, is_causal=True)[0]
        return x + self.c_proj(nn.functional.gelu(self.c_fc(self.ln_2(x))))


class Network(nn.Module):
    def __init__(self, letters):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(letters, FEATURES), nn.Embedding(CONTEXT, FEATURES)
        self.h, self.ln_f = nn.ModuleList(Block() for _ in range(LAYERS)), nn.LayerNorm(FEATURES)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                ends = name.endswith(("c_proj.weight", "out_proj.weight"))
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * LAYERS) if ends else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(p)

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.h:
            x = block(x, mask)
        return self.ln_f(x) @ self.wte.weight.t()


def loss_of(network, ids, starts):
    at = starts[:, None] + torch.arange(CONTEXT)
    return nn.functional.cross_entropy(network(ids[at]).flatten(0, 1), ids[at + 1].flatten())


def main():
    text = (Path(__file__).resolve().parent.parent / "data/shakespeare.txt").read_text(encoding="utf-8")
    letters = sorted(set(text))
    ids = torch.tensor([letters.index(c) for c in text])
    held_out = len(ids) // 10
    training, validation = ids[:-held_out], ids[-held_out:]
    starts = torch.arange(0, len(validation) - CONTEXT, CONTEXT)
    losses = []
    for seed in 1, 2, 3:
        torch.manual_seed(seed)
        network = Network(len(letters))
        optimizer = torch.optim.AdamW(network.parameters(), lr=LR, weight_decay=DECAY)
        for step in range(STEPS):
            loss = loss_of(network, training, torch.randint(len(training) - CONTEXT, (BATCH,)))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), CLIP)
            optimizer.step()
            if step % 100 == 99:
                print(f"seed {seed}, step {step + 1}: {loss.item():.4f}", file=sys.stderr)
        with torch.no_grad():
            losses.append(sum(loss_of(network, validation, s).item() * len(s) for s in starts.split(16)) / len(starts))
        print(f"seed {seed}: {losses[-1]:.4f}", flush=True)
    print(f"mean: {sum(losses) / len(losses):.4f}")


if __name__ == "__main__":
    main()
