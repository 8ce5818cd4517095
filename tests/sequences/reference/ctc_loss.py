#!/usr/bin/env python3
"""Writes ctc_loss.csv: losses of PyTorch, and their gradients in the log-probabilities. Needs torch.

Scores are 2 sin(0.37 i^2), (7,5,4). One case a line: the blank, 1 with zero_infinity, the five losses, their mean and sum as
reductions, then the gradient of the mean.
"""
from pathlib import Path

import torch
import torch.nn.functional as F

scores = (2 * torch.sin(0.37 * torch.arange(140, dtype=torch.float64) ** 2)).reshape(7, 5, 4)
steps, lengths = torch.tensor([7, 5, 4, 4, 6]), torch.tensor([3, 0, 1, 4, 2])
labels = torch.tensor([[1, 1, 2, 0], [0, 0, 0, 0], [3, 0, 0, 0], [2, 2, 2, 1], [3, 1, 0, 0]])
lines = []
for blank, zero in ((0, False), (0, True), (3, True)):
    log_p = scores.log_softmax(2).detach().requires_grad_()
    targets = labels if blank == 0 else (labels + 3) % 4
    values = [
        F.ctc_loss(log_p, targets, steps, lengths, blank=blank, zero_infinity=zero, reduction=r) for r in ("none", "mean", "sum")
    ]
    values[1].backward()
    numbers = [blank, int(zero), *(x for v in values for x in v.flatten().tolist()), *log_p.grad.flatten().tolist()]
    lines.append(",".join(repr(x) for x in numbers))
Path(__file__).with_name("ctc_loss.csv").write_text("\n".join(lines) + "\n")
