#!/usr/bin/env python3
"""Damages models in random places, and checks that the converter gives a header or one message: no traceback, no file beside a refusal, no hang.

  fuzz.py [--runs N] [--seed N] FOLDER

Half of the runs change bytes of a file, half a field of what it says: a size, a name, an element type, an attribute, an edge. The models are
examples/data/digits.onnx, and it with its data in another file, and those of small_models.py. Exit code: 0; 1 if a run fails, whose model stays in the folder.
"""
import argparse
import os
import random
import resource
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "cmake"), str(Path(__file__).resolve().parent)]
import onnx

import onnx_to_sinter
import small_models

NUMBERS = [0, 1, -1, 2, 7, 1 << 20, 1 << 31, -(1 << 31), 1 << 40, (1 << 62) + 1, -(1 << 63)]
TEXTS = ["", "x", "../x", "/etc/passwd", "a" * 5000, "\u00e9 */", "Conv", "Add", "If", "Loop", "NCHW", "1e9", "-5"]


def fields(message, found):
    """All (message, field, place in it) below a message that hold no message."""
    for field, value in message.ListFields():
        is_many = hasattr(value, "__len__") and not isinstance(value, (str, bytes))
        for i, v in enumerate(value if is_many else [value]):
            if field.type == field.TYPE_MESSAGE:
                fields(v, found)
            elif i < 8:
                found.append((message, field, i if is_many else None))
    return found


def other(field, old, rng):
    if field.cpp_type == field.CPPTYPE_STRING:
        if field.type == field.TYPE_BYTES:
            return rng.choice([b"", old[:-1], old + b"\0", bytes(rng.randrange(256) for _ in range(len(old) % 64))])
        return rng.choice(TEXTS)
    if field.cpp_type in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return rng.choice([0.0, -1.0, 1e30, float("nan"), float("inf")])
    if field.cpp_type == field.CPPTYPE_ENUM:
        return rng.choice([v.number for v in field.enum_type.values])
    return rng.choice(NUMBERS if field.cpp_type == field.CPPTYPE_INT64 else [0, 1, 2, 7, 10, 16, 22, 99, -1])


def damaged(whole, rng):
    """Bytes of a model, one to four places of which differ."""
    if rng.random() < 0.5:
        out = bytearray(whole)
        head = len(out) if rng.random() < 0.5 else 2000  # most of a file is weights
        for _ in range(rng.randint(1, 4)):
            out[rng.randrange(min(head, len(out)))] ^= 1 << rng.randrange(8)
        return bytes(out)
    model = onnx.ModelProto.FromString(whole)
    for _ in range(rng.randint(1, 2)):
        message, field, place = rng.choice(fields(model, []))
        values = getattr(message, field.name)
        try:
            if place is None:
                setattr(message, field.name, other(field, values, rng))
            elif rng.random() < 0.2:
                del values[place]
            else:
                values[place] = other(field, values[place], rng)
        except (ValueError, TypeError):
            pass
    return model.SerializeToString()


def fault(path, out):
    """What is wrong with a run of the converter in a process of its own, or None."""
    report = path.with_suffix(".log")
    child = os.fork()
    if child == 0:
        with open(report, "wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
        resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
        sys.argv = ["onnx_to_sinter.py", str(path), "--out", str(out), "--name", "model"]
        code = 1
        try:
            onnx_to_sinter.main()
            code = 0
        except SystemExit as e:
            print(e.code, file=sys.stderr)
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            sys.stdout.flush()
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    text = report.read_text(errors="replace")
    written = sorted(p.name for p in out.glob("*")) if out.exists() else []
    shutil.rmtree(out, ignore_errors=True)
    if os.WIFSIGNALED(status):
        return f"ends with signal {os.WTERMSIG(status)}"
    if "Traceback" in text:
        return text.strip().splitlines()[-1]
    if os.WEXITSTATUS(status) and written:
        return f"is refused, and {written} are written"
    if os.WEXITSTATUS(status) and not text.startswith("onnx_to_sinter.py: "):
        return f"says {text[:200]!r}"
    if not os.WEXITSTATUS(status) and written != ["model.hpp", "model.safetensors"]:
        return f"writes {written}"
    return None


def hostile(folder):
    """(name, model) of data elsewhere that must be refused."""
    (folder / "deep").mkdir(parents=True, exist_ok=True)
    (folder / "secret").write_bytes(bytes(8))
    home = folder / "deep"
    (home / "data").write_bytes(bytes(8))
    for name, target in (("link", "../secret"), ("linked", "..")):
        if not (home / name).is_symlink():
            (home / name).symlink_to(target)
    for name, dims, entries in [("parent", [2], {"location": "../secret"}), ("absolute", [2], {"location": str(folder / "secret")}),
                                ("symlink", [2], {"location": "link"}), ("through_symlink", [2], {"location": "linked/secret"}),
                                ("folder", [2], {"location": "."}), ("no_location", [2], {}), ("nul", [2], {"location": "data\0x"}),
                                ("word", [2], {"location": "data", "offset": "four"}), ("negative", [2], {"location": "data", "offset": "-4"}),
                                ("far", [2], {"location": "data", "offset": str(1 << 62)}), ("long", [2], {"location": "data", "length": str(1 << 50)}),
                                ("terabytes", [1 << 20, 1 << 20], {"location": "data"}), ("overflow", [1 << 62, 4], {"location": "data"}),
                                ("digits", [2], {"location": "data", "length": "9" * 5000})]:
        g = small_models.Graph()
        x = g.input("x", small_models.weights(2))
        model = g.model((g.Add(x, g.constant(small_models.weights(2), "w")), 1, 1))
        w = model.graph.initializer[0]
        w.ClearField("raw_data")
        w.dims[:] = dims
        w.data_location = onnx.TensorProto.EXTERNAL
        for key, value in entries.items():
            entry = w.external_data.add()
            entry.key, entry.value = key, value
        path = home / f"{name}.onnx"
        path.write_bytes(model.SerializeToString())
        yield name, path


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    failed = converted = 0
    for name, path in hostile(options.folder):
        found = fault(path, options.folder / "out")
        if found is None and not path.with_suffix(".log").read_text().startswith("onnx_to_sinter.py: "):
            found = "is converted"
        if found:
            failed += 1
            print(f"{name}: {found}")
    digits = onnx.load(ROOT / "examples/data/digits.onnx")
    whole = digits.SerializeToString()
    apart = options.folder / "apart.onnx"
    onnx.save(digits, apart, save_as_external_data=True, location="apart.data", size_threshold=100)
    models = [whole, apart.read_bytes()] * 5 + [make(small_models.Graph()).SerializeToString() for make in small_models.MODELS]
    rng = random.Random(options.seed)
    for run in range(options.runs):
        path = options.folder / f"run_{run}.onnx"
        path.write_bytes(damaged(rng.choice(models), rng))
        found = fault(path, options.folder / "out")
        if found:
            failed += 1
            print(f"{path}: {found}", flush=True)
            continue
        converted += path.with_suffix(".log").read_text(errors="replace").startswith("wrote")
        path.unlink()
        path.with_suffix(".log").unlink()
    print(f"{options.runs} damaged models, of which {converted} convert all the same; {failed} failures")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
