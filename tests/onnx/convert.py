#!/usr/bin/env python3
"""Converts small models and compares what they give with ONNX's reference; refuses what cannot be converted, and what is hostile.

  convert.py --write FOLDER                    writes FOLDER/all.cpp, a program with all models, and their files
  convert.py --program FILE FOLDER             runs it and compares; reads the headers, and tries what is refused

Exit code: 0, 1 if something differs.
"""
import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "cmake"), str(Path(__file__).resolve().parent)]
import numpy as np
import onnx
try:
    import onnxruntime
except ImportError:
    onnxruntime = None
from onnx.reference import ReferenceEvaluator

import small_models
from sinter_onnx import check, graph, header

FAILED = []


def expect(condition, text):
    if not condition:
        FAILED.append(text)
        print("FAILED:", text)


def convert(model, name, folder):
    path = folder / f"{name}.onnx"
    onnx.save(model, path)
    return header.convert(graph.read_model(path), path, name, "0")


def write(folder):
    """All models in one program, each beside its inputs."""
    parts, calls = [], []
    for make in small_models.MODELS:
        name = make.__name__
        g = small_models.Graph()
        converted = convert(make(g), name, folder)
        place = folder / name
        place.mkdir(exist_ok=True)
        header.write_safetensors(place / f"{name}.safetensors", converted.arrays)
        for i, array in enumerate(g.feeds.values()):
            np.save(place / f"in_{i}.npy", array)
        (folder / f"{name}.hpp").write_text(converted.text)
        program = check.program(converted, name)
        if make in small_models.TRACKED:  # forward() compiles for variables too
            program = program.replace("  const auto y = run();", "  static_cast<void>(model(in_0));\n  const auto y = run();")
        parts.append(program.replace("int main(int, char** argv)", f"void run_{name}(const char* const* argv)"))
        calls.append(f'  const char* const {name}[] = {{nullptr, "{place}", "0"}};\n  run_{name}({name});')
    (folder / "all.cpp").write_text("\n".join(parts) + "\nint main() {\n" + "\n".join(calls) + "\n}\n")


def values(program, folder):
    done = subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    expect(done.returncode == 0, f"the program runs: {done.stdout[-500:]}")
    for make in small_models.MODELS:
        name = make.__name__
        model = onnx.load(folder / f"{name}.onnx")
        feeds = {v.name: np.load(folder / name / f"in_{i}.npy") for i, v in enumerate(model.graph.input)}
        if make in small_models.BY_RUNTIME:
            if onnxruntime is None:
                continue
            expected = onnxruntime.InferenceSession(str(folder / f"{name}.onnx")).run(None, feeds)
        else:
            with np.errstate(all="ignore"):
                expected = ReferenceEvaluator(model).run(None, feeds)
        for i, array in enumerate(expected):
            got = np.load(folder / name / f"out_{i}.npy")
            expect(got.dtype == array.dtype, f"{name}: result {i} is of {array.dtype}, not {got.dtype}")
            error = check.distance(got, array)
            expect(error < 1e-5, f"{name}: result {i} is that of the reference, not {error} from it")


def texts(folder):
    """The stored header is what the converter makes, twice the same; patterns are found."""
    folder.mkdir(exist_ok=True)
    stored = ROOT / "examples/models/digits_cnn.hpp"
    digits = ROOT / "examples/data/digits.onnx"
    made = [header.convert(graph.read_model(digits), digits, "digits_cnn", "0.2.0") for _ in range(2)]
    expect(made[0].text == made[1].text, "a model is converted alike each time")
    expect(made[0].text == stored.read_text(), f"{stored} is what onnx_to_sinter.py makes of {digits}")

    def text(make):
        return convert(make(small_models.Graph()), make.__name__, folder).text
    for make, words in {small_models.perceptron: ["nn::linear", "gelu(", "gelu_tanh(", "silu("], small_models.norms: ["nn::layer_norm"],
                        small_models.attention_in_parts: ["attention(q, k, v, mask, {.scale = 0.5})"],
                        small_models.pictures: ["hardswish(", "nn::batch_norm2d", "pad("], small_models.positions: ["nn::embedding", "arange<"],
                        small_models.condition: ["eval(-x)"], small_models.masked_attention: ["attention("],
                        small_models.trained: ["* block_scale", "nn::embedding<float, D, Kind> places", "nn::dropout<Kind>", "mat_mul_6.weight = words.weight;"]}.items():
        for word in words:
            expect(word in text(make), f"{make.__name__} is written with {word}")
    names = text(small_models.taken_names)
    expect("system" not in re.sub(r"f\(\"[\w.]*\"", "", names).replace("a_system_true", ""), "no code of a name: " + names)


def refusals(folder):
    """What cannot be converted is said, with its place."""
    folder.mkdir(exist_ok=True)
    def refused(what, text, make):
        try:
            make()
        except graph.Refused as e:
            return expect(text in str(e), f"{what}: {text!r} is in {str(e)!r}")
        expect(False, f"{what} is refused")

    def model(*nodes, inputs=(("x", 1, [2]),), outputs=(("y", 1, [2]),), initializers=()):
        infos = [[onnx.helper.make_tensor_value_info(*i) for i in side] for side in (inputs, outputs)]
        graph_ = onnx.helper.make_graph(list(nodes), "g", *infos, list(initializers))
        return onnx.helper.make_model(graph_, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)

    node = onnx.helper.make_node
    missing = model(node("Det", ["x"], ["a"], name="first"), node("Unique", ["x"], ["b"], name="second"), node("Relu", ["x"], ["y"]),
                    inputs=[("x", 1, [2, 2])])
    refused("ops that are not there", "Det, at \"first\"\n  Unique, at \"second\"", lambda: convert(missing, "missing", folder))
    shape = model(node("Reshape", ["x", "s"], ["y"]), inputs=[("x", 1, [2]), ("s", 7, [1])])
    refused("a shape that is an input", "a shape that is computed", lambda: convert(shape, "shape", folder))
    late = model(node("If", ["c"], ["y"], then_branch=onnx.helper.make_graph([node("Neg", ["x"], ["a"])], "t", [], [onnx.helper.make_tensor_value_info("a", 1, [2])]),
                      else_branch=onnx.helper.make_graph([node("Abs", ["x"], ["b"])], "e", [], [onnx.helper.make_tensor_value_info("b", 1, [2])])),
                 inputs=[("x", 1, [2]), ("c", 9, [1])])
    refused("an If on an input", "depends on the input", lambda: convert(late, "late", folder))

    small = onnx.helper.make_tensor("w", 1, [2], [1.0, 2.0])
    small.dims[0] = 1 << 40
    claims = model(node("Add", ["x", "w"], ["y"]), initializers=[small])
    refused("a tensor of terabytes", "elements", lambda: convert(claims, "claims", folder))
    outside = onnx.helper.make_tensor("w", 1, [2], [1.0, 2.0])
    outside.ClearField("float_data")
    outside.data_location = onnx.TensorProto.EXTERNAL
    for location in ("../secret", "/etc/passwd", "none"):
        del outside.external_data[:]
        entry = outside.external_data.add()
        entry.key, entry.value = "location", location
        away = model(node("Add", ["x", "w"], ["y"]), initializers=[outside])
        refused(f"data in {location}", "no file in the folder", lambda: convert(away, "away", folder))
    filled = model(node("ConstantOfShape", ["s"], ["c"]), node("ReduceSum", ["c"], ["d"], keepdims=0), node("Add", ["x", "d"], ["y"]),
                   initializers=[onnx.numpy_helper.from_array(np.array([1 << 20, 1 << 20], np.int64), "s")])
    refused("a constant of terabytes", "would make a constant of", lambda: convert(filled, "filled", folder))
    path = folder / "cut.onnx"
    whole = (ROOT / "examples/data/digits.onnx").read_bytes()
    for length in [0, 1, 2, 100, len(whole) // 2, len(whole) - 1]:
        path.write_bytes(whole[:length])
        refused(f"a file of {length} bytes", str(path), lambda: header.convert(graph.read_model(path), path, "cut", "0"))
    refused("no file", "No such file", lambda: graph.read_model(folder / "none.onnx"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--program", type=Path)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.write:
        return write(options.folder)
    texts(options.folder / "texts")
    refusals(options.folder / "refusals")
    values(options.program, options.folder)
    print(f"{len(small_models.MODELS)} models, {len(FAILED)} failures")
    sys.exit(1 if FAILED else 0)


if __name__ == "__main__":
    main()
