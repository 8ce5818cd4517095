#!/usr/bin/env python3
"""Turns a model of ONNX into a header of Sinter and a file of its weights.

  onnx_to_sinter.py MODEL.onnx [--out FOLDER] [--name NAME]

writes FOLDER/NAME.hpp, with the struct models::NAME, and FOLDER/NAME.safetensors. Nothing is written of a model with something that is not
there; all of it is listed. With --check the header is compiled, and compared with ONNX Runtime on random inputs. Needs the package onnx.
Exit code: 0; 1 if the model cannot be converted, or --check finds a difference above 1e-4 of the largest number; 2 for a wrong option.
"""
import argparse
import collections
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
try:
    import onnx  # noqa: F401
except ImportError:
    sys.exit("onnx_to_sinter.py needs the package onnx: pip install onnx")
from sinter_onnx import check, graph, header, names

VERSION = "0.2.0"


def sizes_of(parser, texts):
    given = {}
    for text in texts:
        name, equals, number = text.partition("=")
        if not equals or not number.isdigit() or int(number) < 1:
            parser.error(f"--size {text}: it is a name of the header's first lines and a number, such as --size n=8")
        given[name] = int(number)
    return given


def explain(model, converted):
    before, left, statements, members = converted.counts
    ops = collections.Counter(node.op_type for node in model.graph.node)
    print(f"{before} nodes: {', '.join(f'{op} {n}' for op, n in ops.most_common())}")
    print(f"{left} of them are left after what is known has been computed and patterns have become layers; "
          f"they are {statements} statements and {members} members")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL.onnx")
    parser.add_argument("--out", default=".", metavar="FOLDER", help="where the files go (default: here)")
    parser.add_argument("--name", help="of the struct and the files (default: that of the model)")
    parser.add_argument("--explain", action="store_true", help="print what became of the nodes")
    parser.add_argument("--check", action="store_true", help="compile the header and compare it with ONNX Runtime")
    parser.add_argument("--size", action="append", default=[], metavar="NAME=N", help="--check: a size that the model leaves open (default: 2)")
    parser.add_argument("--threads", type=int, default=1, help="--check: threads of both (default: 1)")
    parser.add_argument("--flags", default="", help="--check: more flags for the compiler")
    options = parser.parse_args()
    name = options.name or names.Names().take(Path(options.model).stem, "model")
    if names.identifier(name) != name or name in names.KEYWORDS | names.FUNCTIONS:
        parser.error(f"--name {name}: a name is lower-case letters, digits and single underscores, and no word or function of C++ that models use")
    given = sizes_of(parser, options.size)
    try:
        model = graph.read_model(options.model)
        converted = header.convert(model, options.model, name, VERSION)
        if options.explain:
            explain(model, converted)
        write(converted, Path(options.out), name)
        if options.check:
            with tempfile.TemporaryDirectory() as folder:
                write(converted, Path(folder), name, quiet=True)
                if not check.check(options.model, converted, name, Path(folder), options.flags, given, options.threads):
                    sys.exit("onnx_to_sinter.py: the results are not those of ONNX Runtime")
    except graph.Refused as e:
        sys.exit(f"onnx_to_sinter.py: {e}")


def write(converted, folder, name, quiet=False):
    folder.mkdir(parents=True, exist_ok=True)
    files = {".hpp": lambda path: path.write_text(converted.text), ".safetensors": lambda path: header.write_safetensors(path, converted.arrays)}
    for end, make in files.items():
        part = folder / f".{name}{end}.part"
        make(part)
        os.replace(part, folder / (name + end))
    if not quiet:
        bytes_of_weights = sum(a.nbytes for a in converted.arrays.values())
        print(f"wrote {folder / name}.hpp and {folder / name}.safetensors, with {bytes_of_weights} bytes of weights")


if __name__ == "__main__":
    main()
