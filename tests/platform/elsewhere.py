#!/usr/bin/env python3
"""Compiles programs and tests of most rooms for another system, and runs them in its emulator.

  windows   MinGW of threads "posix", under wine
  arm64     a cross-compiler, under qemu

Exit code 77 where the compiler, the emulator or Catch2's version 2, whose headers suffice, is not there.
"""
import argparse
import os
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tools

SYSTEMS = {  # compiler, its flags, emulator
    "windows": ("x86_64-w64-mingw32-g++-posix", ["-Wa,-mbig-obj"], "wine"),
    "arm64": ("aarch64-linux-gnu-g++", [], "qemu-aarch64"),
}
# One test of each room, or two: those that compile what differs, and small ones.
TESTS = ["core/arena", "core/tensor", "expr/fuse", "grad/statement", "nn/module", "optim/optimizer", "random/philox", "reduce/axes", "scan/sort",
         "io/model_file", "io/npy", "data/loader", "linalg/linalg", "math/lanes", "sequences/recurrent", "parallel/schedule"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("tests", nargs="*", default=TESTS, help="such as core/arena (default: one or two of each room)")
    parser.add_argument("--eigen", default="/usr/include/eigen3")
    parser.add_argument("--scratch", required=True, type=Path)
    options = parser.parse_args()
    compiler, flags, emulator = SYSTEMS[options.system]
    catch = Path("/usr/include/catch2")
    if not shutil.which(compiler) or not shutil.which(emulator) or not (catch / "catch.hpp").is_file():
        print(f"{options.system}: {compiler}, {emulator} or the headers of Catch2 2 are not there")
        sys.exit(77)
    out = options.scratch.resolve()
    (out / "catch").mkdir(parents=True, exist_ok=True)
    link = out / "catch/catch2"
    if not link.exists():
        link.symlink_to(catch)
    common = [compiler, "-std=c++20", "-O0", "-static", *flags, f"-I{tools.INCLUDE}", f"-I{tools.ROOT / 'tests'}", f"-I{out / 'catch'}",
              *tools.eigen_flags(options.eigen), f'-DSINTER_REPOSITORY="{tools.ROOT.as_posix()}"']
    os.environ |= {"WINEDEBUG": "-all", "WINEPREFIX": str(out / "wine"), "SINTER_NUM_THREADS": "2"}

    def build_and_run(name, *sources):
        program = out / f"{name.replace('/', '_')}.exe"
        code, text = tools.run([*common, *sources, "-o", program, "-pthread"])
        if code == 0:
            code, text = tools.run([emulator, program], cwd=out)
        return name, code, text

    main_object = out / "main.o"
    code, text = tools.run([*common, "-c", tools.ROOT / "tests/main.cpp", "-o", main_object])
    if code:
        sys.exit(text)
    programs = [("example", tools.ROOT / "examples/00_spirals.cpp")] if options.tests is TESTS else []
    programs += [(test, tools.ROOT / f"tests/{test}_test.cpp", main_object) for test in options.tests]
    failures = []
    for name, code, text in tools.parallel(lambda program: build_and_run(*program), programs):
        expected = "of the points are told apart" if name == "example" else "All tests passed"
        if code or expected not in text:
            failures.append((name, f"exit code {code}\n" + "\n".join(text.splitlines()[:40])))
    tools.report(options.system, failures, len(programs), 0)


main()
