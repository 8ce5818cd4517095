#!/usr/bin/env python3
"""Writes losses.csv: losses of PyTorch on fixed inputs, and the gradients of their means. Needs torch.

One case a line: name, rows, columns, prediction (row-major), target or labels, then the losses with reductions mean and
sum, then the gradient of the mean loss.
"""
from pathlib import Path

import torch
import torch.nn.functional as F

torch.manual_seed(1)
lines = []


def case(name, loss, x, target):
    x = x.double().requires_grad_()
    mean, total = loss(x, target, reduction="mean"), loss(x, target, reduction="sum")
    mean.backward()
    values = [*x.detach().flatten().tolist(), *target.flatten().tolist(), mean.item(), total.item(), *x.grad.flatten().tolist()]
    lines.append(",".join([name, str(x.shape[0]), str(x.shape[1]), *(repr(float(v)) for v in values)]))


for scale in (1, 30, 800):
    x = torch.randn(5, 4) * scale
    case("mse_loss", F.mse_loss, x, torch.randn(5, 4).double())
    case("bce_with_logits", F.binary_cross_entropy_with_logits, x, torch.rand(5, 4).double())
    case("nll_loss", F.nll_loss, x, torch.tensor([3, 0, 1, 1, 2]))
    case("cross_entropy", F.cross_entropy, x, torch.tensor([3, 0, 1, 1, 2]))
zero = torch.zeros(2, 3)
case("bce_with_logits", F.binary_cross_entropy_with_logits, zero, torch.tensor([[0, 1, 0.5], [1, 0, 0.25]]).double())
case("cross_entropy", F.cross_entropy, zero, torch.tensor([2, 0]))
Path(__file__).with_name("losses.csv").write_text("\n".join(lines) + "\n")
