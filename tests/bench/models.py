#!/usr/bin/env python3
"""Times a training step of the networks of examples/models beside PyTorch's, as a Markdown table and bars.

A step is forward, loss, backward and update, the input in memory. In each turn every side runs once, directly one after the other, in
turns forwards and backwards; a ratio is the median over turns of PyTorch's time by Sinter's within a turn. PyTorch runs with its
tensors contiguous and, where there are images, channels_last; the better one counts. It allocates without giving memory back, so that
it pays no page faults for results. On a GPU PyTorch computes in float, too, without TF32. Memory is the peak of the process, for PyTorch with what importing it takes. Compile time is
processor time; the binary is stripped.
"""
import argparse
import os
import shlex
import statistics
import subprocess
import sys
import time
from pathlib import Path

from turns import Program

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OUT = ROOT / "build" / "bench"
NETWORKS = {  # name: title, type, arguments in front of the generator, a sample, classes, batch
    "fcn_s": ("FCN-S", "models::fcn_s<DEVICE>", "", "26752", 26752, 64),
    "alexnet_s": ("AlexNet-S", "models::alexnet_s<DEVICE>", "", "3, 224, 224", 1000, 16),
    "resnet50": ("ResNet-50", "models::resnet50<DEVICE>", "", "3, 224, 224", 1000, 16),
    "fcn_r": ("FCN-R", "models::fcn_r<DEVICE>", "", "784", 10, 1024),
    "alexnet_r": ("AlexNet-R", "models::alexnet_r<DEVICE>", "", "3, 32, 32", 10, 1024),
    "resnet56": ("ResNet-56", "models::resnet_cifar<models::resnet_variant::torch, DEVICE>", "56,", "3, 32, 32", 10, 128),
}
KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_TOP_PAD_": str(64 << 20)}


def build(name, options):
    """The program of a network: path, seconds of processor time, peak MiB of the compiler, MiB of the binary."""
    _, kind, arguments, sample, classes, batch = NETWORKS[name]
    cuda = options.device == "cuda"
    program = OUT / f"models_{name}{'_cuda' * cuda}"
    if options.build == "no":
        return program, 0, 0, 0
    defines = {"NAME": f'"{name}"', "NETWORK": kind, "ARGUMENTS": arguments, "SAMPLE": sample, "CLASSES": classes, "BATCH": batch,
               "DEVICE": "cuda<0>" if cuda else "cpu"}
    kind_of_source, libraries = (["-x", "cu"], ["-lcublasLt"]) if cuda else ([], ["-pthread", "-s"])
    source = program.with_suffix(".cpp")
    source.write_text("".join(f"#define {k} {v}\n" for k, v in defines.items()) + f'#include "{HERE / "models.cpp"}"\n')
    command = [options.compiler, "-std=c++20", *shlex.split(options.flags), "-I",
               str(ROOT / "include"), "-isystem", options.eigen, *kind_of_source, str(source), "-o", str(program), *libraries]
    child = subprocess.Popen(command)
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"models.py: the program of {name} does not compile")
    return program, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, program.stat().st_size / 2**20


class Side(Program):
    """A program with one row; its times in milliseconds, by the clock and of the processor."""

    def __init__(self, command):
        super().__init__(command)
        (self.name,) = self.rows
        self.wall, self.cpu = [], []

    def processor_ticks(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    def turn(self, count=True):
        before = self.processor_ticks()
        wall = self.milliseconds(self.name)
        if count:
            self.wall.append(wall)
            self.cpu.append(1e3 * (self.processor_ticks() - before) / os.sysconf("SC_CLK_TCK"))

    def peak_mib(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def measure(name, program, threads, options):
    """Ours, and PyTorch's layouts (none where there is no PyTorch), after all turns."""
    ours = Side(f"{shlex.quote(str(program))} {threads}")
    layouts = [] if options.python is None else ["contiguous"] + ["channels_last"] * (not name.startswith("fcn"))
    settings = " ".join(f"{k}={v}" for k, v in KEEP_MEMORY.items())
    theirs = [Side(f"env {settings} {shlex.quote(options.python)} {shlex.quote(str(HERE / 'models_torch.py'))} {threads} {name} {layout} {options.device}")
              for layout in layouts]
    sides = [ours, *theirs]
    for side in sides:
        for _ in range(2):  # memory is new in the first one
            side.turn(count=False)
    for turn in range(options.turns):
        for side in sides if turn % 2 == 0 else sides[::-1]:
            time.sleep(0.01)  # threads of the one before may still spin
            side.turn()
    memory = [side.peak_mib() for side in sides]
    for side in sides:
        side.end()
    return sides, memory


def ratio(theirs, ours):
    return statistics.median(a / b for a, b in zip(theirs, ours))


def bars(rows, path):
    """An SVG: for each row (title, threads, our ms, their ms) a pair of bars, as parts of the longer one of the network."""
    height = 34
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="760" height="{height * len(rows) + 60}" font-family="sans-serif" font-size="13">',
             '<rect width="100%" height="100%" fill="white"/>',
             '<text x="16" y="24" font-size="15">Training step, ms: Sinter (dark) and PyTorch (light)</text>']
    for i, (title, threads, ours, theirs) in enumerate(rows):
        y, longer = 44 + height * i, max(ours, theirs or 0)
        lines.append(f'<text x="16" y="{y + 17}">{title}, {threads} thread{"s" * (threads > 1)}</text>')
        for offset, value, colour in ((0, ours, "#1f4e79"), (12, theirs, "#f0a35c")):
            if value is not None:
                lines.append(f'<rect x="190" y="{y + offset}" width="{470 * value / longer:.1f}" height="11" fill="{colour}"/>'
                             f'<text x="{196 + 470 * value / longer:.1f}" y="{y + offset + 10}" font-size="11">{value:.0f}</text>')
    path.write_text("\n".join([*lines, "</svg>"]) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS), metavar="NETWORK",
                        help=f"of {', '.join(NETWORKS)} (default: all)")
    parser.add_argument("--turns", type=int, default=11, help="steps of each side that count, 1 or more (default: 11)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="thread counts (default: 1 2)")
    parser.add_argument("--python", default="python3", help="a Python with PyTorch (default: python3)")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="of both sides; cuda is compiled by nvcc (default: cpu)")
    parser.add_argument("--build", choices=["yes", "only", "no"], default="yes", help="no: run what an earlier call has built (default: yes)")
    parser.add_argument("--compiler", help="default: $CXX, else g++; for cuda nvcc")
    parser.add_argument("--flags", help="of the compiler (default: -O3 -march=native; for cuda as tests/gpu/run.sh)")
    parser.add_argument("--eigen", default="/usr/include/eigen3", help="Eigen's headers (default: /usr/include/eigen3)")
    parser.add_argument("--svg", type=Path, default=OUT / "models.svg", help="the bars (default: build/bench/models.svg)")
    options = parser.parse_args()
    if options.turns < 1:
        parser.error("--turns needs 1 or more")
    if options.device == "cuda":
        options.threads = [1]
    options.compiler = options.compiler or ("nvcc" if options.device == "cuda" else os.environ.get("CXX", "g++"))
    options.flags = options.flags or ("-O3 -march=native" if options.device == "cpu" else
                                      "--expt-relaxed-constexpr -O2 -arch=native -Xcompiler=-march=native")
    OUT.mkdir(parents=True, exist_ok=True)
    if options.build == "only":
        for name in options.networks:
            build(name, options)
        return
    found = subprocess.run([options.python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
    if found.returncode != 0:
        print(f"no PyTorch in {options.python}: its columns stay empty", file=sys.stderr)
        options.python = None
    cpu = [line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    print(f"{cpu[0]}, {len(cpu)} cores; {options.compiler} {options.flags}; PyTorch {found.stdout.strip() or 'not there'}; "
          f"medians of {options.turns} turns\n")
    print("| network (batch) | threads | Sinter, ms | PyTorch, ms | its layout | PyTorch / Sinter | of processor time | "
          "memory, MiB | PyTorch's | compile, s | compiler, MiB | binary, MiB |\n" + "| --- " * 12 + "|")
    rows = []
    for name in options.networks:
        program, seconds, compiler_mib, binary_mib = build(name, options)
        for threads in options.threads:
            (ours, *theirs), (mib, *their_mib) = measure(name, program, threads, options)
            cells, best_ms = ["–"] * 4, None
            if theirs:
                k = min(range(len(theirs)), key=lambda i: statistics.median(theirs[i].wall))
                best, best_ms = theirs[k], statistics.median(theirs[k].wall)
                cells = [f"{best_ms:.0f}", best.name.split()[-1], f"**{ratio(best.wall, ours.wall):.2f}**", f"{ratio(best.cpu, ours.cpu):.2f}"]
            rows.append((NETWORKS[name][0], threads, statistics.median(ours.wall), best_ms))
            cells = [f"{NETWORKS[name][0]} ({NETWORKS[name][5]})", str(threads), f"{rows[-1][2]:.0f}", *cells, f"{mib:.0f}",
                     f"{their_mib[k]:.0f}" if theirs else "–", f"{seconds:.1f}", f"{compiler_mib:.0f}", f"{binary_mib:.2f}"]
            print("| " + " | ".join(cells) + " |", flush=True)
    bars(rows, options.svg)
    print(f"\nwrote {options.svg}")


if __name__ == "__main__":
    main()
