#!/usr/bin/env python3
"""Times convolutions, their gradients, and products of matrices beside PyTorch, for shapes of DeepBench (github.com/baidu-research/DeepBench).

The program is built with -O2 for any x86-64 processor, by sinter::compiled and sinter_variants(). PyTorch computes convolutions with its tensors
contiguous and channels_last; the better one counts. A ratio is the median over turns of quotients within a turn. Prints a table, geometric means,
and the least ratio of each kind. Installs what is missing, with apt-get, as root or with sudo.
"""
import argparse
import csv
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import turns

HERE = Path(__file__).resolve().parent
OUT = HERE.parent.parent / "build" / "bench" / "shapes"
MOST = 16  # images of a batch
# batch, channels, height, width, filters, kernel, padding, strides
CONVOLUTIONS = """
4 1 161 700 32 5 20 0 0 2 2      4 32 79 341 32 5 10 0 0 2 2      16 1 48 480 16 3 3 1 1 1 1       16 16 24 240 32 3 3 1 1 1 1
16 32 12 120 64 3 3 1 1 1 1      16 64 6 60 128 3 3 1 1 1 1       8 3 108 108 64 3 3 1 1 2 2       8 64 54 54 64 3 3 1 1 1 1
8 128 27 27 128 3 3 1 1 1 1      8 256 7 7 512 3 3 1 1 1 1        8 3 224 224 64 3 3 1 1 1 1       8 512 14 14 512 3 3 1 1 1 1
16 3 224 224 64 7 7 3 3 2 2      16 192 28 28 32 5 5 2 2 1 1      16 512 14 14 192 1 1 0 0 1 1     16 832 7 7 128 5 5 2 2 1 1
8 64 56 56 256 1 1 0 0 2 2       16 256 14 14 1024 1 1 0 0 1 1    8 2048 7 7 512 1 1 3 3 2 2       16 1 161 700 64 5 5 1 1 2 2
"""
# M, N, K, and whether A and B are transposed
PRODUCTS = """
1760 16 1760 0 0      1760 128 1760 1 0     2048 32 2048 0 0      2560 64 2560 1 0      4096 16 4096 0 0      4096 128 4096 1 0     35 700 2048 0 0
3072 128 1024 0 0     1024 700 512 1 0      512 1500 2816 0 0     1024 3000 1536 0 0    3072 1500 128 0 0     512 4 512 0 0         1024 16 512 0 1
"""


def groups(text, width):
    words = text.split()
    return [words[i:i + width] for i in range(0, len(words), width)]


def shapes(options):
    """The lines of the file that both sides read."""
    if options.convolutions:
        rows = csv.DictReader(options.convolutions.open())
        found = [[str(min(int(r["n"]), MOST)), *(r[k] for k in ("c", "h", "w", "k", "r_filter_h", "s_filter_w", "pad_h", "pad_w", "hstride", "wstride"))]
                 for r in rows]
    else:
        found = groups(CONVOLUTIONS, 11)
    lines = [" ".join(["conv", *f]) for f in found]
    if options.products:
        rows = csv.DictReader(options.products.open())
        found = [[r["m"], r["n"], r["k"], str(int(r["a_t"] == "true")), str(int(r["b_t"] == "true"))] for r in rows
                 if max(int(r[k]) for k in ("m", "n", "k")) <= 4096]
    else:
        found = groups(PRODUCTS, 5)
    lines += [" ".join(["product", *f]) for f in found]
    return list(dict.fromkeys(lines))


def serve(file, threads):
    """What the process of PyTorch does: rows as shapes.cpp has them, those of convolutions for each layout."""
    import torch
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    rows = {}
    for line in file.read_text().splitlines():
        kind, *numbers = line.split()
        numbers = [int(v) for v in numbers]
        if kind == "product":
            m, n, k, a_t, b_t = numbers
            a = torch.randn(k, m).t() if a_t else torch.randn(m, k)
            b = torch.randn(n, k).t() if b_t else torch.randn(k, n)
            rows[line] = (3, lambda a=a, b=b: a @ b)
            continue
        n, c, h, w, f, r, s, ph, pw, sh, sw = numbers
        for layout in (torch.contiguous_format, torch.channels_last):
            x = torch.randn(n, c, h, w).to(memory_format=layout)
            weights = torch.randn(f, c, r, s).to(memory_format=layout)
            name = "channels_last" if layout == torch.channels_last else "contiguous"

            def convolve(x, weights, padding=(ph, pw), stride=(sh, sw)):
                return torch.nn.functional.conv2d(x, weights, padding=padding, stride=stride)

            rows[f"{line} forward {name}"] = (1, lambda x=x, weights=weights, convolve=convolve: convolve(x, weights))
            for what, leaf in (("data", x), ("weights", weights)):
                a, b = (x.clone().requires_grad_(), weights) if what == "data" else (x, weights.clone().requires_grad_())
                y = convolve(a, b)
                g = torch.randn_like(y).to(memory_format=layout)
                rows[f"{line} {what} {name}"] = (1, lambda y=y, to=a if what == "data" else b, g=g: torch.autograd.grad(y, to, g, retain_graph=True))
    turns.serve(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--convolutions", type=Path, help="a CSV file of DeepBench in place of the 20 shapes here; batches are cut to 16")
    parser.add_argument("--products", type=Path, help="the same for products, of extents up to 4096")
    parser.add_argument("--python", help="a Python with PyTorch (default: that of build/torch, if it is there, else python3)")
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--eigen", default="/usr/include/eigen3")
    options = parser.parse_args()
    import setup
    python = options.python or setup.install(options.compiler, False, options.eigen)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "shapes.txt").write_text("\n".join(shapes(options)) + "\n")
    (OUT / "shapes.cpp").write_text(f'#include "{HERE / "shapes.cpp"}"\n')
    subprocess.run(["cmake", "-S", HERE / "programs", "-B", OUT / "build", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG",
                    f"-DCMAKE_CXX_COMPILER={options.compiler}", "-DNAMES=shapes", f"-DSOURCES={OUT}", f"-DMAIN={HERE / 'rows_main.cpp'}",
                    f"-DCMAKE_INCLUDE_PATH={options.eigen}"], stdout=subprocess.DEVNULL, check=True)
    subprocess.run(["cmake", "--build", OUT / "build", "--target", "shipped_shapes", "-j2"], stdout=subprocess.DEVNULL, check=True)
    for threads in options.threads:
        os.environ["SINTER_NUM_THREADS"] = str(threads)
        ours = turns.Program(f"{OUT / 'build' / 'shipped_shapes'} {OUT / 'shapes.txt'}")
        theirs = turns.Program(f"{python} {HERE / 'shapes.py'} serve {OUT / 'shapes.txt'} {threads}")
        print(f"| {threads} thread{'s' * (threads > 1)} | Sinter, ms | PyTorch, ms | PyTorch / Sinter |\n| --- | --- | --- | --- |")
        ratios = {}
        for name in ours.rows:
            rivals = [name] if name in theirs.rows else [f"{name} contiguous", f"{name} channels_last"]
            times = {rival: [] for rival in rivals}
            own = []
            for turn in range(-1, options.turns):
                sides = [(ours, name, own), *((theirs, rival, times[rival]) for rival in rivals)]
                for side, row, taken in sides if turn % 2 == 0 else sides[::-1]:
                    milliseconds = side.milliseconds(row)
                    time.sleep(0.02)  # threads of one side may still spin: PyTorch's do for 10 ms
                    if turn >= 0:
                        taken.append(milliseconds)
            best = min(times.values(), key=statistics.median)
            ratio = statistics.median(b / a for a, b in zip(own, best))
            ratios.setdefault(name.split()[-1] if name.startswith("conv") else "product", []).append(ratio)
            print(f"| {name} | {statistics.median(own):.3f} | {statistics.median(best):.3f} | {ratio:.2f} |", flush=True)
        print()
        for kind, values in ratios.items():
            print(f"{threads} thread{'s' * (threads > 1)}, {kind}: geometric mean {statistics.geometric_mean(values):.2f}, least {min(values):.2f}")
        ours.process.kill()
        theirs.process.kill()


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        main()
