#!/usr/bin/env python3
"""Runs a trained ResNet-20 and a training step of it beside PyTorch's results, where --data names a folder with both.

The folder holds resnet20/*.safetensors, resnet20/*_trainstep16.npz and cifar10/lossless_train_first4000.bin.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def only(folder, pattern):
    found = sorted(folder.glob(pattern))
    if not found:
        sys.exit(f"trained.py: there is no {folder / pattern}")
    return found[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("SINTER_DATA"), help="the folder (default: $SINTER_DATA)")
    parser.add_argument("--compiler", default=os.environ.get("CXX", "g++"))
    options = parser.parse_args()
    if options.data is None:
        parser.error("--data is needed")
    data = Path(options.data)
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / "trained"
        subprocess.run([options.compiler, "-std=c++20", "-O2", "-march=native", f"-I{ROOT / 'include'}", "-isystem", "/usr/include/eigen3",
                        ROOT / "tests/models/trained.cpp", "-o", program, "-pthread"], check=True)
        with zipfile.ZipFile(only(data / "resnet20", "*_trainstep16.npz")) as step:
            step.extractall(scratch)
        sys.exit(subprocess.run([program, only(data / "resnet20", "*.safetensors"),
                                 only(data / "cifar10", "lossless_train_first4000.bin"), scratch]).returncode)


if __name__ == "__main__":
    main()
