#!/usr/bin/env python3
"""Writes interpolate.csv: images by area and with antialiasing as PyTorch resizes them, in double. Needs torch.

Images are sin(0.37 i^2), (1,2,9,7). A line is the mode, align_corners, height and width or, below 0, the factor -10 times, then the
results and the gradient of their sum weighted by cos(0.7 i).
"""
from pathlib import Path

import torch
import torch.nn.functional as F

lines = []
for mode, sizes in {
    "area": [(4, 3), (12, 5), (1, 9), (-6, -17)],
    "bilinear": [(4, 3), (12, 2), (9, 1), (-6, -17)],
    "bicubic": [(4, 3), (12, 2), (1, 7), (-3, -16)],
}.items():
    for size in sizes:
        for corners in (False, True):
            if corners and (mode == "area" or size[0] < 0):
                continue
            x = torch.sin(0.37 * torch.arange(126, dtype=torch.float64) ** 2).reshape(1, 2, 9, 7).requires_grad_()
            how = {"size": size} if size[0] > 0 else {"scale_factor": tuple(-s / 10 for s in size)}
            if mode != "area":
                how |= {"antialias": True, "align_corners": corners}
            y = F.interpolate(x, mode=mode, **how)
            (y.flatten() * torch.cos(0.7 * torch.arange(y.numel(), dtype=torch.float64))).sum().backward()
            numbers = [*y.flatten().tolist(), *x.grad.flatten().tolist()]
            lines.append(",".join([mode, str(int(corners)), *map(str, size), *(f"{v:.13g}" for v in numbers)]))
Path(__file__).with_name("interpolate.csv").write_text("\n".join(lines) + "\n")
