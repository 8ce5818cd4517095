#!/usr/bin/env python3
"""Exports models of PyTorch with both of its exporters, converts and compiles them, and compares what they give with ONNX Runtime.

  models.py --flags "-DSINTER_COMPILED=1 build/default/libsinter_compiled.a -lz -lpng -lturbojpeg" [--folder F] [NAME]...

Run by hand: it needs torch, onnx, onnxscript and onnxruntime, for some of the models torchvision or transformers, and half a minute for each
model. Prints a table for docs/pretrained.md. Exit code: 0; 1 if a model is refused or differs by more than 1e-4 of the largest number.
"""
import contextlib
import io
import subprocess
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "cmake"), str(Path(__file__).resolve().parent)]
import numpy as np
import onnxruntime

import torch_models
from sinter_onnx import check, graph, header


def compiled(path, name, folder, flags):
    """(what was converted, seconds of the compiler) of the program that check.py writes."""
    converted = header.convert(graph.read_model(path), path, name, "0")
    (folder / f"{name}.hpp").write_text(converted.text)
    header.write_safetensors(folder / f"{name}.safetensors", converted.arrays)
    (folder / f"{name}.cpp").write_text(check.program(converted, name))
    return converted, check.compile_program(folder, name, flags)


def error(path, converted, name, folder, arrays):
    """The largest difference from ONNX Runtime of all results, each relative to its largest number."""
    for i, array in enumerate(arrays):
        np.save(folder / f"in_{i}.npy", array)
    done = subprocess.run([folder / name, folder, "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise graph.Refused(f"the program ends with {done.returncode}: {done.stderr.strip()[-300:]}")
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    expected = session.run(None, {v.name: a for v, a in zip(converted.inputs, arrays)})
    return max(check.distance(np.load(folder / f"out_{i}.npy"), y) for i, y in enumerate(expected))


def main():
    failed = False
    opset = ("--opset", {"type": int, "default": 18})
    with torch_models.run(__doc__.split("\n")[0], list(torch_models.MODELS), opset) as (options, root):
        print("| model | exporter | nodes | batch 1 | batch 3 | compiled in |\n| --- | --- | --- | --- | --- | --- |", flush=True)
        for name in options.names:
            for exporter in options.exporter:
                folder = root / f"{name}_{exporter}"
                folder.mkdir(parents=True, exist_ok=True)
                path = folder / f"{name}.onnx"
                model, inputs = torch_models.make(name)
                try:
                    with contextlib.redirect_stdout(io.StringIO()):
                        torch_models.export(model, inputs, path, exporter == "dynamo", options.opset)
                except Exception as e:
                    print(f"| {name} | {exporter} | not exported: {str(e).splitlines()[0][:80]} |", flush=True)
                    continue
                try:
                    converted, seconds = compiled(path, name, folder, options.flags)
                    errors = [error(path, converted, name, folder, [x[:batch].numpy() for x in inputs]) for batch in (1, 3)]
                except graph.Refused as e:
                    failed = True
                    print(f"| {name} | {exporter} | {e} |", flush=True)
                    continue
                failed |= max(errors) > 1e-4
                print(f"| {name} | {exporter} | {converted.counts[0]} | {errors[0]:.1e} | {errors[1]:.1e} | {seconds:.0f} s |", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
