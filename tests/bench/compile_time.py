#!/usr/bin/env python3
"""Measures the compile-time budgets: umbrella header, digits example, one more fused statement; with --devices a network over one
device and over more, with --once the files of a program. Medians of --rounds. Installs what is missing, with apt-get, as root or with sudo."""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import setup

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


SMALL_MODEL = """#include <sinter/sinter.hpp>
using namespace sinter;
float train(const tensor<float, 2>& inputs, const tensor<std::int64_t, 1>& targets) {
  generator gen(1);
  const nn::sequential model{nn::linear(4, 32, gen), nn::relu(), nn::linear(32, 2, gen)};
  optim::adam optimizer(model, {.lr = 0.01});
  float last = 0;
  for (int step = 0; step < 100; ++step) {
    const variable loss = cross_entropy(model(inputs), targets);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    last = loss.item();
  }
  return last;
}
"""


def compile_once(compiler, source, folder, *more):
    """Seconds of processor time and peak MiB of one compilation."""
    flags = GPU_FLAGS if is_nvcc(compiler) else ["-march=native"]
    command = [compiler, "-std=c++20", "-O2", *flags, *more, "-I", str(ROOT / "include"), "-I", str(ROOT / "examples"),
               "-isystem", "/usr/include/eigen3", "-c", str(source), "-o", str(Path(folder) / "out.o")]
    child = subprocess.Popen(command)
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"compile_time.py: {source} does not compile")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", default="g++", help="g++, clang++ or nvcc, for sm_90 (default: g++)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--devices", action="store_true", help="a network over one device and over more, instead of the budgets")
    parser.add_argument("--once", action="store_true", help="files of a program with and without what sinter::compiled holds, for any x86-64 processor")
    options = parser.parse_args()
    setup.install(options.compiler)
    device = "cuda<0>" if is_nvcc(options.compiler) else "cpu"
    with tempfile.TemporaryDirectory() as folder:
        sources = {"Eigen/Core alone": "#include <Eigen/Core>\n", "umbrella header": "#include <sinter/sinter.hpp>\n",
                   "1 statement": statements(1, device), "11 statements": statements(11, device),
                   "digits example": (ROOT / "examples" / "01_digits.cpp").read_text()}
        if options.devices:
            kind = "cuda" if is_nvcc(options.compiler) else "numa"
            sources = {way: network(*code, kind) for way, code in WAYS.items()}
        more = {}
        if options.once:
            sources = {"Eigen/Core alone": sources["Eigen/Core alone"]}
            for name, text in (("small model", SMALL_MODEL), ("digits example", (ROOT / "examples/01_digits.cpp").read_text())):
                sources[name] = sources[name + ", compiled"] = text
                more[name + ", compiled"] = ["-DSINTER_COMPILED=1"]
            sources["src/sinter.cpp"] = (ROOT / "src/sinter.cpp").read_text()
            more = {name: ["-march=x86-64", *more.get(name, [])] for name in sources}
        seconds, memory = {}, {}
        for _ in range(options.rounds):
            for name, text in sources.items():
                path = Path(folder) / "source.cpp"
                path.write_text(text)
                s, m = compile_once(options.compiler, path, folder, *more.get(name, []))
                seconds.setdefault(name, []).append(s)
                memory[name] = m
        first = statistics.median(seconds[next(iter(sources))])
        for name in sources:
            median = statistics.median(seconds[name])
            print(f"{name:20s} {median:6.2f} s  {memory[name]:5.0f} MiB  {median / first:.2f} times the first")
        if options.devices or options.once:
            return
        step = (statistics.median(seconds["11 statements"]) - statistics.median(seconds["1 statement"])) / 10
        print(f"one more fused statement with backward: {step:.2f} s")


main()
