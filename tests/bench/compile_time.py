#!/usr/bin/env python3
"""Measures how long programs compile: seconds of processor time, and how many times as long as `#include <Eigen/Core>` in the same run.

Rows are the umbrella header, a fused statement with its backward, the digits example and a program that trains a convolutional network; columns
header-only with -O2 and -O0, with SINTER_COMPILED=1, and that with the umbrella header precompiled. Then what one more statement takes, and
the library that the compiled ones link, by the clock with two jobs. In each round every file is compiled once; the figures are medians. g++ gets
the option that the CMake targets pass, for Eigen/Core as well.

Installs what is missing, with apt-get, as root or with sudo.
"""
import argparse
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import setup

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
GCC_FLAGS = re.findall(r"--param=ggc-min-heapsize=\d+", (ROOT / "CMakeLists.txt").read_text())  # of the CMake target
GPU_FLAGS = ["--expt-relaxed-constexpr", "-arch=sm_90", "-DEIGEN_NO_CUDA", "-x", "cu"]
FUNCTIONS = ["sigmoid", "tanh", "exp", "relu"]
MODES = {"header-only, -O2": ["-O2"], "header-only, -O0": ["-O0"], "compiled, -O2": ["-O2", "-DSINTER_COMPILED=1"],
         "compiled, precompiled header": ["-O2", "-DSINTER_COMPILED=1"]}
EIGEN = "Eigen/Core"


def statements(n, device="cpu"):
    """A file with n distinct fused statements on a device, each with backward."""
    lines = []
    for i in range(n):
        f, g = FUNCTIONS[i % 4], FUNCTIONS[i // 4 % 4]
        lines.append(f"  {{ variable y = {f}(a * b + c) * {g}(d){' + a' * (i % 3)}{' * b' * (i // 3 % 3)}; y.backward(s); }}\n")
    return ("#include <sinter/sinter.hpp>\nusing namespace sinter;\n"
            f"using D = {device};\n"
            "void f(variable<float, 2, D> a, variable<float, 2, D> b, variable<float, 1, D> c, variable<float, 2, D> d, tensor<float, 2, D> s) {\n"
            + "".join(lines) + "}\n")


def network(model, call, kind):
    """A file that trains a convolutional network; D<I> are its devices."""
    return f"""#include <sinter/sinter.hpp>
#include <sinter/parallel.hpp>
using namespace sinter;
template <int I>
using D = {kind}<I>;
const auto loss_of = [](const auto& scores, const auto& labels) {{ return cross_entropy(scores, labels); }};
double step(const tensor<float, 4, D<0>>& x, const tensor<std::int64_t, 1, D<0>>& labels, generator& gen) {{
  const nn::sequential convolutions{{nn::conv2d<float, D<0>>(3, 32, 5, gen, {{.padding = 2}}), nn::relu(), nn::max_pool2d(2),
                                    nn::conv2d<float, D<0>>(32, 64, 3, gen, {{.padding = 1}}), nn::relu(), nn::avg_pool2d(2)}};
  const nn::sequential dense{{nn::flatten(), nn::linear<float, D<0>>(4096, 128, gen), nn::relu(), nn::linear<float, D<0>>(128, 10, gen)}};
  const nn::sequential one{{convolutions, dense}};
  {model}
  optim::sgd optimizer(model, {{.lr = 0.1, .momentum = 0.9}});
  {call}
  optimizer.step();
  return result;
}}
"""


CALLED = """const auto scores = eval(model(x));
  const variable loss = loss_of(scores, labels.to<device_of<decltype(scores)>>());
  loss.backward();
  const double result = static_cast<double>(loss.item());"""
WAYS = {"one device": ("const auto& model = one;", CALLED),
        "replicas on two": ("const auto model = nn::data_parallel<D<0>, D<1>>(one);", CALLED),
        "replicas on three": ("const auto model = nn::data_parallel<D<0>, D<1>, D<2>>(one);", CALLED),
        "placed on two": ("const auto model = nn::placed<nn::cut<0, D<0>>, nn::cut<1, D<1>>>(one);", CALLED),
        "stages on two": ("const nn::pipeline model{convolutions, dense.to<D<1>>()};",
                          "const double result = model.step(x, labels, loss_of).loss;"),
        "two tiles": ("const nn::sequential model{nn::tile_parallel<nn::tiles<1, 2, D<0>, D<1>>>(convolutions), dense};", CALLED)}


def is_nvcc(compiler):
    return Path(compiler).name == "nvcc"


def is_gcc(compiler):
    return Path(compiler).name.startswith("g++")


def run_compiler(command, what):
    """Seconds of processor time and peak MiB."""
    child = subprocess.Popen(command)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if status != 0:
        sys.exit(f"compile_time.py: {what} does not compile: {shlex.join(map(str, command))}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


class Files:
    """Compiles texts in a folder of its own."""

    def __init__(self, options, folder):
        self.folder = Path(folder)
        flags = GPU_FLAGS if is_nvcc(options.compiler) else GCC_FLAGS if is_gcc(options.compiler) else []
        self.command = [options.compiler, "-std=c++20", *flags, *shlex.split(options.flags)]
        self.includes = ["-I", ROOT / "include", "-I", ROOT / "examples", "-isystem", "/usr/include/eigen3"]
        self.header = self.folder / "precompiled.hpp"
        self.seconds, self.memory = {}, {}

    def precompile(self, flags):
        self.header.write_text("#define SINTER_WITH_DATA 1\n#include <sinter/sinter.hpp>\n")  # as the digits example has it
        run_compiler([*self.command, *flags, *self.includes, "-x", "c++-header", self.header], "the header")

    def compile(self, row, mode, text, includes=None):
        source = self.folder / "source.cpp"
        source.write_text(text)
        first = ["-include", self.header] if "precompiled" in mode else []
        seconds, memory = run_compiler([*self.command, *MODES.get(mode, ["-O2"]), *first, *(includes or self.includes), "-c", source,
                                        "-o", self.folder / "out.o"], row)
        self.seconds.setdefault((row, mode), []).append(seconds)
        self.memory[row, mode] = memory

    def median(self, row, mode):
        return statistics.median(self.seconds[row, mode])


def rival_includes(python):
    """Where the headers of the PyTorch of a Python are."""
    script = "from torch.utils import cpp_extension as c; print('\\n'.join(c.include_paths()))"
    found = subprocess.run([python, "-c", script], capture_output=True, text=True)
    if found.returncode != 0:
        sys.exit(f"compile_time.py: {python} has no PyTorch; --install-rival installs it")
    return [part for folder in found.stdout.split() for part in ("-isystem", folder)]


def library_seconds(options, folder):
    """By the clock, sinter::compiled with two jobs."""
    (folder / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.20)\nproject(once LANGUAGES CXX)\nadd_subdirectory({ROOT} sinter)\n")
    subprocess.run(["cmake", "-S", folder, "-B", folder / "build", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG",
                    f"-DCMAKE_CXX_COMPILER={options.compiler}"], check=True, stdout=subprocess.DEVNULL)
    begin = time.monotonic()
    subprocess.run(["cmake", "--build", folder / "build", "--target", "sinter_compiled", "-j2"], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begin


def measure_devices(options, files):
    kind = "cuda" if is_nvcc(options.compiler) else "numa"
    for _ in range(options.rounds):
        for way, code in WAYS.items():
            files.compile(way, "", network(*code, kind))
    first = files.median("one device", "")
    for way in WAYS:
        print(f"{way:20s} {files.median(way, ''):6.2f} s  {files.memory[way, '']:5.0f} MiB  {files.median(way, '') / first:.2f} times the first")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default="g++", help="g++, clang++ or nvcc, for sm_90 (default: g++)")
    parser.add_argument("--flags", default="", help="more flags for all files, such as -march=native")
    parser.add_argument("--rounds", type=int, default=3, help="default: 3")
    parser.add_argument("--rival", metavar="PYTHON", help="a Python with PyTorch: the network in libtorch as well")
    parser.add_argument("--install-rival", action="store_true", help=setup.RIVAL_HELP)
    parser.add_argument("--no-library", action="store_true", help="leave out the library itself, which takes minutes")
    parser.add_argument("--devices", action="store_true", help="a network over one device and over more, instead")
    options = parser.parse_args()
    installed = setup.install(options.compiler, options.install_rival)
    if options.install_rival:
        options.rival = options.rival or installed
    with tempfile.TemporaryDirectory() as folder:
        files = Files(options, folder)
        if options.devices:
            return measure_devices(options, files)
        device = "cuda<0>" if is_nvcc(options.compiler) else "cpu"
        rows = {"umbrella header": "#include <sinter/sinter.hpp>\n", "a statement": statements(1, device),
                "11 statements": statements(11, device), "digits example": (ROOT / "examples/01_digits.cpp").read_text(),
                "convolutional network": (HERE / "compile/convnet.cpp").read_text()}
        modes = list(MODES)
        if is_nvcc(options.compiler):
            modes = modes[:1]
        elif is_gcc(options.compiler):
            files.precompile(MODES[modes[-1]])
        else:
            modes.pop()  # clang++ takes a precompiled header by another option
        rival = rival_includes(options.rival) if options.rival else None
        for _ in range(options.rounds):
            files.compile(EIGEN, "", f"#include <{EIGEN}>\n")
            for row, text in rows.items():
                for mode in modes:
                    files.compile(row, mode, text)
            if rival:
                files.compile("libtorch", "", (HERE / "compile/convnet_torch.cpp").read_text(), rival)
        eigen = files.median(EIGEN, "")
        print(f"`#include <{EIGEN}>`: {eigen:.2f} s; seconds, and how many times that\n")
        print("| | " + " | ".join(modes) + " |\n" + "| --- " * (1 + len(modes)) + "|")
        for row in rows:
            if row != "11 statements":
                print(f"| {row} | " + " | ".join(f"{files.median(row, m):.1f} ({files.median(row, m) / eigen:.1f})" for m in modes) + " |")
        more = {m: (files.median("11 statements", m) - files.median("a statement", m)) / 10 for m in modes}
        print("| one more statement | " + " | ".join(f"{s:.2f} ({s / eigen:.2f})" for s in more.values()) + " |\n")
        print("peak of the compiler, the network: " + ", ".join(f"{files.memory['convolutional network', m]:.0f} MiB {m}" for m in modes))
        if rival:
            print(f"the network in libtorch: {files.median('libtorch', ''):.1f} s ({files.median('libtorch', '') / eigen:.1f}), "
                  f"{files.memory['libtorch', '']:.0f} MiB")
        if not options.no_library and not is_nvcc(options.compiler):
            print(f"sinter::compiled, two jobs: {library_seconds(options, Path(folder)):.0f} s by the clock")


if __name__ == "__main__":
    main()
