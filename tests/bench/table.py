#!/usr/bin/env python3
"""Medians and ratios of the rows that tests/bench/run.sh gathered: name, milliseconds, bytes."""
import statistics
import sys

times, moved = {}, {}
for line in open(sys.argv[1]):
    name, ms, count = line.rstrip("\n").split("\t")
    times.setdefault(name, []).append(float(ms))
    moved[name] = float(count)
median = {name: statistics.median(values) for name, values in times.items()}
for name in times:
    rate = f"  {moved[name] / median[name] / 1e6:6.1f} GB/s" if moved[name] else ""
    print(f"  {name:34s} {median[name]:9.2f} ms  ({min(times[name]):.2f} to {max(times[name]):.2f}){rate}")


def ratio(what, over, under, scale=1.0):
    if over in median and under in median:
        print(f"  {what:58s} {scale * median[over] / median[under]:.2f}")


formula = "sigmoid(a*b+c)*tanh(d)"
ratio(f"{formula}: Eigen's time / ours", f"eigen {formula}", f"sinter {formula}")
backward = f"sinter {formula}", "sinter backward of it"
if all(b in median for b in backward):
    ratio("backward's bytes per second / forward's", *backward, moved[backward[1]] / moved[backward[0]])
ratio("a+b: hand-written loop's time / ours", "hand a+b", "sinter a+b")
for name in ("softmax", "layer_norm", formula, "mlp batch 128", "mlp batch 1024"):
    ratio(f"{name}: PyTorch's time / ours", f"torch {name}", f"sinter {name}")
