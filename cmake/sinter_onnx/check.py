"""Compiles a converted model, and compares what it gives, and how long it takes, with ONNX Runtime."""
import os
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np

from .graph import ELEMENTS, Refused

PROGRAM = """// Reads the inputs of a model from the folder that is named, writes what the model gives, and prints the time of calls in ms.
#include <chrono>
#include <cstdio>
#include <string>

#include <sinter/io.hpp>

#include "{name}.hpp"

int main(int, char** argv) {{
  const std::string folder = argv[1];
  sinter::generator gen(1);
  models::{name} model(gen);
  sinter::nn::load(model, folder + "/{name}.safetensors");
  const auto ready = sinter::nn::prepare(model);
{inputs}
  const auto run = [&] {{ return ready({arguments}); }};
  const auto y = run();
{outputs}
  for (int calls = std::stoi(argv[2]); calls > 0; --calls) {{
    const auto begin = std::chrono::steady_clock::now();
    const auto again = run();
    const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - begin;
    std::printf("%g\\n", spent.count());
  }}
}}
"""


def program(converted, name):
    """The text of a program that runs the model on arrays of NumPy."""
    inputs = "\n".join(f'  const auto in_{i} = sinter::read_npy<{ELEMENTS[v.dtype]}, {v.rank}>(folder + "/in_{i}.npy");'
                       for i, v in enumerate(converted.inputs))
    fields = ["y"] if len(converted.outputs) == 1 else [f"y.{f}" for f in converted.outputs]
    written = "\n".join(f'  sinter::write_npy(folder + "/out_{i}.npy", sinter::eval({f}));' for i, f in enumerate(fields))
    arguments = ", ".join(f"in_{i}" for i in range(len(converted.inputs)))
    return PROGRAM.format(name=name, inputs=inputs, outputs=written, arguments=arguments)


def compile_program(folder, name, flags):
    """Compiles NAME.cpp, which stands in the folder beside its header; the seconds. Errors: Refused with what the compiler says."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise Refused("--check needs g++ or clang++")
    include = Path(__file__).resolve().parents[2] / "include"
    command = [*shlex.split(compiler), "-std=c++20", "-O2", "-march=native", f"-I{include}", "-isystem", "/usr/include/eigen3", f"{name}.cpp",
               "-o", name, *shlex.split(flags), "-pthread"]
    begin = time.perf_counter()
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        lines = [line for line in done.stdout.splitlines() if "error" in line] or done.stdout.splitlines()
        raise Refused("the header does not compile:\n" + "\n".join(lines[:12]))
    return time.perf_counter() - begin


def random_inputs(converted, given):
    """Arrays for the inputs: normal, or 0 and 1. `given` says how large the sizes are that the model leaves open, 2 otherwise."""
    rng, arrays = np.random.default_rng(0), []
    for value in converted.inputs:
        shape = [e if isinstance(e, int) else given.get(str(e), 2) for e in value.shape]
        numbers = rng.standard_normal(shape) if value.dtype.kind == "f" else rng.integers(0, 2, shape)
        arrays.append(numbers.astype(value.dtype))
    return arrays


def distance(got, expected):
    """The largest difference, relative to the largest expected number; of whole numbers the part that differs."""
    if got.shape != expected.shape:
        raise Refused(f"a result has the shape {got.shape} in place of {expected.shape}")
    if expected.dtype.kind != "f":
        return float(np.mean(got != expected)) if got.size else 0.0
    same = (got == expected) | (np.isnan(got) & np.isnan(expected))
    if same.all():
        return 0.0
    scale = np.max(np.abs(expected[np.isfinite(expected)]), initial=1e-6)
    return float(np.max(np.abs(got[~same].astype(np.float64) - expected[~same])) / scale)


def percentiles(times):
    return " / ".join(f"{np.percentile(times, p):.3g}" for p in (50, 90, 99))


def check(model_path, converted, name, folder, flags="", given=None, threads=1, calls=20, tolerance=1e-4):
    """Prints error, times and size, with ONNX Runtime's where it is there; whether the results are close."""
    arrays = random_inputs(converted, given or {})
    for i, array in enumerate(arrays):
        np.save(folder / f"in_{i}.npy", array)
    (folder / f"{name}.cpp").write_text(program(converted, name))
    seconds = compile_program(folder, name, flags)
    environment = {**os.environ, "SINTER_NUM_THREADS": str(threads)}
    done = subprocess.run([folder / name, folder, str(calls)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    if done.returncode != 0:
        raise Refused(f"the program ends with {done.returncode}: {done.stderr.strip()[-500:]}")
    print(f"compiled in {seconds:.0f} s; the program without weights has {os.path.getsize(folder / name)} bytes")
    print(f"a call takes {percentiles([float(t) for t in done.stdout.split()])} ms (percentiles 50 / 90 / 99, {threads} threads)")
    try:
        import onnxruntime
    except ImportError:
        print("onnxruntime is not installed: nothing to compare with")
        return True
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = onnxruntime.InferenceSession(str(model_path), options)
    feeds = {v.name: a for v, a in zip(converted.inputs, arrays)}
    expected, times = session.run(None, feeds), []
    for _ in range(calls):
        begin = time.perf_counter()
        session.run(None, feeds)
        times.append(1e3 * (time.perf_counter() - begin))
    print(f"ONNX Runtime {onnxruntime.__version__} takes {percentiles(times)} ms")
    close = True
    for i, (output, array) in enumerate(zip(converted.outputs, expected)):
        error = distance(np.load(folder / f"out_{i}.npy"), array)
        close &= error <= tolerance
        print(f"{output}: {error:.1e} from that of ONNX Runtime, relative to the largest")
    return close
