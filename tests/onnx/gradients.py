#!/usr/bin/env python3
"""Converts models that are exported for training, and compares the gradients of all their parameters with PyTorch's.

  gradients.py --flags "-DSINTER_COMPILED=1 build/default/libsinter_compiled.a -lz -lpng -lturbojpeg" [--folder F] [NAME]...

Run by hand; see models.py. The loss is the sum of all results, each element times a random number. In mode train batch norms take the moments of
the batch; dropout has probability 0. Prints a table. Exit code: 0; 1 if a gradient differs by more than 1e-4 of the largest number in it, or has no
counterpart.
"""
import contextlib
import io
import subprocess
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "cmake"), str(Path(__file__).resolve().parent)]
import numpy as np
import torch

import torch_models
from sinter_onnx import check, graph, header

PROGRAM = """// Writes the gradient of each parameter of a model into the folder that is named.
#include <string>

#include <sinter/io.hpp>

#include "{name}.hpp"

int main(int, char** argv) {{
  const std::string folder = argv[1];
  sinter::generator gen(1);
  models::{name} model(gen);
  sinter::nn::load(model, folder + "/{name}.safetensors");
  model.{mode}();
{inputs}
  const auto y = model({arguments});
  sinter::variable loss = {loss};
  loss.backward();
  model.for_each_parameter([&](const std::string& path, const auto& p) {{
    if (p.has_grad()) sinter::write_npy(folder + "/grad_" + path + ".npy", sinter::eval(p.grad()));
  }});
}}
"""


def program(converted, name, mode, ranks):
    inputs = "\n".join(f'  const auto in_{i} = sinter::read_npy<{graph.ELEMENTS[v.dtype]}, {v.rank}>(folder + "/in_{i}.npy");'
                       for i, v in enumerate(converted.inputs))
    fields = ["y"] if len(ranks) == 1 else [f"y.{f}" for f in converted.outputs]
    loss = " + ".join(f'sum({f} * sinter::read_npy<float, {rank}>(folder + "/factor_{i}.npy"))' for i, (f, rank) in enumerate(zip(fields, ranks)))
    return PROGRAM.format(name=name, mode=mode, inputs=inputs, loss=loss, arguments=", ".join(f"in_{i}" for i in range(len(converted.inputs))))


def of_torch(model, inputs, folder):
    """The gradients by name, and the numbers of axes of the results."""
    results = model(*inputs)
    results = results if isinstance(results, tuple) else (results,)
    loss = 0
    for i, y in enumerate(results):
        factor = torch.randn(y.shape, generator=torch.Generator().manual_seed(i))
        np.save(folder / f"factor_{i}.npy", factor.numpy())
        loss = loss + (y * factor).sum()
    loss.backward()
    return {name: p.grad.numpy() for name, p in model.named_parameters()}, [y.dim() for y in results]


def counterparts(model, arrays):
    """(name of PyTorch, name of the header, whether it is transposed): those with the same elements."""
    for name, p in model.named_parameters():
        p = p.detach().numpy()
        found = [(key, turned) for key, a in arrays.items() for turned in (False, True)
                 if (a.shape == p.shape[::-1] if turned else a.size == p.size) and np.array_equal((a.T if turned else a).reshape(p.shape), p)]
        yield name, *(found[0] if found else (None, False))


def compared(name, mode, exporter, folder, flags):
    """(parameters, of them with a counterpart, largest difference, where)."""
    model, inputs = torch_models.make(name)
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if isinstance(getattr(module, "dropout", None), float):
            module.dropout = 0.0
    model.train(mode == "train")
    path = folder / f"{name}.onnx"
    state = {key: value.clone() for key, value in model.state_dict().items()}
    with contextlib.redirect_stdout(io.StringIO()):
        if exporter == "dynamo":
            torch_models.export(model, inputs, path, True, optimize=False)
        else:
            torch_models.export(model, inputs, path, False, training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)
    model.load_state_dict(state)  # exporting a model in mode train has moved its running moments
    model.train(mode == "train")
    expected, ranks = of_torch(model, inputs, folder)
    model.load_state_dict(state)
    converted = header.convert(graph.read_model(path), path, name, "0")
    (folder / f"{name}.hpp").write_text(converted.text)
    header.write_safetensors(folder / f"{name}.safetensors", converted.arrays)
    for i, x in enumerate(inputs):
        np.save(folder / f"in_{i}.npy", x.numpy())
    (folder / f"{name}.cpp").write_text(program(converted, name, mode, ranks))
    check.compile_program(folder, name, flags)
    done = subprocess.run([folder / name, folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise graph.Refused(f"the program ends with {done.returncode}: {done.stderr.strip()[-300:]}")
    found, worst = 0, (0.0, "")
    largest = max(abs(g).max() for g in expected.values())
    for key, here, turned in counterparts(model, converted.arrays):
        file = folder / f"grad_{here}.npy"
        if here is None or not file.exists():
            print("no counterpart:", key, here)
            continue
        found += 1
        got, wanted = np.load(file), expected[key]
        got = (got.T if turned else got).reshape(wanted.shape)
        # The gradient of a bias before a batch norm is 0 but for rounding.
        error = abs(got - wanted).max() / max(abs(wanted).max(), 1e-2 * largest)
        worst = max(worst, (float(error), key))
    return len(expected), found, *worst


def main():
    failed = False
    default = [n for n in ("resnet18", "unet", "encoder", "decoder", "tagger", "scaled", "bert_sdpa", "gpt2_sdpa", "vit") if n in torch_models.MODELS]
    with torch_models.run(__doc__.split("\n")[0], default) as (options, root):
        print("| model | mode | exporter | parameters | with a counterpart | largest difference | of |\n| --- | --- | --- | --- | --- | --- | --- |", flush=True)
        for name in options.names:
            for mode in ("eval", "train"):
                for exporter in options.exporter:
                    folder = root / f"{name}_{mode}_{exporter}"
                    folder.mkdir(parents=True, exist_ok=True)
                    try:
                        count, found, error, where = compared(name, mode, exporter, folder, options.flags)
                    except Exception as e:
                        failed = True
                        print(f"| {name} | {mode} | {exporter} | {type(e).__name__}: {str(e)[:300]} |", flush=True)
                        continue
                    failed |= error > 1e-4 or found < count
                    print(f"| {name} | {mode} | {exporter} | {count} | {found} | {error:.1e} | {where} |", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
