#!/usr/bin/env python3
"""Times calls of converted models beside ONNX Runtime: milliseconds, percentiles of single turns, and ratios as medians of those of the turns.

Runs in a Python that has torch, torchvision, onnx and onnxruntime, and exports the models, with random weights, to build/bench/onnx. The program is
`shipped`: built with -O2 for any x86-64 processor, by sinter::compiled and sinter_variants(), which choose the instructions when it starts.
`compiled` links sinter::compiled and computes statements by the instructions that every processor has; `native` is headers only, with -march=native.
"""
import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import turns

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OUT = ROOT / "build" / "bench" / "onnx" / "programs"  # beside the models
MODELS = {  # name: extents of the input
    "resnet50": (1, 3, 224, 224), "resnet50_8": (8, 3, 224, 224), "mobilenet_v3_small": (1, 3, 224, 224), "mobilenet_v3_large": (1, 3, 224, 224),
    "bert": (1, 128)}
TOKENS = 30522


def calls(name):
    """Of a turn, whose median counts: a processor that was idle takes some 10 ms to reach its clock."""
    return 25 if name.startswith("mobilenet") else 5


def serve(name, threads):
    """What the process of ONNX Runtime does: rows as inference.cpp has them."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = onnxruntime.InferenceSession(str(OUT.parent / f"{network(name)}.onnx"), options)
    shape = MODELS[name]
    x = np.arange(128).reshape(shape) * 37 % TOKENS if len(shape) == 2 else np.random.default_rng(1).standard_normal(shape, dtype=np.float32)
    feed = {session.get_inputs()[0].name: x}
    turns.serve({"runtime": (calls(name), lambda: session.run(None, feed))})


def network(name):
    return name.removesuffix("_8")


def export(name):
    import torch
    import torchvision
    torch.manual_seed(0)
    if name == "bert":
        class Bert(torch.nn.Module):
            """6 layers of 384 values in 12 heads, as all-MiniLM-L6 has them."""

            def __init__(self):
                super().__init__()
                self.words, self.places, self.norm = torch.nn.Embedding(TOKENS, 384), torch.nn.Embedding(512, 384), torch.nn.LayerNorm(384)
                self.layers = torch.nn.ModuleList(
                    torch.nn.ModuleDict({"qkv": torch.nn.Linear(384, 3 * 384), "out": torch.nn.Linear(384, 384), "norm": torch.nn.LayerNorm(384),
                                         "up": torch.nn.Linear(384, 1536), "down": torch.nn.Linear(1536, 384), "last": torch.nn.LayerNorm(384)})
                    for _ in range(6))

            def forward(self, ids):
                x = self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1]))[None])
                for layer in self.layers:
                    n, t, _ = x.shape
                    q, k, v = layer["qkv"](x).reshape(n, t, 3, 12, 32).permute(2, 0, 3, 1, 4)
                    seen = torch.softmax(q @ k.transpose(-1, -2) / 32**0.5, -1) @ v
                    x = layer["norm"](x + layer["out"](seen.transpose(1, 2).reshape(n, t, 384)))
                    x = layer["last"](x + layer["down"](torch.nn.functional.gelu(layer["up"](x))))
                return x
        model, x, axes = Bert(), torch.zeros(1, 128, dtype=torch.int64), None
    else:
        model, x, axes = getattr(torchvision.models, name)(weights=None), torch.randn(1, 3, 224, 224), {"x": {0: "n"}, "y": {0: "n"}}
    torch.onnx.export(model.eval(), (x,), OUT.parent / f"{name}.onnx", dynamo=False, input_names=["x"], output_names=["y"], dynamic_axes=axes)
    subprocess.run([sys.executable, ROOT / "cmake" / "onnx_to_sinter.py", OUT.parent / f"{name}.onnx", "--out", OUT.parent], check=True)


def build(options):
    """Exports and compiles what is not there or has changed; the command of each model."""
    exported = OUT.parent
    for name in options.models:
        if not (exported / f"{network(name)}.hpp").exists():
            export(network(name))
        shape = MODELS[name]
        size = f"TOKENS {TOKENS}" if len(shape) == 2 else f"INPUT {{{', '.join(map(str, shape))}}}"
        text = f'#define MODEL {network(name)}\n#define CALLS {calls(name)}\n#define {size}\n#include "{HERE / "inference.cpp"}"\n'
        source = OUT / f"{name}.cpp"
        if not source.is_file() or source.read_text() != text:
            source.write_text(text)
    subprocess.run(["cmake", "-S", HERE / "programs", "-B", OUT / "build", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG",
                    f"-DCMAKE_CXX_COMPILER={options.compiler}", f"-DCMAKE_CXX_FLAGS=-I{exported}", f"-DNAMES={';'.join(options.models)}",
                    f"-DSOURCES={OUT}", f"-DMAIN={HERE / 'rows_main.cpp'}", "-DNATIVE_FLAGS=-march=native",
                    f"-DCMAKE_INCLUDE_PATH={options.eigen}"], stdout=subprocess.DEVNULL, check=True)
    subprocess.run(["cmake", "--build", OUT / "build", "--target", "sinter_compiled", "-j2"], stdout=subprocess.DEVNULL, check=True)
    commands = {}
    for name in options.models:
        program = OUT / "build" / f"{options.kind}_{name}"
        begin = time.perf_counter()
        subprocess.run(["cmake", "--build", OUT / "build", "--target", program.name, "-j2"], stdout=subprocess.DEVNULL, check=True)
        print(f"{name}: built in {time.perf_counter() - begin:.0f} s", file=sys.stderr)
        commands[name] = f"{program} {exported / network(name)}.safetensors"
    return commands


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=11)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--kind", choices=["shipped", "compiled", "native"], default="shipped")
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--eigen", default="/usr/include/eigen3")
    options = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    commands = build(options)
    print("| threads | model | row | ms | 90 % | ONNX Runtime, ms | ONNX Runtime / Sinter |\n| --- | --- | --- | --- | --- | --- | --- |")
    for threads in options.threads:
        for name, command in commands.items():
            os.environ["SINTER_NUM_THREADS"] = str(threads)
            ours, theirs = turns.Program(command), turns.Program(f"{sys.executable} {HERE / 'inference.py'} serve {name} {threads}")
            times = {row: ([], []) for row in ours.rows}
            for turn in range(-1, options.turns):
                for row, (a, b) in times.items():
                    sides = [(ours, row, a), (theirs, "runtime", b)]
                    for side, what, taken in sides if turn % 2 == 0 else sides[::-1]:
                        milliseconds = side.milliseconds(what)
                        time.sleep(0.3)  # threads of ONNX Runtime spin a tenth of a second for the next call, and take a core from the other side
                        if turn >= 0:
                            taken.append(milliseconds)
            for row, (a, b) in times.items():
                ratio = statistics.median(y / x for x, y in zip(a, b))
                print(f"| {threads} | {name} | {row} | {statistics.median(a):.2f} | {np.percentile(a, 90):.2f} | {statistics.median(b):.2f} | {ratio:.2f} |",
                      flush=True)
            ours.process.kill()
            theirs.process.kill()


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2], int(sys.argv[3]))
    else:
        main()
