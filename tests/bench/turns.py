#!/usr/bin/env python3
"""Times rows of several programs in turns and prints medians of times and of ratios.

Usage: turns.py TURNS PROGRAM... where each PROGRAM is one argument, a command line.

Both sides of a ratio run directly one after the other, first the one, then the other, in the next turn the other way round; a
ratio is the median over turns of the quotient within a turn. What other work on the machine costs then falls on both.
"""
import shlex
import statistics
import subprocess
import sys
import time

FORMULA = "sigmoid(a*b+c)*tanh(d)"
RATIOS = [  # what, rival, ours, whether bytes per second are compared
    (f"{FORMULA}: Eigen's time / ours", "eigen formula", "sinter formula", False),
    (f"{FORMULA}: PyTorch's time / ours", "torch formula", "sinter formula", False),
    ("backward's bytes per second / forward's", "sinter formula", "sinter formula backward", True),
    ("a+b: hand-written loop's time / ours", "hand a+b", "sinter a+b", False),
    ("softmax: PyTorch's time / ours", "torch softmax", "sinter softmax", False),
    ("layer norm: PyTorch's time / ours", "torch layer_norm", "sinter layer_norm", False),
    ("layer norm: time of a hand-written copy / ours", "hand copy of rows", "sinter layer_norm", False),
    ("layer norm from mean and square: PyTorch's time / ours", "torch layer_norm", "sinter layer_norm from mean and square", False),
    ("transposed copy: PyTorch's time / ours", "torch transposed copy", "sinter transposed copy", False),
    ("index_select of rows: PyTorch's time / ours", "torch index_select", "sinter index_select", False),
    ("argmax of rows: PyTorch's time / ours", "torch argmax of rows", "sinter argmax of rows", False),
    ("mlp step, batch 128: PyTorch's time / ours", "torch mlp batch 128", "sinter mlp batch 128", False),
    ("mlp step, batch 1024: PyTorch's time / ours", "torch mlp batch 1024", "sinter mlp batch 1024", False),
]


class Program:
    """A running program and the rows that it offers, name: bytes."""

    def __init__(self, command):
        self.command = command
        self.process = subprocess.Popen(shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.rows = {}
        while line := self.line():
            name, count = line.split("\t")
            self.rows[name] = float(count)

    def line(self):
        text = self.process.stdout.readline()
        if not text:
            sys.exit(f"turns.py: '{self.command}' ended with code {self.process.wait()}")
        return text.rstrip("\n")

    def milliseconds(self, name):
        print(name, file=self.process.stdin, flush=True)
        return float(self.line())


def serve(rows):
    """What a program in Python does that Program runs, as rows.hpp has it: rows are name: (runs in a turn, what is timed)."""
    print("".join(f"{name}\t0\n" for name in rows), flush=True)
    for line in sys.stdin:
        repeats, run = rows[line.rstrip("\n")]
        times = []
        start = time.perf_counter()
        while True:  # does not count, as in rows.hpp
            run()
            if time.perf_counter() - start > 0.02:
                break
        for _ in range(repeats):
            begin = time.perf_counter()
            run()
            times.append(time.perf_counter() - begin)
        print(f"{1e3 * statistics.median(times):.4f}", flush=True)


def main(turns, commands):
    programs = [Program(c) for c in commands]
    offers = {name: p for p in programs for name in p.rows}

    def timed(name):
        time.sleep(0.02)  # threads of the row before may still spin: 10 ms after a row of PyTorch
        return offers[name].milliseconds(name)

    times, ratios = {}, []
    for what, rival, ours, by_bytes in RATIOS:
        if rival not in offers:  # ours alone
            times[ours] = times.get(ours) or [timed(ours) for _ in range(turns)]
            continue
        scale = offers[ours].rows[ours] / offers[rival].rows[rival] if by_bytes else 1.0
        for name in (rival, ours):
            timed(name)
        quotients = []
        for turn in range(turns):
            once = {name: timed(name) for name in ((rival, ours) if turn % 2 == 0 else (ours, rival))}
            quotients.append(scale * once[rival] / once[ours])
            for name, ms in once.items():
                times.setdefault(name, []).append(ms)
        ratios.append((what, statistics.quantiles(quotients, n=4)))
    for name, values in times.items():
        median = statistics.median(values)
        count = offers[name].rows[name]
        rate = f"  {count / median / 1e6:6.1f} GB/s" if count else ""
        print(f"  {name:42s} {median:9.2f} ms  ({min(values):.2f} to {max(values):.2f}){rate}")
    for what, (low, median, high) in ratios:
        print(f"  {what:58s} {median:5.2f}  (half of the turns {low:.2f} to {high:.2f})")


if __name__ == "__main__":
    if len(sys.argv) < 3 or not sys.argv[1].isdigit() or int(sys.argv[1]) < 2:
        sys.exit(__doc__ + "\nTURNS is 2 or more.")
    main(int(sys.argv[1]), sys.argv[2:])
