#!/usr/bin/env python3
"""Prints how fast the library's kernels are in programs built with plain -O2, as a part of their speed with -march=native.

Usage: kernels.py [TURNS [COMPILER]] (default: 21 g++). Three programs of kernels.cpp run every row in turns, directly one after the
other, in turns forwards and backwards; a figure is the median over turns of the quotient within a turn.
Installs what is missing, with apt-get, as root or with sudo.
"""
import statistics
import subprocess
import sys
from pathlib import Path

import setup
from turns import Program

HERE = Path(__file__).resolve().parent
OUT = HERE.parent.parent / "build" / "bench" / "kernels"
KINDS = ["headers", "compiled", "native"]


def main(turns, compiler):
    setup.install(compiler)
    subprocess.run(["cmake", "-S", HERE / "kernels", "-B", OUT, "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG",
                    f"-DCMAKE_CXX_COMPILER={compiler}"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", OUT, "-j2"], check=True, stdout=subprocess.DEVNULL)
    programs = {kind: Program(str(OUT / kind)) for kind in KINDS}
    print("| | headers only, -O2 | `sinter::compiled`, -O2 | ms with -march=native |\n| --- | --- | --- | --- |")
    for row in programs["native"].rows:
        times = {kind: [] for kind in KINDS}
        for turn in range(turns):
            for kind in KINDS if turn % 2 == 0 else KINDS[::-1]:
                times[kind].append(programs[kind].milliseconds(row))
        cells = [f"{statistics.median(n / t for n, t in zip(times['native'], times[kind])):.2f}" for kind in KINDS[:2]]
        print(f"| {row} | {' | '.join(cells)} | {statistics.median(times['native']):.3f} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__)
        sys.exit()
    if len(sys.argv) > 3 or (len(sys.argv) > 1 and not sys.argv[1].isdigit()):
        sys.exit(__doc__)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 21, sys.argv[2] if len(sys.argv) > 2 else "g++")
