#!/usr/bin/env python3
"""Compiles the CUDA backend with nvcc and looks at what it made of it.

Every header of the backend and hot.cu must compile for sm_80 and sm_90 without a warning, the tests of tests/gpu for sm_90; those
of this folder are compiled, and run, by runtime.py. The kernels of hot.cu must read and write 16 bytes at a time and keep everything
in registers: no stack, no spills. What is in rejected/ must not compile, as in tests/compile_fail. Where cuDNN and NCCL are found,
their headers are compiled too, and tests/gpu/native_test.cu is linked with them; what of it needs no GPU is run. What includes CUB is
compiled where CUB is.

With --quick nothing is compiled but quick.cu, for sm_90: a statement of each kind of kernel.
"""
import argparse
import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tools
sys.path.insert(0, str(tools.ROOT / "tests/compile_fail"))
import compile_fail

HERE = Path(__file__).resolve().parent
ARCHITECTURES = ["-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_90,code=sm_90"]

# Tests are compiled to see that they compile; what becomes of kernels is looked at in hot.cu. The host's half has run in the
# simulator, here the compiler needs only read it.
READ_ONLY = "-Xcompiler=-fsyntax-only"
QUICKLY = ["-Xcicc=-O1", "-Xptxas=-O0", READ_ONLY]


# name -> its header, something to call in it, and where a test needs it
OPTIONAL = {"cudnn": ("cudnn.h", "cudnnGetVersion()", r"\bcudnn"),
            "nccl": ("nccl.h", "ncclGetVersion(nullptr)", r"\b(?:all_reduce|nccl)")}


def command_of(options):
    return [options.nvcc, "-std=c++20", "--expt-relaxed-constexpr", f"-ccbin={options.compiler}", f"-I{tools.INCLUDE}",
            *tools.eigen_flags(options.eigen), f'-DSINTER_REPOSITORY="{tools.ROOT}"']


def found_libraries(options):
    """Those of OPTIONAL for which a program compiles and links."""
    found = []
    for name, (header, call, _) in OPTIONAL.items():
        probe = options.scratch / f"{name}_probe.cu"
        probe.write_text(f"#include <{header}>\nint main() {{ return {call} == 0; }}\n")
        code, _ = tools.run([options.nvcc, f"-ccbin={options.compiler}", probe, "-o", options.scratch / f"{name}_probe", f"-l{name}"])
        print(f"{name}: " + ("found" if code == 0 else "no header or library; what needs it is not compiled"))
        if code == 0:
            found.append(name)
    return found


def found_cub(options):
    """Whether nvcc finds CUB, which is headers alone."""
    probe = options.scratch / "cub_probe.cu"
    probe.write_text("#if !__has_include(<cub/device/device_radix_sort.cuh>)\n#error\n#endif\n")
    found = tools.run([options.nvcc, f"-ccbin={options.compiler}", "-E", probe, "-o", os.devnull])[0] == 0
    print("cub: " + ("found" if found else "no headers; what needs them is not compiled"))
    return found


def with_macros(libraries):
    return [f"-DSINTER_WITH_{name.upper()}=1" for name in libraries]


class Nvcc:
    """nvcc, as compile_fail.check() wants a compiler."""
    kind = "nvcc"

    def __init__(self, options, libraries):
        self.command = [*command_of(options), *with_macros(libraries), "-arch=sm_90", *QUICKLY, "-c", "-o", os.devnull]

    def compile(self, file, must_fail):
        warnings = [] if must_fail else ["-Xcompiler=-Wall,-Wextra", "-Werror=all-warnings"]
        return tools.run([*self.command, *warnings, *["-DSINTER_MUST_FAIL"] * must_fail, file])


def rejection(options, passed, libraries, file):
    """None if `file` is rejected as it says and its twin compiles, else what is wrong."""
    compiler = Nvcc(options, libraries)
    key = passed.key(*map(str, compiler.command), file, *sorted(tools.closure(file)), HERE / "compile.py", Path(compile_fail.__file__))
    if key in passed:
        return None
    problem = compile_fail.check(compiler, compile_fail.Case(file, "nvcc"))
    if not problem:
        passed.add(key)
    return problem


def linked(options, passed, libraries):
    """None if native_test.cu compiles and links with the libraries, is loaded with them, and passes what needs no GPU."""
    test, main = tools.ROOT / "tests/gpu/native_test.cu", tools.ROOT / "tests/main.cpp"
    out = options.scratch / "native"
    out.mkdir(exist_ok=True)
    key = passed.key("linked", *libraries, test, main, *sorted(tools.closure(tools.INCLUDE / "sinter/sinter.hpp")), HERE / "compile.py")
    if key in passed:
        return None
    for command in ([*command_of(options), *with_macros(libraries), "-arch=sm_90", "-Xcicc=-O1", "-Xptxas=-O0", "-c", test, "-o", out / "test.o"],
                    [options.compiler, "-std=c++20", "-c", main, "-o", out / "main.o"],
                    [options.nvcc, f"-ccbin={options.compiler}", "-arch=sm_90", out / "test.o", out / "main.o", "-o", out / "test", "-lcublasLt",
                     *[f"-l{name}" for name in libraries]],
                    [out / "test", "[without_gpu]"]):
        code, text = tools.run(command)
        if code != 0:
            return "\n".join(text.splitlines()[:40])
    needed = tools.run(["readelf", "-d", out / "test"])[1]
    for name in OPTIONAL:
        if (f"[lib{name}." in needed) != (name in libraries):
            return f"lib{name} is {'not ' * (name in libraries)}among what the program loads:\n{needed}"
    passed.add(key)
    return None


def complaints(options, passed, file, flags, look):
    """None if `file` compiles without a word, else the text; look(output) may find more to complain of."""
    command = [*command_of(options), "-Xcompiler=-Wall,-Wextra", "-Werror=all-warnings", "-x", "cu", *flags, file]
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
    dead_end = re.search(r"\n(\$L__BB\w+):\s*\}", text)
    if dead_end:
        return f"no instruction follows {dead_end[1]}: the compiler found a contradiction, and left out what cannot be"
    bodies = {}
    for part in re.split(r"\n(?=\.(?:visible|weak|func)\b)", text):
        found = re.match(r"\.(?:visible \.entry|(?:weak )?\.?func)[^{]*?\b(_Z\w+)\(", part)
        if found and "{" in part:
            bodies[found[1]] = part.split("\n}\n")[0]
    entries = [name for name, body in bodies.items() if ".entry" in body.split("{")[0]]
    hot = [name for name in entries if re.search(r"map_(?:sums_)?body|(?<!scan_)rows_body|reduce_columns_body", name)]
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
        if re.search(r"\D9rows_bodyI(?:(?!4leaf|3map).)*4leafI[fd]Lb0E|17reverse_rows_body", name) and "cp.async.cg.shared.global" not in reached:
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
    parser.add_argument("--quick", action="store_true", help="compile quick.cu and nothing else")
    options = parser.parse_args()
    options.scratch.mkdir(parents=True, exist_ok=True)
    passed = tools.Passed(options.scratch, [options.nvcc], tools.run([options.nvcc, "--version"])[1])
    if options.quick:
        problem = complaints(options, passed, HERE / "quick.cu", ["-arch=sm_90", *QUICKLY, "-c", "-o", os.devnull], nothing)
        tools.report("CUDA compilations", [("quick.cu", problem)] if problem else [], 1)
    kept = options.scratch / "hot"
    kept.mkdir(exist_ok=True)
    work = []
    alone = options.scratch / "headers.cu"
    every = sorted((tools.INCLUDE / "sinter/cuda").glob("*.hpp"))
    with_libraries = [*every, *sorted((tools.INCLUDE / "sinter/ranks/nccl").glob("*.hpp"))]
    of_libraries = {name: [header for header in with_libraries if header.stem.split("_")[0] == name] for name in OPTIONAL}
    headers = [header for header in every if header.stem not in ["cub", "cub_folds"] and header not in sum(of_libraries.values(), [])]
    alone.write_text("".join(f"#include <sinter/cuda/{header.name}>\n" for header in headers))
    work.append(("the headers of cuda/", alone, [*ARCHITECTURES, "-c", "-o", "/dev/null"], nothing))
    libraries = found_libraries(options)
    for name in libraries:
        alone = options.scratch / f"{name}.cu"
        alone.write_text("".join(f"#include <sinter/{header.parent.name}/{header.name}>\n" for header in of_libraries[name]))
        work.append((f"what calls {name}", alone, [*with_macros([name]), *ARCHITECTURES, "-c", "-o", "/dev/null"], nothing))
    work.append(("the kernels of hot.cu", HERE / "hot.cu",
                 [*ARCHITECTURES, "-Xptxas=-v", READ_ONLY, "--keep", "--keep-dir", kept, "-c", "-o", "/dev/null"],
                 lambda text: looked_at(text, kept / "hot.compute_90.ptx")))
    with_cub = found_cub(options)
    for test in sorted((HERE.parent / "gpu").glob("*.cu")):
        flags = [*ARCHITECTURES] if test.name == "cub.cu" else ["-arch=sm_90", *QUICKLY]  # the former is what a user's file is
        if with_cub or "cub" not in test.stem:
            work.append((test.name, test, [*flags, "-c", "-o", "/dev/null"], nothing))
    work = [(name, lambda rest=rest: complaints(options, passed, *rest)) for name, *rest in work]
    if libraries:
        work.append((f"native_test.cu with {' and '.join(libraries)}", lambda: linked(options, passed, libraries)))
    for file in sorted((HERE / "rejected").glob("*.cu")):
        missing = [name for name in OPTIONAL if name not in libraries and re.search(OPTIONAL[name][2], file.read_text(encoding="utf-8"))]
        if not missing:
            work.append((f"rejected/{file.name}", lambda file=file: rejection(options, passed, libraries, file)))
    results = tools.parallel(lambda item: (item[0], item[1]()), work)
    failures = [(name, text) for name, text in results if text]
    tools.report("CUDA compilations", failures, len(work), 0)


if __name__ == "__main__":
    main()
