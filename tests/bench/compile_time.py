#!/usr/bin/env python3
"""Measures the compile-time budgets: umbrella header, digits example, one more fused statement. Medians of --rounds."""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
GPU_FLAGS = ["--expt-relaxed-constexpr", "-arch=sm_90", "-DEIGEN_NO_CUDA", "-x", "cu"]
FUNCTIONS = ["sigmoid", "tanh", "exp", "relu"]


def statements(n, device):
    """A file with n distinct fused statements on a device, each with backward."""
    lines = []
    for i in range(n):
        f, g = FUNCTIONS[i % 4], FUNCTIONS[i // 4 % 4]
        lines.append(f"  {{ variable y = {f}(a * b + c) * {g}(d){' + a' * (i % 3)}{' * b' * (i // 3 % 3)}; y.backward(s); }}\n")
    return ("#include <sinter/sinter.hpp>\nusing namespace sinter;\n"
            f"using D = {device};\n"
            "void f(variable<float, 2, D> a, variable<float, 2, D> b, variable<float, 1, D> c, variable<float, 2, D> d, tensor<float, 2, D> s) {\n"
            + "".join(lines) + "}\n")


def is_nvcc(compiler):
    return Path(compiler).name == "nvcc"


def compile_once(compiler, source, folder):
    """Seconds of processor time and peak MiB of one compilation."""
    flags = GPU_FLAGS if is_nvcc(compiler) else ["-march=native"]
    command = [compiler, "-std=c++20", "-O2", *flags, "-I", str(ROOT / "include"), "-isystem", "/usr/include/eigen3",
               "-c", str(source), "-o", str(Path(folder) / "out.o")]
    child = subprocess.Popen(command)
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"compile_time.py: {source} does not compile")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", default="g++", help="g++, clang++ or nvcc, for sm_90 (default: g++)")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    device = "cuda<0>" if is_nvcc(options.compiler) else "cpu"
    with tempfile.TemporaryDirectory() as folder:
        sources = {"Eigen/Core alone": "#include <Eigen/Core>\n", "umbrella header": "#include <sinter/sinter.hpp>\n",
                   "1 statement": statements(1, device), "11 statements": statements(11, device),
                   "digits example": (ROOT / "examples" / "01_digits.cpp").read_text()}
        seconds, memory = {}, {}
        for _ in range(options.rounds):
            for name, text in sources.items():
                path = Path(folder) / "source.cpp"
                path.write_text(text)
                s, m = compile_once(options.compiler, path, folder)
                seconds.setdefault(name, []).append(s)
                memory[name] = m
        for name in sources:
            print(f"{name:20s} {statistics.median(seconds[name]):6.2f} s  {memory[name]:5.0f} MiB")
        step = (statistics.median(seconds["11 statements"]) - statistics.median(seconds["1 statement"])) / 10
        print(f"one more fused statement with backward: {step:.2f} s")


main()
