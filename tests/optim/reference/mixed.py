#!/usr/bin/env python3
"""Writes mixed.csv from PyTorch, whose float master weights are kept by hand. Needs torch.

adamw_bfloat16: the 5 masters after each of 10 steps of AdamW. Parameters start at sin(i + 1) in bfloat16; the gradient of step t is
(1 + i / 10) cos(3 t + i) / (1 + t) in bfloat16.
sgd_half: the same with SGD and torch.amp.GradScaler, where the gradient times the scale is rounded to half, and that of step 4 is 8
times as large: after each step the 5 masters, the scale, and whether the step was taken.
network: losses before each of 40 steps of a network of bfloat16, 3 -> 8 -> 1, with SGD of rate 0.02 and momentum 0.9.
"""
import math
from pathlib import Path

import torch
from torch import optim


def start(dtype, n=5):
    return torch.tensor([math.sin(i + 1) for i in range(n)], dtype=torch.float32).to(dtype)


def gradient(t):
    return torch.tensor([(1 + i / 10) * math.cos(3 * t + i) / (1 + t) for i in range(5)], dtype=torch.float32)


def take_gradient(master, parameter):
    master.grad = parameter.grad.float()
    parameter.grad = None


def adamw_bfloat16():
    p = start(torch.bfloat16).requires_grad_()
    master = p.detach().float().requires_grad_()
    optimizer, values = optim.AdamW([master], lr=0.001), []
    for t in range(10):
        p.grad = gradient(t).bfloat16()
        take_gradient(master, p)
        optimizer.step()
        p.data.copy_(master.data)
        values += master.tolist()
    return values


def sgd_half():
    p = start(torch.half).requires_grad_()
    master = p.detach().float().requires_grad_()
    optimizer, values = optim.SGD([master], lr=0.001), []
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**17, growth_interval=3)
    for t in range(10):
        (scaler.scale((p.float() * gradient(t)).sum()) * (8 if t == 4 else 1)).backward()
        before = master.tolist()
        take_gradient(master, p)
        scaler.step(optimizer)
        scaler.update()
        p.data.copy_(master.data)
        values += [*master.tolist(), scaler.get_scale(), float(master.tolist() != before)]
    return values


def network():
    sizes = [(8, 3), (8,), (1, 8), (1,)]
    parameters, count = [], 0
    for size in sizes:
        n = math.prod(size)
        parameters.append((0.5 * start(torch.float32, count + n)[count:]).reshape(size).bfloat16().requires_grad_())
        count += n
    masters = [p.detach().float().requires_grad_() for p in parameters]
    x = torch.tensor([math.cos(i) for i in range(48)], dtype=torch.float32).reshape(16, 3)
    y = x.sum(1, keepdim=True) / 2
    optimizer, values = optim.SGD(masters, lr=0.02, momentum=0.9), []
    for _ in range(40):
        w1, b1, w2, b2 = parameters
        hidden = torch.tanh(torch.nn.functional.linear(x.bfloat16(), w1, b1))
        loss = ((torch.nn.functional.linear(hidden, w2, b2).float() - y) ** 2).mean()
        loss.backward()
        values.append(loss.item())
        for master, p in zip(masters, parameters):
            take_gradient(master, p)
        optimizer.step()
        for master, p in zip(masters, parameters):
            p.data.copy_(master.data)
    return values


table = {"adamw_bfloat16": adamw_bfloat16(), "sgd_half": sgd_half(), "network": network()}
text = "".join(",".join([key, *(f"{value:.9g}" for value in values)]) + "\n" for key, values in table.items())
Path(__file__).with_name("mixed.csv").write_text(text)
