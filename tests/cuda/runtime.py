#!/usr/bin/env python3
"""Runs programs for GPUs without one: compiled by nvcc, linked with a fake of the CUDA runtime, cuBLASLt, cuDNN and NCCL.

In the tests of runtime/ kernels compute nothing: they look at what Sinter asks of CUDA. In the tests of this folder, and in the example
that trains a network, kernels do what the PTX says that nvcc made of them; with --all also in those of the op table, of sorts by CUB, of
tests/parallel, tests/ranks, and of tests/gpu that need neither a real GPU nor another library. What runs the PTX has a test of its own. What calls
cuDNN or NCCL is left out where that is not found. Exits with 77 where there is no nvcc.
"""
import argparse
import re
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tools
from compile import found_cub, found_libraries

HERE = Path(__file__).resolve().parent
FAKE = HERE / "runtime"
MAIN = HERE.parent / "main.cpp"
TABLE = [*sorted((HERE.parent / "ops").glob("table_[0-9]*_test.cpp")), HERE.parent / "gpu/table_test.cu"]
SORTS = [HERE.parent / "gpu/cub.cu", HERE / "sort_test.cpp"]
FOLDS = HERE.parent / "gpu/folds_by_cub_test.cu"
FOR_GPUS = [*(HERE.parent / "gpu" / name for name in ["memory_test.cu", "runtime_test.cu"]), *sorted(test for room in ["parallel", "ranks"] for test in (HERE.parent / room).glob("*_test.cpp"))]
OF_CUDNN = [FAKE / "cudnn_test.cu", FAKE / "fake_cudnn.cpp"]
OF_NCCL = [FAKE / "nccl_test.cu", FAKE / "fake_nccl.cpp"]  # its kernels are run
OF_PTX = FAKE / "ptx_checks.cpp"
EXAMPLE = tools.ROOT / "examples/01_digits.cpp"
# Whether the code for the GPU is run: if not, it costs the least as PTX that is hardly optimised.
RUN = ["-arch=compute_80", "-no-compress", "-x", "cu"]
NOT_RUN = ["-arch=compute_80", "-Xcicc=-O1", "-x", "cu"]
HOST = ["-Xcompiler=-O2,-ffp-contract=off,-frounding-math", "-x", "c++"]


def compiled(options, source):
    """The object of a source, or None and what the compiler says."""
    to = options.scratch / f"{source.stem}.o"
    macros = {OF_CUDNN[0]: ["-DSINTER_WITH_CUDNN=1"], OF_NCCL[0]: ["-DSINTER_WITH_NCCL=1"]}.get(source, [])
    language = RUN if (source.parent != FAKE and source != MAIN) or source == OF_NCCL[0] else NOT_RUN if source.suffix == ".cu" else HOST
    code, text = tools.run([options.nvcc, "-std=c++20", "--expt-relaxed-constexpr", f"-ccbin={options.compiler}", f"-I{tools.INCLUDE}",
                            f'-DSINTER_REPOSITORY="{tools.ROOT}"', *tools.eigen_flags(options.eigen), "-Xcompiler=-Wall,-Wextra",
                            "-Werror=all-warnings", *macros, *language, "-c", source, "-o", to])
    return (to, None) if code == 0 else (None, "\n".join(text.splitlines()[:40]))


def problem_of(options, name, parts, arguments=()):
    """None if a program of these objects runs well, else what it says."""
    program = options.scratch / name
    code, text = tools.run([options.compiler, *parts, *options.link, "-pthread", "-o", program])
    if code == 0:
        code, text = tools.run([program.resolve(), *arguments])
    return None if code == 0 else "\n".join(text.splitlines()[:80])


def trained(options, parts):
    """None if the example learns on a GPU what it learns on the host."""
    program = options.scratch / "digits"
    code, text = tools.run([options.compiler, *parts, "-pthread", "-o", program])
    if code != 0:
        return text
    lines = {}
    for device in ["cpu", "cuda"]:
        code, text = tools.run([program.resolve(), "--device", device, "--epochs", "10", "--data", tools.ROOT / "examples/data",
                                "--out", options.scratch])
        if code != 0:
            return text
        lines[device] = re.findall(r"loss [0-9.]+ +test accuracy [0-9.]+ %", text)
    if len(lines["cpu"]) != 10 or lines["cpu"] != lines["cuda"]:
        return f"losses and accuracies differ: {lines}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--eigen", default="/usr/include/eigen3", help="Eigen's include folders, joined by colons")
    parser.add_argument("--link", action="append", default=[], help="a library that Catch2 needs")
    parser.add_argument("--all", action="store_true", help="what takes minutes to compile too: the op table, tests/gpu, tests/parallel, tests/ranks")
    parser.add_argument("--scratch", type=Path, default=Path("build/cuda_runtime"))
    options = parser.parse_args()
    if shutil.which(options.nvcc) is None:
        print("programs on the fake CUDA runtime: skipped, there is no nvcc")
        sys.exit(77)
    options.scratch.mkdir(parents=True, exist_ok=True)
    passed = tools.Passed(options.scratch, [options.nvcc, options.compiler, options.link], tools.run([options.nvcc, "--version"])[1])
    # Those that include the simulator themselves, not by compare.hpp, are for it alone.
    run = [test for test in sorted(HERE.glob("*_test.cpp")) if '"simulator.hpp"' not in test.read_text(encoding="utf-8")]
    libraries = found_libraries(options)
    left_out = [*OF_CUDNN * ("cudnn" not in libraries), *OF_NCCL * ("nccl" not in libraries)]
    not_run = [test for test in sorted(FAKE.glob("*_test.cu")) if test not in [*left_out, OF_NCCL[0]]]
    with_cub = found_cub(options)
    more = [*[FOLDS] * with_cub, *FOR_GPUS * options.all]
    together = [TABLE, *[SORTS] * with_cub] if options.all else []
    with_nccl = OF_NCCL[0] not in left_out
    programs = len(run) + len(not_run) + len(more) + len(together) + with_nccl + 2
    sources = [*dict.fromkeys([*run, *not_run, *more, *sum(together, []), *OF_NCCL[:with_nccl]]), EXAMPLE, MAIN,
               *[file for file in sorted(FAKE.glob("*.cpp")) if file not in left_out]]
    folders = [HERE.parent, HERE, FAKE, EXAMPLE.parent, *(HERE.parent / name for name in ["ops", "gpu", "parallel", "ranks"])]
    helpers = [header for folder in folders for header in sorted(folder.glob("*.hpp"))]
    key = passed.key(HERE / "runtime.py", HERE / "compile.py", HERE.parent / "tools.py", *sources, *helpers,
                     *sorted(file for file in (tools.ROOT / "examples/data").rglob("*") if file.is_file()), *sorted(tools.closure(tools.INCLUDE / "sinter/sinter.hpp")),
                     *sorted(header for room in ["parallel", "ranks"] for header in (tools.INCLUDE / "sinter" / room).rglob("*.hpp")))
    if key in passed:
        tools.report("programs on the fake CUDA runtime", [], programs, programs)
    objects = dict(zip(sources, tools.parallel(lambda source: compiled(options, source), sources)))
    failures = [(source.name, text) for source, (_, text) in objects.items() if text]
    if not failures:
        of = lambda *files: [objects[file][0] for file in files]
        runtime = of(FAKE / "fake.cpp", FAKE / "fake_blas.cpp")
        machine = [*runtime, *of(FAKE / "ptx.cpp", FAKE / "run_kernels.cpp")]
        tests = [*[([test, *OF_CUDNN[1:]] if test in OF_CUDNN else [test], runtime) for test in not_run], *[([test], machine) for test in [*run, *more]], *[(files, machine) for files in together],
                 *[(OF_NCCL, machine)] * with_nccl]
        work = [(files[0].name, lambda files=files, rest=rest: problem_of(options, files[0].stem, [*of(*files, MAIN), *rest])) for files, rest in tests]
        work.append((OF_PTX.name, lambda: problem_of(options, OF_PTX.stem, of(OF_PTX, MAIN, FAKE / "ptx.cpp"))))
        work.append((EXAMPLE.name, lambda: trained(options, [*of(EXAMPLE), *machine])))
        failures = [(name, text) for name, text in tools.parallel(lambda item: (item[0], item[1]()), work) if text]
    if not failures:
        passed.add(key)
    tools.report("programs on the fake CUDA runtime", failures, programs)


if __name__ == "__main__":
    main()
