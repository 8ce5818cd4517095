#!/usr/bin/env python3
"""Times attention, LSTMs, generating and tables beside PyTorch: milliseconds, and ratios as medians of those of the single turns.

Usage: sequences.py [--turns N] [--threads LIST] [--python PROGRAM | --install-rival] [--compiler C++]
In a turn every row runs once on either side, directly one after the other. Installs what is missing, with apt-get, as root or with sudo.
"""
import argparse
import statistics
import subprocess
from pathlib import Path

import setup
from turns import Program

HERE = Path(__file__).resolve().parent
OUT = HERE.parent.parent / "build" / "bench"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=11)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--python", help="a Python with PyTorch (default: that of build/torch, if it is there, else python3)")
    parser.add_argument("--install-rival", action="store_true", help=setup.RIVAL_HELP)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--eigen", default="/usr/include/eigen3")
    options = parser.parse_args()
    found = setup.install(options.compiler, options.install_rival, options.eigen)
    python = options.python or found
    OUT.mkdir(parents=True, exist_ok=True)
    program = OUT / "sequences"
    subprocess.run([options.compiler, "-std=c++20", "-O2", "-march=native", "-I", HERE.parent.parent / "include", "-isystem", options.eigen,
                    HERE / "sequences.cpp", "-o", program, "-lpthread"], check=True)
    for threads in options.threads:
        ours, theirs = Program(f"{program} {threads}"), Program(f"{python} {HERE / 'sequences_torch.py'} {threads}")
        times = {name: ([], []) for name in ours.rows}
        for turn in range(-1, options.turns):
            for name, (a, b) in times.items():
                sides = [(ours, a)] + [(theirs, b)] * (name in theirs.rows)
                for side, list in sides if turn % 2 == 0 else sides[::-1]:
                    milliseconds = side.milliseconds(name)
                    if turn >= 0:
                        list.append(milliseconds)
        print(f"| {threads} thread{'s' * (threads > 1)} | Sinter, ms | PyTorch, ms | PyTorch / Sinter |\n| --- | --- | --- | --- |")
        for name, (a, b) in times.items():
            cells = [f"{statistics.median(b):.2f}", f"**{statistics.median(y / x for x, y in zip(a, b)):.2f}**"] if b else ["", ""]
            print(f"| {name} | {statistics.median(a):.2f} | {' | '.join(cells)} |")
        padded, packed = (times[name][0] for name in ("LSTM, 128 x 32", "LSTM, lengths 1 to 32"))
        real = sum(1 + i * 37 % 32 for i in range(128)) / (128 * 32)
        per_word = statistics.median(real * x / y for x, y in zip(padded, packed))
        large, read = times["100 tokens, GPT of 50 M parameters"][0], times["reading 200 MB"][0]
        of_limit = statistics.median(100 * y / x for x, y in zip(large, read))
        print(f"\nA word of a packed batch costs {1 / per_word:.2f} of one of a padded batch. The large GPT writes at {of_limit:.2f} of what memory allows:"
              " reading its weights once for each token.\n")


if __name__ == "__main__":
    main()
