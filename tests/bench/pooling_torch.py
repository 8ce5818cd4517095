#!/usr/bin/env python3
"""The rows of pooling.cpp in PyTorch, channels-last: milliseconds of processor time, one thread, best of nine runs.

    "$(bash tests/bench/setup.sh --install-rival)" tests/bench/pooling_torch.py [NAME]
"""
import sys
import time

import torch

F = torch.nn.functional
ROWS = [
    ("max 3 s2 p1 64 112 b16", True, 16, 64, 112, 3, 2, 1),
    ("max 2 s2 64 112 b16", True, 16, 64, 112, 2, 2, 0),
    ("max 2 s2 16 32 b128", True, 128, 16, 32, 2, 2, 0),
    ("max 3 s1 p1 192 28 b16", True, 16, 192, 28, 3, 1, 1),
    ("max 2 s2 24 56 b4", True, 4, 24, 56, 2, 2, 0),
    ("max 2 s2 256 14 b4", True, 4, 256, 14, 2, 2, 0),
    ("max global 512 7 b32", True, 32, 512, 7, 0, 0, 0),
    ("avg 3 s2 p1 64 112 b16", False, 16, 64, 112, 3, 2, 1),
    ("avg 2 s2 64 112 b16", False, 16, 64, 112, 2, 2, 0),
    ("avg 2 s2 16 32 b128", False, 128, 16, 32, 2, 2, 0),
    ("avg 3 s1 p1 192 28 b16", False, 16, 192, 28, 3, 1, 1),
    ("avg global 512 7 b32", False, 32, 512, 7, 0, 0, 0),
]


def best_ms(f):
    f()
    times = []
    for _ in range(9):
        begin = time.process_time()
        f()
        times.append(time.process_time() - begin)
    return 1e3 * min(times)


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    torch.set_num_threads(1)
    print(f"{'pooling':<28} {'infer':>8} {'forward':>8} {'backward':>8} ms")
    for name, is_max, batch, channels, extent, kernel, stride, padding in ROWS:
        if wanted not in name:
            continue
        x = torch.randn(batch, channels, extent, extent).to(memory_format=torch.channels_last)
        if kernel == 0:
            op = (lambda v: F.adaptive_max_pool2d(v, 1)) if is_max else (lambda v: F.adaptive_avg_pool2d(v, 1))
        elif is_max:
            op = lambda v: F.max_pool2d(v, kernel, stride, padding)
        else:
            op = lambda v: F.avg_pool2d(v, kernel, stride, padding)
        with torch.no_grad():
            infer = best_ms(lambda: op(x))
        x.requires_grad_(True)
        forward = best_ms(lambda: op(x))
        y = op(x)
        g = torch.randn_like(y)
        backward = best_ms(lambda: torch.autograd.grad(y, x, g, retain_graph=True))
        print(f"{name:<28} {infer:8.2f} {forward:8.2f} {backward:8.2f}", flush=True)


if __name__ == "__main__":
    main()
