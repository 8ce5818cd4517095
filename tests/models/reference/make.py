#!/usr/bin/env python3
"""Writes steps.tsv, what tests/models/step_test.cpp compares with: one training step of each network in float64.

Usage: make.py [NETWORK...] (needs PyTorch). Weights and inputs are the same on both sides, see numbers().
A line is "network TAB what TAB value [TAB value]": the loss before and after the step; for each parameter the norm of its gradient
and the gradient times numbers(); for each running mean and variance, after the step, its norm and itself times numbers().
"""
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from networks import NETWORKS, SEQUENCES

OUT = Path(__file__).resolve().parent / "steps.tsv"
BATCH = 2


def numbers(count, seed):
    """As numbers() in step_test.cpp: float32 from -1 to 1, each from its index by the finaliser of MurmurHash3."""
    h = np.arange(count, dtype=np.uint32) + np.uint32(seed * 0x9E3779B9 & 0xFFFFFFFF)
    h ^= h >> 16
    h *= np.uint32(0x85EBCA6B)
    h ^= h >> 13
    h *= np.uint32(0xC2B2AE35)
    h ^= h >> 16
    return (h >> 8).astype(np.float32) * np.float32(2.0**-23) - np.float32(1)


def fill(network):
    """Biases that are large beside what they are added to: then few numbers are so near to 0 that rounding decides about relu."""
    for seed, (name, p) in enumerate(network.named_parameters(), 1):
        v = numbers(p.numel(), seed)
        if p.dim() > 1:
            v *= np.float32((0.5 / (p.numel() / p.shape[0])) ** 0.5)
        elif "bn" in name or "downsample.1" in name:
            v = np.float32(0.1) + np.float32(0.01) * v if name.endswith("weight") else np.float32(2) * v
        p.data = torch.from_numpy(v).reshape(p.shape).double()


def both(t):
    t = t.detach().flatten()
    return f"{t.norm().item():.7g}\t{t.dot(torch.from_numpy(numbers(t.numel(), 0)).double()).item():.7g}"


def loss_and_optimizer(name, network):
    if name in SEQUENCES:  # 6 words of each sample, as in step_test.cpp
        _, _, vocabulary, optimizer, settings, _, has_state = SEQUENCES[name]
        words = torch.arange(6 * BATCH) * 37 % vocabulary
        words = words.reshape(6, BATCH) if has_state else words.reshape(BATCH, 6)
        following = ((words * 5 + 3) % vocabulary).flatten()
        return lambda: F.cross_entropy((network(words)[0] if has_state else network(words)).flatten(0, 1), following), \
            optimizer(network.parameters(), **settings)
    _, shape, classes, settings, _ = NETWORKS[name]
    x = torch.from_numpy(numbers(BATCH * int(np.prod(shape)), 1000)).reshape(BATCH, *shape).double()
    labels = torch.arange(BATCH) * 7 % classes
    return lambda: F.cross_entropy(network(x), labels), torch.optim.SGD(network.parameters(), **settings)


def step(name):
    network = (SEQUENCES if name in SEQUENCES else NETWORKS)[name][0]().double()
    fill(network)
    loss_of_step, optimizer = loss_and_optimizer(name, network)
    loss = loss_of_step()
    loss.backward()
    lines = [f"{name}\tloss\t{loss.item():.7g}"]
    lines += [f"{name}\tgradient {n}\t{both(p.grad)}" for n, p in network.named_parameters()]
    lines += [f"{name}\tbuffer {n}\t{both(b)}" for n, b in network.named_buffers() if b.dim() == 1]
    if hasattr(network, "largest_gradient"):
        torch.nn.utils.clip_grad_norm_(network.parameters(), network.largest_gradient)
    optimizer.step()
    with torch.no_grad():
        lines.append(f"{name}\tloss after\t{loss_of_step().item():.7g}")
    return lines


if __name__ == "__main__":
    kept = [line for line in OUT.read_text().splitlines() if line.split("\t")[0] not in sys.argv[1:]] if sys.argv[1:] else []
    OUT.write_text("\n".join(kept + [line for name in sys.argv[1:] or [*NETWORKS, *SEQUENCES] for line in step(name)]) + "\n")
