#!/usr/bin/env python3
"""Writes values.txt: what PyTorch computes for each line of lines.txt, flattened, one line each.

    python3 make.py > values.txt        # needs torch; the file in the repository was made with torch 2.15
"""
from pathlib import Path

import torch
import torch.nn.functional as F

import lines

HERE = Path(__file__).resolve().parent


def names():
    x = torch.tensor([[-1.5, 0.5, 2], [3, -0.25, 1]])
    y = torch.tensor([[2, 1, 0.5], [-1, 4, 0.25]])
    c = torch.arange(24.0).reshape(2, 3, 4) / 8
    return {"torch": torch, "F": F, "x": x, "y": y, "v": torch.tensor([1.0, 2, 3]), "u": torch.tensor([0.5, -1, 4]), "c": c,
            "im": torch.arange(32.0).reshape(1, 2, 4, 4) / 16, "m": x > 0, "i": torch.tensor([2, 0, 1]),
            "n": torch.tensor([3, 1, 3], dtype=torch.int32)}


for line in lines.read():
    if line.python:
        value = torch.as_tensor(eval(line.python, names())).to(torch.float64).flatten().tolist()
        print(line.code, *(f"{number:.9g}" for number in value), sep="\t")
