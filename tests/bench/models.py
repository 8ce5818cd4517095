#!/usr/bin/env python3
"""Times a training step of the networks of examples/models beside PyTorch's, as Markdown tables and bars.

A step is forward, loss, backward and update, the input in memory. The program is `shipped`: built with -O2 for any x86-64 processor, by
sinter::compiled and sinter_variants(), which choose the instructions when it starts. Beside it run `native`, headers only with -march=native, and
on demand `compiled`, which links sinter::compiled and computes statements by the instructions that every processor has. In each turn every side
runs once, directly one after the other, in turns forwards and backwards; a ratio is the median over turns of quotients within a turn.
PyTorch runs with its tensors contiguous and, where there are images, channels_last; the better one counts. It allocates without giving
memory back, so that it pays no page faults for results. On a GPU PyTorch computes in float, too, without TF32. Memory is the peak of the process,
for PyTorch with what importing it takes. Compile time is processor time; binaries are stripped.

Installs what is missing, with apt-get, as root or with sudo.
"""
import argparse
import os
import shlex
import statistics
import subprocess
import sys
import time
from pathlib import Path

import setup
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
    "lstm": ("LSTM", "models::word_lstm<DEVICE>", "{},", "32", 10000, 128),
    "gpt": ("GPT", "models::gpt<DEVICE>", "{},", "128", 256, 16),
    "resnet56": ("ResNet-56", "models::resnet_cifar<models::resnet_variant::torch, DEVICE>", "56,", "3, 32, 32", 10, 128),
}
SEQUENCES = ("lstm", "gpt")  # a sample is so many words
KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_TOP_PAD_": str(64 << 20)}


def write_source(name, device, more=()):
    """The source of a network's step."""
    body = ["models_words.cpp" if name in SEQUENCES else "models.cpp", *more]
    _, kind, arguments, sample, classes, batch = NETWORKS[name]
    defines = {"NETWORK": kind, "ARGUMENTS": arguments, "SAMPLE": sample, "CLASSES": classes, "BATCH": batch, "DEVICE": device}
    source = OUT / ("cuda" if device != "cpu" else "") / f"{name}.cpp"
    source.parent.mkdir(exist_ok=True)
    text = "".join(f"#define {k} {v}\n" for k, v in defines.items()) + "".join(f'#include "{HERE / file}"\n' for file in body)
    if not source.is_file() or source.read_text() != text:
        source.write_text(text)
    return source


def run_compiler(command, what):
    """Seconds of processor time and peak MiB of what the command runs."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as child:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"models.py: {what} does not compile: {shlex.join(map(str, command))}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def configure(options):
    for name in NETWORKS:
        write_source(name, "cpu")
    run_compiler(["cmake", "-S", HERE / "programs", "-B", OUT / "models", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG",
                  f"-DCMAKE_CXX_COMPILER={options.compiler}", f"-DNAMES={';'.join(NETWORKS)}", f"-DSOURCES={OUT}", f"-DMAIN={HERE / 'models_main.cpp'}",
                  f"-DNATIVE_FLAGS={';'.join(shlex.split(options.flags))}", f"-DCMAKE_INCLUDE_PATH={options.eigen}"], "the project")
    if options.kinds == ["native"]:
        return 0
    return run_compiler(["cmake", "--build", OUT / "models", "--target", "sinter_compiled"], "sinter::compiled")[0]


def build(kind, name, options):
    """The program of a network: path, seconds of processor time, peak MiB of the compiler, MiB of the binary."""
    if options.device == "cuda":
        program = OUT / f"models_{name}_cuda"
        command = [options.compiler, "-std=c++20", *shlex.split(options.flags), "-I", ROOT / "include", "-isystem", options.eigen, "-x", "cu",
                   write_source(name, "cuda<0>", ["models_main.cpp"]), "-o", program, "-lcublasLt"]
    else:
        program = OUT / "models" / f"{kind}_{name}"
        command = ["cmake", "--build", OUT / "models", "--target", program.name]
    if options.build == "no":
        return program, 0, 0, 0
    if options.device == "cpu":
        (OUT / f"{name}.cpp").touch()
    return program, *run_compiler(command, f"the program of {name}"), program.stat().st_size / 2**20


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


def measure(name, programs, threads, options):
    """Ours, PyTorch's layouts (none where there is no PyTorch), after all turns."""
    layouts = [] if options.python is None else ["contiguous"] + ["channels_last"] * (not name.startswith("fcn") and name not in SEQUENCES)
    settings = " ".join(f"{k}={v}" for k, v in KEEP_MEMORY.items())
    ours = [Side(f"{shlex.quote(str(program))} {threads}") for program in programs]
    theirs = [Side(f"env {settings} {shlex.quote(options.python)} {shlex.quote(str(HERE / 'models_torch.py'))} {threads} {name} {layout} {options.device}")
              for layout in layouts]
    sides = ours + theirs
    for side in sides:
        for _ in range(2):  # memory is new in the first one
            side.turn(count=False)
    for turn in range(options.turns):
        for side in sides if turn % 2 == 0 else sides[::-1]:
            time.sleep(0.02)  # threads of the one before may still spin: PyTorch's do for 10 ms
            side.turn()
    for side in sides:
        side.mib = side.peak_mib()
        side.end()
    return ours, theirs


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
    parser.add_argument("--python", help="a Python with PyTorch (default: that of build/torch, if it is there, else python3)")
    parser.add_argument("--install-rival", action="store_true", help=setup.RIVAL_HELP)
    parser.add_argument("--kinds", nargs="+", choices=["shipped", "native", "compiled"], default=["shipped", "native"], metavar="KIND",
                        help="programs of ours, of which the first counts: shipped, native, compiled (default: shipped native)")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="of both sides; cuda is compiled by nvcc (default: cpu)")
    parser.add_argument("--build", choices=["yes", "only", "no"], default="yes", help="no: run what an earlier call has built (default: yes)")
    parser.add_argument("--compiler", help="default: $CXX, else g++; for cuda nvcc")
    parser.add_argument("--flags", help="of the native program (default: -O2 -march=native; for cuda as tests/gpu/run.sh)")
    parser.add_argument("--eigen", default="/usr/include/eigen3", help="Eigen's headers (default: /usr/include/eigen3)")
    parser.add_argument("--svg", type=Path, default=OUT / "models.svg", help="the bars (default: build/bench/models.svg)")
    options = parser.parse_args()
    if options.turns < 1:
        parser.error("--turns needs 1 or more")
    if options.device == "cuda":
        options.threads, options.kinds = [1], ["native"]
    options.compiler = options.compiler or ("nvcc" if options.device == "cuda" else os.environ.get("CXX", "g++"))
    options.flags = options.flags or ("-O2 -march=native" if options.device == "cpu" else
                                      "--expt-relaxed-constexpr -O2 -arch=native -Xcompiler=-march=native")
    found = setup.install(options.compiler, options.install_rival, options.eigen)
    options.python = options.python or found
    OUT.mkdir(parents=True, exist_ok=True)
    once = configure(options) if options.device == "cpu" and options.build != "no" else 0
    built = {name: {kind: build(kind, name, options) for kind in options.kinds} for name in options.networks}
    if options.build == "yes":
        print("| compile time, s (peak of the compiler, MiB; binary, MiB) | " + " | ".join(options.kinds) + " |\n" +
              "| --- " * (1 + len(options.kinds)) + "|")
        for name in options.networks:
            cells = [f"{seconds:.1f} ({peak:.0f}; {size:.2f})" for _, seconds, peak, size in built[name].values()]
            print(f"| {NETWORKS[name][0]} | " + " | ".join(cells) + " |")
        if once:
            print(f"\nsinter::compiled, once for all: {once:.0f} s")
        print(flush=True)
    if options.build == "only":
        return
    found = subprocess.run([options.python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
    if found.returncode != 0:
        print(f"no PyTorch in {options.python}: its columns stay empty", file=sys.stderr)
        options.python = None
    cpu = [line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    flags = {"shipped": "-O2", "compiled": "-O2", "native": options.flags}
    print(f"{cpu[0]}, {len(cpu)} cores; {options.compiler} {', '.join(f'{kind}: {flags[kind]}' for kind in options.kinds)}; "
          f"PyTorch {found.stdout.strip() or 'not there'}; medians of {options.turns} turns\n")
    head = ["network (batch)", "threads", *(f"{kind}, ms" for kind in options.kinds), *(f"{kind} / {options.kinds[0]}" for kind in options.kinds[1:]),
            "PyTorch, ms", "its layout", f"PyTorch / {options.kinds[0]}", "of processor time", "memory, MiB", "PyTorch's"]
    print("| " + " | ".join(head) + " |\n" + "| --- " * len(head) + "|")
    rows, gains = [], {}
    for name in options.networks:
        title, batch = NETWORKS[name][0], NETWORKS[name][5]
        for threads in options.threads:
            ours, theirs = measure(name, [program for program, *_ in built[name].values()], threads, options)
            first, best = ours[0], min(theirs, key=lambda side: statistics.median(side.wall), default=None)
            milliseconds = [statistics.median(side.wall) for side in ours]
            rows.append((title, threads, milliseconds[0], best and statistics.median(best.wall)))
            cells = [f"{title} ({batch})", str(threads), *(f"{ms:.0f}" for ms in milliseconds), *(f"{ratio(side.wall, first.wall):.2f}" for side in ours[1:])]
            if best:
                gains.setdefault(threads, {})[name] = ratio(best.wall, first.wall)
                cells += [f"{rows[-1][3]:.0f}", best.name.split()[-1], f"**{ratio(best.wall, first.wall):.2f}**", f"{ratio(best.cpu, first.cpu):.2f}"]
            else:
                cells += ["–"] * 4
            print("| " + " | ".join([*cells, f"{first.mib:.0f}", f"{best.mib:.0f}" if best else "–"]) + " |", flush=True)
    print()
    for threads, gain in gains.items():
        convolutional = [value for name, value in gain.items() if name not in SEQUENCES and not name.startswith("fcn")]
        for what, values in (("the convolutional ones", convolutional), ("all", list(gain.values()))):
            if len(values) > 1:
                print(f"{threads} thread{'s' * (threads > 1)}, geometric mean over {what}: {statistics.geometric_mean(values):.2f}")
    bars(rows, options.svg)
    print(f"\nwrote {options.svg}")


if __name__ == "__main__":
    main()
