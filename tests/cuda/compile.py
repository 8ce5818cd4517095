#!/usr/bin/env python3
"""Compiles the CUDA backend with nvcc and looks at what it made of it.

Every header of the backend and hot.cu must compile for sm_80 and sm_90 without a warning, the tests of this folder and of
tests/gpu for sm_90. The kernels of hot.cu must read and write 16 bytes at a time and keep everything in registers: no stack,
no spills.
"""
import argparse
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tools

HERE = Path(__file__).resolve().parent
ARCHITECTURES = ["-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_90,code=sm_90"]

# Tests are compiled to see that they compile; what becomes of kernels is looked at in hot.cu. The host's half has run in the
# simulator, here the compiler needs only read it.
READ_ONLY = "-Xcompiler=-fsyntax-only"
QUICKLY = ["-Xcicc=-O1", "-Xptxas=-O0", READ_ONLY]


def complaints(options, passed, file, flags, look):
    """None if `file` compiles without a word, else the text; look(output) may find more to complain of."""
    command = [options.nvcc, "-std=c++20", "--expt-relaxed-constexpr", f"-ccbin={options.compiler}", f"-I{tools.INCLUDE}",
               *tools.eigen_flags(options.eigen), f'-DSINTER_REPOSITORY="{tools.ROOT}"', "-Xcompiler=-Wall,-Wextra", "-Werror=all-warnings", "-x", "cu",
               *flags, file]
    key = passed.key(*map(str, command), Path(file), *sorted(tools.closure(tools.INCLUDE / "sinter/sinter.hpp")),
                     *sorted(HERE.glob("*.hpp")), HERE / "compile.py")
    if key in passed:
        return None
    code, text = tools.run(command)
    if code != 0:
        return "\n".join(text.splitlines()[:40])
    if "warning" in text:
        return text
    found = look(text)
    if not found:
        passed.add(key)
    return found


def nothing(_):
    return None


def looked_at(text, ptx):
    return resources(text) or accesses(ptx)


def resources(text):
    """What ptxas says of each kernel: a stack or a spill is a problem."""
    frames = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", text)
    if not frames:
        return "ptxas named no kernel"
    if any(frame != ("0", "0", "0") for frame in frames):
        return "a kernel uses local memory:\n" + "\n".join(line for line in text.splitlines() if "stack frame" in line)
    return None


def accesses(ptx):
    """Elementwise and row-wise kernels must have 128-bit global stores, and loads if they read anything, folds loads; nothing may
    use local memory."""
    text = ptx.read_text()
    if ".local." in text:
        return "a kernel or a function that kernels share uses local memory"
    bodies = {}
    for part in re.split(r"\n(?=\.(?:visible|weak|func)\b)", text):
        found = re.match(r"\.(?:visible \.entry|(?:weak )?\.?func)[^{]*?\b(_Z\w+)\(", part)
        if found and "{" in part:
            bodies[found[1]] = part.split("\n}\n")[0]
    entries = [name for name, body in bodies.items() if ".entry" in body.split("{")[0]]
    hot = [name for name in entries if re.search(r"map_(?:sums_)?body|rows_body|reduce_columns_body", name)]
    for kind in ["map_body", "map_sums_body", "9rows_body", "reduce_rows_body", "reduce_columns_body"]:
        if not any(kind in name for name in hot):
            return f"there is no {kind} in the PTX"
    for name in hot:
        reads = re.search(r"4leafI|8add_passI", name)
        writes = "reduce_" not in name
        reached = with_callees(name, bodies)
        for access, what in [("ld", "load")] * bool(reads) + [("st", "store")] * writes:
            if not re.search(rf"\b{access}\.global(?:\.nc)?\.(?:v4\.[bfu]32|v2\.[bfu]64)", reached):
                return f"{name} has no 128-bit global {what}"
        if re.search(r"\D9rows_body|17reverse_rows_body", name) and "cp.async.cg.shared.global" not in reached:
            return f"{name} does not ask for whole rows at once"
    return None


def with_callees(name, bodies):
    """The code of a kernel and of all functions it calls."""
    seen, waiting = [], [name]
    while waiting:
        now = waiting.pop()
        seen.append(now)
        waiting += [f for f in set(re.findall(r"\b_Z\w+", bodies[now])) if f in bodies and f not in seen + waiting]
    return "\n".join(bodies[f] for f in seen)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--eigen", default="/usr/include/eigen3", help="Eigen's include folders, joined by colons")
    parser.add_argument("--scratch", type=Path, default=Path("build/cuda_compile"))
    options = parser.parse_args()
    options.scratch.mkdir(parents=True, exist_ok=True)
    passed = tools.Passed(options.scratch, [options.nvcc], tools.run([options.nvcc, "--version"])[1])
    kept = options.scratch / "hot"
    kept.mkdir(exist_ok=True)
    work = []
    alone = options.scratch / "headers.cu"
    alone.write_text("".join(f"#include <sinter/cuda/{header.name}>\n" for header in sorted((tools.INCLUDE / "sinter/cuda").glob("*.hpp"))))
    work.append(("the headers of cuda/", alone, [*ARCHITECTURES, "-c", "-o", "/dev/null"], nothing))
    work.append(("the kernels of hot.cu", HERE / "hot.cu",
                 [*ARCHITECTURES, "-Xptxas=-v", READ_ONLY, "--keep", "--keep-dir", kept, "-c", "-o", "/dev/null"],
                 lambda text: looked_at(text, kept / "hot.compute_90.ptx")))
    for test in [*sorted(HERE.glob("*_test.cpp")), *sorted((HERE.parent / "gpu").glob("*.cu"))]:
        work.append((test.name, test, ["-arch=sm_90", *QUICKLY, "-c", "-o", "/dev/null"], nothing))
    results = tools.parallel(lambda item: (item[0], complaints(options, passed, *item[1:])), work)
    failures = [(name, text) for name, text in results if text]
    tools.report("CUDA compilations", failures, len(work), 0)


if __name__ == "__main__":
    main()
