#!/usr/bin/env python3
"""Runs the programs 01_digits, 03_convnet, 04_cifar, 05_devices and 07_plan with right and wrong options and data, and checks exit
codes, messages and files.

  example_programs.py FOLDER [GROUP...]    the folder of the programs; networks (01, 03, 04), devices (05), plan (07). Default: all
"""
import json
import re
import struct
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tools

DIGITS = tools.ROOT / "examples/data"


def record(label):
    return bytes([label]) + bytes(range(256)) * 12


def safetensors(tensors):
    """Zeros by name and shape."""
    header, at = {}, 0
    for name, shape in tensors.items():
        size = 4
        for extent in shape:
            size *= extent
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(at)


def main():
    every = ["networks", "devices", "plan"]
    groups = sys.argv[2:] or every
    if len(sys.argv) < 2 or not set(groups) <= set(every):
        sys.exit(__doc__)
    first, convnet, cifar, devices, plan = (Path(sys.argv[1]).resolve() / name
                                            for name in ("01_digits", "03_convnet", "04_cifar", "05_devices", "07_plan"))
    failures, checks = [], 0

    def check(program, options, exit_code, *texts):
        """What the program says; it must contain all texts."""
        nonlocal checks
        checks += 1
        code, said = tools.run([program, *options])
        missing = [text for text in texts if text not in said]
        if code != exit_code or missing:
            failures.append((f"{program.name} {' '.join(map(str, options))}",
                             f"exit code {code}, not {exit_code}; not said: {missing}; it said:\n{said}"))
        return said

    def check_file(path):
        nonlocal checks
        checks += 1
        if not path.is_file() or "<svg" not in path.read_text(encoding="utf-8"):
            failures.append((str(path), "no picture was written"))

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "networks" in groups:
            for program in (first, convnet, cifar):
                check(program, ["--help"], 0, "--epochs N", "Exit code:")
                check(program, ["--epochs"], 2, "--epochs needs a value", "Try --help.")
                check(program, ["--epochs", "2.5"], 2, "--epochs needs a whole number from 1 to 100000, not '2.5'")
                check(program, ["--lr", "fast"], 2, "--lr needs a number from 0 to 100, not 'fast'")
                check(program, ["--lr", "nan"], 2, "--lr needs a number from 0 to 100, not 'nan'")
                check(program, ["--seed", "1", "--seed", "2"], 2, "--seed is given twice")
                check(program, ["--colour", "red"], 2, "unknown option --colour")
                check(program, ["5"], 2, "unknown option 5")
                check(program, ["--device", "moon", "--data", DIGITS], 2, "moon")

            # The digits. One epoch misses the mark; threads do not matter.
            check(convnet, ["--data", folder / "nowhere"], 1, f"{folder}/nowhere: holds neither digits.csv")
            said = [check(convnet, ["--data", DIGITS, "--epochs", "1", "--threads", n, "--out", folder], 1,
                          "convnet: the test accuracy is below 98.5 %", "confusion matrix") for n in ("1", "3")]
            check(first, ["--data", DIGITS, "--epochs", "1", "--out", folder], 1, "digits: the test accuracy is below 97 %", "wrote " + str(folder))
            for picture in ("curve", "misread", "filters"):
                check_file(folder / f"convnet_{picture}.svg")
            checks += 1
            one, three = (re.sub(r"\d+ samples/s", "", text) for text in said)
            if one != three:
                failures.append(("convnet with 1 and with 3 threads", f"{one}\n{three}"))
            for program in (first, convnet):
                check(program, ["--data", DIGITS, "--epochs", "1", "--batch", "2000", "--out", folder], 1, "epoch 1", "below")  # one step of all samples
            check(convnet, ["--data", DIGITS, "--epochs", "1", "--out", folder / "nowhere"], 1, f"{folder}/nowhere/convnet_curve.svg")
            (folder / "digits.csv").write_text("1,2,3\n4,5,6\n")
            check(convnet, ["--data", folder], 1, "digits.csv: 2 rows of 3 numbers, not 1797 of 65")

            # CIFAR-10. Weights that were saved are those that are read.
            small = ["--depth", "8", "--pictures", "640", "--epochs", "2", "--out", folder]
            weights = folder / "weights.safetensors"
            check(cifar, [*small, "--save", weights], 0, "the pictures are synthetic", "ResNet-8,", "576 training and 64 test pictures")
            check_file(folder / "cifar_curve.svg")
            said = check(cifar, ["--weights", weights, "--pictures", "640", "--mark", "80"], 0, "ResNet-8 of", " of 640 right")
            check(cifar, ["--weights", weights, "--mark", "100", "--data", write(folder / "a.bin", record(1) + record(2))], 1,
                  "of 2 right", "cifar: the accuracy is below 100 %")
            check(cifar, [*small, "--epochs", "1"], 2, "--epochs is given twice")
            check(cifar, ["--depth", "8", "--pictures", "50", "--epochs", "1", "--mark", "100", "--out", folder], 1,
                  "cifar: the accuracy is below 100 %")
            check(cifar, [*small, "--save", folder / "nowhere/w"], 1, f"{folder}/nowhere/w")
            check(cifar, ["--pictures", "5"], 1, "5 pictures are too few to hold out a tenth of them")
            check(cifar, ["--depth", "21"], 2, "--depth needs a number 6n + 2")
            check(cifar, ["--save", "a", "--weights", "b"], 2, "--save has nothing to save where --weights is given")

            (folder / "bins").mkdir()
            bins = ["--depth", "8", "--epochs", "1", "--out", folder, "--data", folder / "bins"]
            check(cifar, bins, 1, "bins: no file in it is named *.bin")
            write(folder / "bins/data_batch_1.bin", b"".join(record(i % 10) for i in range(20)))
            check(cifar, bins, 0, "18 training and 2 test pictures")
            write(folder / "bins/test_batch.bin", record(3) * 5)
            check(cifar, bins, 0, "20 training and 5 test pictures")
            check(cifar, [*bins, "--pictures", "10"], 0, "10 training and 5 test pictures")
            write(folder / "bins/data_batch_2.bin", record(3)[:-1])
            check(cifar, bins, 1, "data_batch_2.bin: has 3072 bytes, but a file of CIFAR-10 has a multiple of 3073")
            write(folder / "bins/data_batch_2.bin", record(10))
            check(cifar, bins, 1, "data_batch_2.bin: image 0 has the label 10")
            check(cifar, ["--data", folder / "nowhere"], 1, f"{folder}/nowhere")

            check(cifar, ["--weights", folder / "nowhere"], 1, f"{folder}/nowhere")
            check(cifar, ["--weights", folder / "a.bin"], 1, "a.bin", "no safetensors file")
            check(cifar, ["--weights", write(folder / "other", safetensors({"fc.weight": [2, 3]}))], 1,
                  "other: holds no residual network for CIFAR-10: no tensor is named layer1.0.conv1.weight")
            check(cifar, ["--weights", write(folder / "near", safetensors({"layer1.0.conv1.weight": [16, 16, 5, 5]}))], 1,
                  "near: is no ResNet-8 for CIFAR-10", "'layer1.0.conv1.weight' has shape (16, 16, 5, 5) in the state")
        if "devices" in groups:
            # Six ways over devices. A diverging training makes them differ.
            check(devices, ["--help"], 0, "--advise", "Exit code:")
            check(devices, ["--advise", "--steps", "0"], 2, "--steps needs a whole number from 1 to 1000000, not '0'")
            check(devices, ["--advise", "--steps"], 2, "--steps needs a value")
            check(devices, ["--device", "moon"], 2, "--device moon: this program was built for numa")
            check(devices, ["--data", folder / "nowhere"], 1, f"{folder}/nowhere: holds neither digits.csv")
            check(devices, ["--data", DIGITS, "--steps", "1", "--batch", "3", "--threads", "2"], 0, "steps: 1 of 3 samples, with 2 threads", "differ by")
            for batch in ("1438", "1797"):
                check(devices, ["--data", DIGITS, "--batch", batch], 2, f"devices: --batch {batch}: there are only 1437 training samples in {DIGITS}")
            check(devices, ["--data", DIGITS, "--steps", "20", "--lr", "1e30"], 1, "devices: the losses differ")
        if "plan" in groups:
            # A plan. Sums that cost nothing cost no efficiency.
            few = ["--data", DIGITS, "--steps", "2", "--out", folder]
            check(plan, ["--help"], 0, "--latency US", "Exit code:")
            check(plan, ["--latency", "5"], 2, "--latency and --bandwidth are given together or not at all")
            check(plan, ["--collectives", "fast"], 2, "--collectives is cheapest or ring, not 'fast'")
            check(plan, ["--steps", "0"], 2, "--steps needs a whole number from 1 to 1000000, not '0'")
            check(plan, [*few, "--batch", "1438"], 2, "--batch 1438: there are 1437 samples")
            check(plan, ["--data", folder / "nowhere", "--out", folder], 1, f"{folder}/nowhere: holds neither digits.csv")
            check(plan, [*few[:-1], folder / "nowhere"], 1, f"{folder}/nowhere")
            said = check(plan, [*few, "--latency", "0", "--bandwidth", "1e9", "--failure-hours", "0"], 0, "network as given", "Not modelled: contention")
            checks += 1
            rows = [line.split() for line in said.splitlines() if re.match(r" *[0-9]+ +[0-9.]+ ", line)]
            if [row[0] for row in rows] != [str(1 << i) for i in range(13)] or any(float(row[6]) > 0.01 for row in rows):
                failures.append(("plan over a network that takes no time", said))
            check_file(folder / "plan.svg")
    tools.report("example_programs", failures, checks)


def write(path, content):
    path.write_bytes(content)
    return path


if __name__ == "__main__":
    main()
