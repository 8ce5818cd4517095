#!/usr/bin/env python3
"""Writes split.txt: sizes of random_split and train_test_split, and StandardScaler's moments. Needs torch, scikit-learn."""
from pathlib import Path

import numpy as np
import torch
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

lines = []
for n, fractions in ((10, (0.8, 0.2)), (10, (1 / 3, 1 / 3, 1 / 3)), (7, (0.5, 0.25, 0.25)), (1, (0.5, 0.5)), (999, (0.7, 0.2, 0.1))):
    sizes = [len(part) for part in torch.utils.data.random_split(range(n), fractions)]
    lines.append(" ".join(map(repr, ("parts", n, len(fractions), *fractions, *sizes))).replace("'", ""))
for n, size in ((10, 0.25), (11, 0.2), (7, 0.5), (100, 0.01)):
    train, test = train_test_split(range(n), test_size=size)
    lines.append(f"test {n} {size} {len(train)} {len(test)}")
x = np.round(np.random.default_rng(3).normal(size=(6, 3)) * [1, 10, 0] + [1000, -3, 0.1], 2)
scaler = StandardScaler().fit(x)
lines.append("table " + " ".join(map(repr, x.ravel().tolist())))
lines.append("moments " + " ".join(map(repr, [*scaler.mean_.tolist(), *scaler.scale_.tolist()])))
Path(__file__).with_name("split.txt").write_text("\n".join(lines) + "\n")
