#!/usr/bin/env python3
"""Writes values.csv: what PyTorch gives, in float64, for the rows of ../table.hpp.

    python3 make.py > values.csv        # needs torch; the file in the repository was made with torch 2.15

One line per point: row, operands (empty where the op has fewer), value, derivative to each operand (empty where PyTorch
has none). The points include the kinks and ties of an op, where its derivative is a convention. Limits of clamp are
numbers here, as they mostly are (for tensors PyTorch halves the derivative at ties), and hardsigmoid is spelled out
(PyTorch multiplies by the float nearest 1/6 in its derivative).
"""
import random

import torch
import torch.nn.functional as F

WIDE = [-7.5, -3.0, -2.0, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 2.0, 3.0, 6.0, 7.5]
POSITIVE = [0.015625, 0.25, 0.5, 1.0, 2.0, 3.0, 7.5]
UNIT = [-0.96875, -0.5, -0.125, 0.0, 0.25, 0.75]
PROBABILITY = [0.015625, 0.125, 0.25, 0.5, 0.75, 0.875, 0.96875]

UNARY = {
    "negate": (lambda x: -x, WIDE), "abs": (torch.abs, WIDE), "sign": (torch.sign, WIDE),
    "square": (torch.square, WIDE), "sqrt": (torch.sqrt, POSITIVE), "rsqrt": (torch.rsqrt, POSITIVE),
    "reciprocal": (torch.reciprocal, POSITIVE), "cbrt": (lambda x: x ** (1 / 3), POSITIVE),
    "exp": (torch.exp, WIDE), "exp2": (torch.exp2, WIDE), "expm1": (torch.expm1, WIDE),
    "log": (torch.log, POSITIVE), "log2": (torch.log2, POSITIVE), "log10": (torch.log10, POSITIVE),
    "log1p": (torch.log1p, POSITIVE), "sin": (torch.sin, WIDE), "cos": (torch.cos, WIDE), "tan": (torch.tan, UNIT),
    "asin": (torch.asin, UNIT), "acos": (torch.acos, UNIT), "atan": (torch.atan, WIDE), "sinh": (torch.sinh, WIDE),
    "cosh": (torch.cosh, WIDE), "tanh": (torch.tanh, WIDE), "erf": (torch.erf, WIDE), "erfc": (torch.erfc, WIDE),
    "asinh": (torch.asinh, WIDE), "acosh": (torch.acosh, [1.0625, 1.5, 2.0, 7.5]), "atanh": (torch.atanh, UNIT), "frac": (torch.frac, WIDE),
    "floor": (torch.floor, WIDE), "ceil": (torch.ceil, WIDE), "round": (torch.round, WIDE),
    "round to 1 decimal": (lambda x: torch.round(x, decimals=1), [-7.5, -0.26, 0.0, 0.34, 0.97, 3.0]),
    "round to tens": (lambda x: torch.round(x, decimals=-1), [-75.5, -26.0, 0.0, 4.0, 33.0]),
    "sinc": (torch.sinc, WIDE), "deg2rad": (torch.deg2rad, WIDE), "rad2deg": (torch.rad2deg, WIDE), "mish": (F.mish, WIDE),
    "hardsigmoid with slope": (lambda x: torch.clamp(x * 0.25 + 0.5, 0, 1), [-7.5, -3.0, -1.0, 0.25, 1.0, 6.0]),
    "selu with constants": (lambda x: 3 * F.elu(x, 0.5), WIDE), "logical_not": (torch.logical_not, WIDE),
    "shrink": (lambda x: torch.where(x.abs() > 1, x - 0.5 * torch.sign(x), x * 0), WIDE),
    "isposinf": (torch.isposinf, WIDE), "isneginf": (torch.isneginf, WIDE), "signbit": (torch.signbit, WIDE),
    "nan_to_num": (lambda x: torch.nan_to_num(x, -1, 7, -9), WIDE), "trunc": (torch.trunc, WIDE), "sigmoid": (torch.sigmoid, WIDE), "log_sigmoid": (F.logsigmoid, WIDE),
    "softplus": (F.softplus, WIDE), "softplus with beta": (lambda x: F.softplus(x, 2, 5), WIDE),
    "relu": (F.relu, WIDE), "relu6": (F.relu6, WIDE), "leaky_relu": (lambda x: F.leaky_relu(x, 0.25), WIDE),
    "elu": (lambda x: F.elu(x, 1.5), WIDE), "selu": (F.selu, WIDE), "celu": (lambda x: F.celu(x, 0.5), WIDE),
    "gelu": (F.gelu, WIDE), "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), WIDE), "silu": (F.silu, WIDE),
    "hardtanh": (lambda x: F.hardtanh(x, -2, 1), WIDE), "hardsigmoid": (lambda x: F.relu6(x + 3) / 6, WIDE),
    "hardswish": (F.hardswish, WIDE), "softsign": (F.softsign, WIDE), "tanhshrink": (F.tanhshrink, WIDE),
    "softshrink": (F.softshrink, WIDE), "hardshrink": (F.hardshrink, WIDE),
    "threshold": (lambda x: F.threshold(x, 1, -2), WIDE), "logit": (torch.logit, PROBABILITY),
    "logit with eps": (lambda x: torch.logit(x, 0.125), PROBABILITY), "pow 2": (lambda x: x ** 2, WIDE),
    "pow 3": (lambda x: x ** 3, WIDE), "pow -1": (lambda x: x ** -1, POSITIVE),
    "pow 2.5": (lambda x: x ** 2.5, [0.0] + POSITIVE), "2 pow": (lambda x: 2 ** x, WIDE),
    "cast": (lambda x: x.to(torch.float64), WIDE), "isnan": (torch.isnan, WIDE), "isinf": (torch.isinf, WIDE),
    "isfinite": (torch.isfinite, WIDE),
}
BINARY = {
    "add": (torch.add, WIDE, WIDE), "subtract": (torch.sub, WIDE, WIDE), "multiply": (torch.mul, WIDE, WIDE),
    "divide": (torch.div, WIDE, POSITIVE), "pow": (torch.pow, [0.0] + POSITIVE, [0.0, 0.5, 1.0, 2.0, 3.5]),
    "remainder": (torch.remainder, WIDE, [-2.25, 0.75, 2.5]), "fmod": (torch.fmod, WIDE, [-2.25, 0.75, 2.5]),
    "minimum": (torch.minimum, WIDE, WIDE), "maximum": (torch.maximum, WIDE, WIDE),
    "fmin": (torch.fmin, WIDE, WIDE), "fmax": (torch.fmax, WIDE, WIDE),
    "floor_divide": (lambda x, y: torch.div(x, y, rounding_mode="floor"), WIDE, [-2.25, 0.75, 2.5]),
    "logaddexp2": (torch.logaddexp2, WIDE, WIDE), "copysign": (torch.copysign, WIDE, WIDE),
    "logical_and": (torch.logical_and, WIDE, WIDE), "logical_or": (torch.logical_or, WIDE, WIDE),
    "logical_xor": (torch.logical_xor, WIDE, WIDE), "xlogy": (torch.xlogy, WIDE, POSITIVE), "logaddexp": (torch.logaddexp, WIDE, WIDE),
    "clamp_min": (lambda x, y: torch.clamp(x, min=y.item()), WIDE, WIDE),
    "clamp_max": (lambda x, y: torch.clamp(x, max=y.item()), WIDE, WIDE),
    "hypot": (torch.hypot, POSITIVE, [-2.0, 0.0, 3.0]), "atan2": (torch.atan2, WIDE, WIDE),
    "equal": (torch.eq, WIDE, WIDE), "not_equal": (torch.ne, WIDE, WIDE), "less": (torch.lt, WIDE, WIDE),
    "less_equal": (torch.le, WIDE, WIDE), "greater": (torch.gt, WIDE, WIDE), "greater_equal": (torch.ge, WIDE, WIDE),
}
TERNARY = {
    "clamp": (lambda x, y, z: torch.clamp(x, y.item(), z.item()), WIDE, [-2.0, 0.5], [-1.0, 0.5, 2.0]), "lerp": (torch.lerp, WIDE, UNIT, [-0.5, 0.25, 0.5, 1.5]),
    "fma": (lambda x, y, z: x * y + z, WIDE, UNIT, UNIT), "where": (lambda x, y, z: torch.where(x > y, y, z), WIDE, UNIT, UNIT),
}
POINTS = 24


def number(x):
    return repr(float(x.detach()) if isinstance(x, torch.Tensor) else float(x))


def write(name, function, *domains):
    rng = random.Random(name)
    if len(domains) == 1:
        points = [(x,) for x in domains[0]]
    else:
        points = [tuple(rng.choice(d) for d in domains) for _ in range(POINTS)]
        points += [(x, x) + tuple(rng.choice(d) for d in domains[2:]) for x in domains[0] if x in domains[1]][:6]
    for point in points:
        leaves = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in point]
        value = function(*leaves)
        gradients = [""] * 3
        if value.requires_grad and value.is_floating_point():
            found = torch.autograd.grad(value, leaves, allow_unused=True)
            gradients[: len(found)] = [number(g) if g is not None else "" for g in found]
        operands = [number(v) for v in point] + [""] * (3 - len(point))
        print(",".join([name, *operands, number(value), *gradients]))


print("row,x,y,z,value,dx,dy,dz")
for table in (UNARY, BINARY, TERNARY):
    for name, entry in table.items():
        write(name, *entry)
