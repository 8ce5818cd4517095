#!/usr/bin/env python3
"""Compiles the tests of runtime/ with nvcc, links them with a fake of the CUDA runtime and cuBLASLt, and runs them.

So all that Sinter asks of CUDA is run on a machine without a GPU. Exits with 77 where there is no nvcc.
"""
import argparse
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tools

HERE = Path(__file__).resolve().parent
FAKE = HERE / "runtime"
MAIN = HERE.parent / "main.cpp"
# The code for the GPU never runs: as PTX, hardly optimised, it costs the least.
FOR_THE_GPU = ["-arch=compute_80", "-Xcicc=-O1", "-x", "cu"]


def compiled(options, source):
    """The object of a source, or None and what the compiler says."""
    to = options.scratch / f"{source.stem}.o"
    language = FOR_THE_GPU if source.suffix == ".cu" else ["-x", "c++"]
    code, text = tools.run([options.nvcc, "-std=c++20", "--expt-relaxed-constexpr", f"-ccbin={options.compiler}", f"-I{tools.INCLUDE}",
                            *tools.eigen_flags(options.eigen), "-Xcompiler=-Wall,-Wextra", "-Werror=all-warnings", *language, "-c", source, "-o", to])
    return (to, None) if code == 0 else (None, "\n".join(text.splitlines()[:40]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--eigen", default="/usr/include/eigen3", help="Eigen's include folders, joined by colons")
    parser.add_argument("--link", action="append", default=[], help="a library that Catch2 needs")
    parser.add_argument("--scratch", type=Path, default=Path("build/cuda_runtime"))
    options = parser.parse_args()
    if shutil.which(options.nvcc) is None:
        print("tests on the fake CUDA runtime: skipped, there is no nvcc")
        sys.exit(77)
    options.scratch.mkdir(parents=True, exist_ok=True)
    passed = tools.Passed(options.scratch, [options.nvcc, options.compiler, options.link], tools.run([options.nvcc, "--version"])[1])
    key = passed.key(MAIN, MAIN.with_name("catch.hpp"), HERE / "runtime.py", *sorted(FAKE.iterdir()),
                     *sorted(tools.closure(tools.INCLUDE / "sinter/sinter.hpp")))
    tests = sorted(FAKE.glob("*_test.cu"))
    if key in passed:
        tools.report("tests on the fake CUDA runtime", [], len(tests), len(tests))
    sources = [*tests, MAIN, *sorted(FAKE.glob("*.cpp"))]
    objects = dict(zip(sources, tools.parallel(lambda source: compiled(options, source), sources)))
    failures = [(source.name, text) for source, (_, text) in objects.items() if text]
    if not failures:
        shared = [to for source, (to, _) in objects.items() if source not in tests]
        for test in tests:
            program = options.scratch / test.stem
            code, text = tools.run([options.compiler, objects[test][0], *shared, *options.link, "-pthread", "-o", program])
            if code == 0:
                code, text = tools.run([program.resolve()], timeout=300)
            if code != 0:
                failures.append((test.name, "\n".join(text.splitlines()[:80])))
    if not failures:
        passed.add(key)
    tools.report("tests on the fake CUDA runtime", failures, len(tests))


if __name__ == "__main__":
    main()
