#!/usr/bin/env python3
"""Writes trajectories.csv, groups.csv, matrices.csv, averages.csv, lbfgs.csv and schedules.csv from PyTorch. Needs torch, and timm
for its LAMB.

trajectories.csv: one optimizer a line: its name, then the 5 parameters after each of 10 steps, in float64. Parameters start at
sin(i + 1); the gradient of step t is (1 + i / 10) cos(3 t + i) / (1 + t).
groups.csv: one optimizer a line: parameters and gradients as above, the first 3 in one group and the last 2 in another, with a
schedule; then the rates of both groups after each step.
matrices.csv: as trajectories.csv, of 6 parameters as a matrix, whose shape is in the name. Muon computes in float64 where PyTorch's
rounds to bfloat16, but for the line with that in its name.
averages.csv: averages over five updates of a model with a batch norm: after each the weights, biases, running means and the counter.
lbfgs.csv: minimising Rosenbrock's function of 4 numbers: after each of 5 steps these, the loss before it, and the evaluations so far.
schedules.csv: one schedule a line: its name, then the learning rate of epochs 0 to 24, from 0.5.
"""
import math
import warnings
from pathlib import Path
from unittest import mock

import torch
from timm.optim.lamb import Lamb
from torch import optim
from torch.optim import lr_scheduler as lrs

warnings.simplefilter("ignore")
torch.set_default_dtype(torch.float64)  # of the product that NAdam keeps

OPTIMIZERS = {
    "sgd": lambda p: optim.SGD(p, lr=0.1),
    "sgd_decay": lambda p: optim.SGD(p, lr=0.1, weight_decay=0.05),
    "sgd_momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
    "sgd_dampening": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.01),
    "sgd_nesterov": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda p: optim.Adam(p, lr=0.05),
    "adam_all": lambda p: optim.Adam(p, lr=0.05, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1),
    "adamw": lambda p: optim.AdamW(p, lr=0.05),
    "adamw_all": lambda p: optim.AdamW(p, lr=0.05, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.3),
    "adagrad": lambda p: optim.Adagrad(p, lr=0.1),
    "adagrad_all": lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.2, weight_decay=0.1, initial_accumulator_value=0.3, eps=1e-3),
    "adadelta": lambda p: optim.Adadelta(p),
    "adadelta_all": lambda p: optim.Adadelta(p, lr=0.5, rho=0.8, eps=1e-3, weight_decay=0.1),
    "adamax": lambda p: optim.Adamax(p, lr=0.05),
    "adamax_all": lambda p: optim.Adamax(p, lr=0.05, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1),
    "nadam": lambda p: optim.NAdam(p, lr=0.05),
    "nadam_all": lambda p: optim.NAdam(p, lr=0.05, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1, momentum_decay=0.1),
    "radam": lambda p: optim.RAdam(p, lr=0.05),
    "radam_all": lambda p: optim.RAdam(p, lr=0.05, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1),
    "rmsprop": lambda p: optim.RMSprop(p, lr=0.02),
    "rmsprop_centered": lambda p: optim.RMSprop(p, lr=0.02, centered=True, weight_decay=0.1),
    "rmsprop_momentum": lambda p: optim.RMSprop(p, lr=0.02, momentum=0.8, alpha=0.9, eps=1e-4),
    "rmsprop_all": lambda p: optim.RMSprop(p, lr=0.02, momentum=0.8, alpha=0.9, centered=True, weight_decay=0.1),
    "lamb": lambda p: Lamb(p, lr=0.05, max_grad_norm=None),
    "lamb_all": lambda p: Lamb(p, lr=0.05, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1, max_grad_norm=None),
    "lamb_plain": lambda p: Lamb(p, lr=0.05, weight_decay=0, max_grad_norm=None),
    "lamb_adapt": lambda p: Lamb(p, lr=0.05, weight_decay=0, always_adapt=True, max_grad_norm=None),
}
MATRICES = {
    "muon_2x3": lambda p: optim.Muon(p, lr=0.1),
    "muon_3x2": lambda p: optim.Muon(p, lr=0.1),
    "muon_2x3_bfloat16": lambda p: optim.Muon(p, lr=0.1),
    "muon_3x2_all": lambda p: optim.Muon(p, lr=0.1, weight_decay=0.3, momentum=0.5, nesterov=False, ns_coefficients=(2, -1.5, 0.5),
                                         eps=0.5, ns_steps=3, adjust_lr_fn="match_rms_adamw"),
    "muon_2x3_spectral": lambda p: optim.Muon(p, lr=0.1, adjust_lr_fn="spectral_unclamped"),
    "lamb_2x3": lambda p: Lamb(p, lr=0.05, max_grad_norm=None),
}
GROUPS = {
    "sgd": lambda a, b: optim.SGD([{"params": a}, {"params": b, "lr": 0.3, "weight_decay": 0.1}], lr=0.1, momentum=0.9),
    "adamw": lambda a, b: optim.AdamW([{"params": a}, {"params": b, "lr": 0.02, "weight_decay": 0, "betas": (0.5, 0.9)}], lr=0.05),
    "rmsprop": lambda a, b: optim.RMSprop([{"params": a}, {"params": b, "momentum": 0.5, "centered": True}], lr=0.02),
}
SCHEDULES = {
    "polynomial": lambda o: lrs.PolynomialLR(o, 20, 1.5),
    "restarts": lambda o: lrs.CosineAnnealingWarmRestarts(o, 4, 2, 0.01),
    "one_cycle": lambda o: lrs.OneCycleLR(o, 0.5, total_steps=30, cycle_momentum=False),
    "swa": lambda o: optim.swa_utils.SWALR(o, 0.05, anneal_epochs=6),
    "swa_linear": lambda o: optim.swa_utils.SWALR(o, 0.05, anneal_epochs=6, anneal_strategy="linear"),
    "constant": lambda o: lrs.ConstantLR(o, 0.25, 4),
    "linear": lambda o: lrs.LinearLR(o, 1.0, 0.2, 8),
    "cyclic": lambda o: lrs.CyclicLR(o, 0.1, 0.5, step_size_up=3, step_size_down=5, cycle_momentum=False),
    "cyclic2": lambda o: lrs.CyclicLR(o, 0.1, 0.5, step_size_up=4, mode="triangular2", cycle_momentum=False),
    "step": lambda o: lrs.StepLR(o, 7, 0.3),
    "multi_step": lambda o: lrs.MultiStepLR(o, [3, 4, 15], 0.2),
    "exponential": lambda o: lrs.ExponentialLR(o, 0.9),
    "cosine": lambda o: lrs.CosineAnnealingLR(o, 24, 0.01),
    "warm_up": lambda o: lrs.LinearLR(o, 0.25, 1.0, 6),
    "chained": lambda o: lrs.ChainedScheduler([lrs.LinearLR(o, 0.25, 1.0, 6), lrs.ExponentialLR(o, 0.9)]),
    "then": lambda o: lrs.SequentialLR(o, [lrs.LinearLR(o, 0.25, 1.0, 5), lrs.CosineAnnealingLR(o, 20)], [5]),
}


def gradient(t, n=5):
    return torch.tensor([(1 + i / 10) * math.cos(3 * t + i) / (1 + t) for i in range(n)], dtype=torch.float64)


def trajectory(make):
    w = torch.tensor([math.sin(i + 1) for i in range(5)], dtype=torch.float64, requires_grad=True)
    optimizer, values = make([w]), []
    for t in range(10):
        w.grad = gradient(t)
        optimizer.step()
        values += w.tolist()
    return values


def matrix(name, make):
    shape = [int(n) for n in name.split("_")[1].split("x")]
    w = torch.tensor([math.sin(i + 1) for i in range(6)], dtype=torch.float64).reshape(shape).requires_grad_()
    optimizer, values = make([w]), []
    with mock.patch.object(torch, "bfloat16", torch.bfloat16 if "bfloat16" in name else torch.float64):
        for t in range(10):
            w.grad = gradient(t, 6).reshape(shape)
            optimizer.step()
            values += w.flatten().tolist()
    return values


def minimise(**options):
    x = torch.tensor([-1.2, 1.0, 0.5, 2.0], requires_grad=True)
    optimizer, values = optim.LBFGS([x], **options), []

    def closure():
        optimizer.zero_grad()
        loss = (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
        loss.backward()
        return loss

    for _ in range(5):
        loss = optimizer.step(closure)
        values += [*x.tolist(), loss.item(), float(optimizer.state[x]["func_evals"])]
    return values


def average(**options):
    model = torch.nn.BatchNorm1d(3)
    averaged, values = optim.swa_utils.AveragedModel(model, **options), []
    for t in range(5):
        with torch.no_grad():
            model.weight.copy_(gradient(t, 3))
            model.bias.copy_(gradient(t + 1, 3))
        model(gradient(t, 6).reshape(2, 3))
        averaged.update_parameters(model)
        inner = averaged.module
        values += [*inner.weight.tolist(), *inner.bias.tolist(), *inner.running_mean.tolist(), float(inner.num_batches_tracked)]
    return values


def groups(make):
    start = torch.tensor([math.sin(i + 1) for i in range(5)], dtype=torch.float64)
    a, b = (x.clone().requires_grad_() for x in (start[:3], start[3:]))
    optimizer = make([a], [b])
    schedule, values, rates = lrs.CosineAnnealingLR(optimizer, 8, 0.01), [], []
    for t in range(10):
        a.grad, b.grad = gradient(t)[:3], gradient(t)[3:]
        optimizer.step()
        schedule.step()
        values += a.tolist() + b.tolist()
        rates += [g["lr"] for g in optimizer.param_groups]
    return values + rates


def rates(make):
    optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
    schedule, values = make(optimizer), []
    for _ in range(25):
        values.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return values


def write(name, table):
    text = "".join(",".join([key, *map(repr, values)]) + "\n" for key, values in table.items())
    Path(__file__).with_name(name).write_text(text)


write("trajectories.csv", {name: trajectory(make) for name, make in OPTIMIZERS.items()})
write("matrices.csv", {name: matrix(name, make) for name, make in MATRICES.items()})
LBFGS = {
    "plain": minimise(lr=0.05, max_iter=8),
    "short": minimise(lr=0.02, max_iter=8, history_size=2),
    "wolfe": minimise(line_search_fn="strong_wolfe", max_iter=6),
    "wolfe_short": minimise(line_search_fn="strong_wolfe", max_iter=7, history_size=3),
    "wolfe_few": minimise(line_search_fn="strong_wolfe", lr=3, max_iter=4, max_eval=5),
}
write("lbfgs.csv", LBFGS)
ema = optim.swa_utils.get_ema_multi_avg_fn(0.9)
averages = {"swa": average(), "ema": average(multi_avg_fn=ema), "ema_buffers": average(multi_avg_fn=ema, use_buffers=True)}
write("averages.csv", averages)
write("groups.csv", {name: groups(make) for name, make in GROUPS.items()})
write("schedules.csv", {name: rates(make) for name, make in SCHEDULES.items()})
