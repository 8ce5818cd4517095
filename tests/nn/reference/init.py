#!/usr/bin/env python3
"""Writes init.csv from PyTorch. Needs torch.

One initialisation a line: its name, then the bounds of the uniform, or mean and deviation of the normal distribution that PyTorch
draws from, or the values themselves where none are drawn.
"""
from pathlib import Path
from unittest import mock

import torch
from torch.nn import init


def drawn(f, *shape):
    """The arguments of uniform_ or normal_."""
    found = []
    record = lambda self, a, b, generator=None: found.extend([float(a), float(b)])
    with mock.patch.object(torch.Tensor, "uniform_", record), mock.patch.object(torch.Tensor, "normal_", record):
        f(torch.empty(*shape))
    return found


def values(f, *shape):
    x = torch.full(shape, 7.0)
    f(x)
    return x.flatten().tolist()


conv = (8, 6, 3, 2)
lines = {
    "gains": [init.calculate_gain(n) for n in ("linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu")]
    + [init.calculate_gain("leaky_relu", 0.3)],
    "xavier_uniform": drawn(lambda x: init.xavier_uniform_(x, 1.5), *conv),
    "xavier_normal": drawn(init.xavier_normal_, *conv),
    "kaiming_uniform": drawn(init.kaiming_uniform_, *conv),
    "kaiming_uniform_out": drawn(lambda x: init.kaiming_uniform_(x, 0.2, "fan_out"), *conv),
    "kaiming_normal": drawn(lambda x: init.kaiming_normal_(x, nonlinearity="tanh"), 5, 7),
    "kaiming_normal_out": drawn(lambda x: init.kaiming_normal_(x, mode="fan_out", nonlinearity="relu"), 5, 7),
    "eye": values(init.eye_, 2, 3),
    "dirac_4x3x3": values(init.dirac_, 4, 3, 3),
    "dirac_4x1x2x3": values(lambda x: init.dirac_(x, 2), 4, 1, 2, 3),
    "dirac_2x3x1x2x2": values(init.dirac_, 2, 3, 1, 2, 2),
}
text = "".join(",".join([key, *map(repr, row)]) + "\n" for key, row in lines.items())
Path(__file__).with_name("init.csv").write_text(text)
