#!/usr/bin/env python3
"""Writes embedding.csv: lookups of PyTorch and their gradients. Needs torch.

One case a line: name, rows and columns of the table, padding_idx (or "none"), scale_grad_by_freq, max_norm (or "none"), norm_type,
mode, include_last_offset; then, each as its length and its elements, ids, offsets, weights, table, gradient of the result,
result, gradient of the table, gradient of the weights, table after the call. Bags without offsets are two rows of ids.
"""
from pathlib import Path

import torch
import torch.nn.functional as F

torch.manual_seed(1)
ROWS, COLUMNS = 7, 5
IDS = torch.tensor([3, 0, 3, 6, 5, 5, 1, 3, 2, 5, 3, 0])
OFFSETS = torch.tensor([0, 3, 3, 8, 12])
lines = []


def eighths(*shape):
    """Numbers with few digits, among which some are equal."""
    return torch.randint(-20, 21, shape).double() / 8


def run(name, call, *, padding=None, freq=False, max_norm=None, norm_type=2.0, mode="none", last=False, ids=IDS, offsets=None,
        weights=None):
    table = eighths(ROWS, COLUMNS)
    leaf = table.clone().requires_grad_()
    w = weights.clone().requires_grad_() if weights is not None else None
    y = call(ids, leaf, offsets, w)
    g = eighths(*y.shape)
    y.backward(g)
    words = [name, ROWS, COLUMNS, "none" if padding is None else padding, int(freq), "none" if max_norm is None else max_norm,
             norm_type, mode, int(last)]
    nothing = torch.zeros(0)
    for t in (ids, nothing if offsets is None else offsets, nothing if w is None else w, table, g, y, leaf.grad,
              nothing if w is None else w.grad, leaf):
        words += [t.numel(), *(repr(float(v)) for v in t.detach().flatten().tolist())]
    lines.append(",".join(map(str, words)))


def lookup(**o):
    run("embedding", lambda ids, t, _, __: F.embedding(
        ids, t, padding_idx=o.get("padding"), max_norm=o.get("max_norm"), norm_type=o.get("norm_type", 2.0),
        scale_grad_by_freq=o.get("freq", False)), **o)


def bag(**o):
    run("embedding_bag", lambda ids, t, offsets, w: F.embedding_bag(
        ids if offsets is not None else ids.reshape(2, -1), t, offsets, mode=o["mode"], padding_idx=o.get("padding"),
        max_norm=o.get("max_norm"), norm_type=o.get("norm_type", 2.0), scale_grad_by_freq=o.get("freq", False),
        per_sample_weights=w if offsets is not None or w is None else w.reshape(2, -1),
        include_last_offset=o.get("last", False)), **o)


lookup()
lookup(padding=3)
lookup(padding=-2, freq=True)
for norm_type in (1.0, 2.0, 3.0, float("inf")):
    lookup(max_norm=1.5, norm_type=norm_type)
for mode in ("sum", "mean", "max"):
    bag(mode=mode)
    bag(mode=mode, padding=5)
    bag(mode=mode, offsets=OFFSETS)
    bag(mode=mode, offsets=OFFSETS, last=True)
    bag(mode=mode, offsets=OFFSETS, padding=-4)
    bag(mode=mode, offsets=OFFSETS, max_norm=1.0)
    if mode != "max":
        bag(mode=mode, offsets=OFFSETS, freq=True)
        bag(mode=mode, freq=True, padding=5)
for padding in (None, 5):
    bag(mode="sum", padding=padding, weights=eighths(12))
    bag(mode="sum", padding=padding, weights=eighths(12), offsets=OFFSETS)
Path(__file__).with_name("embedding.csv").write_text("\n".join(lines) + "\n")
