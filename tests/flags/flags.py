#!/usr/bin/env python3
"""Flags and macros that change what a compiler makes of the library: under each it computes what it should, or says in one line what is wrong.

Compiles programs that look at their own results with the flags that are supported, and runs them. With those that are refused it compiles the
umbrella header. All headers are read once more with libc++, where the compiler has it.
"""
import argparse
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tools

HERE = Path(__file__).resolve().parent
FAST = r"sinter: .* make its numbers wrong: compile what includes it with -fno-fast-math"
REASSOCIATES = "-fassociative-math -fno-signed-zeros -fno-trapping-math"
# For both compilers, then for one: (program, flags), and flags -> what the refusal says.
SUPPORTED = [("program.cpp", "-O1 -funsafe-math-optimizations -fno-fast-math -fno-trapping-math -fno-math-errno -ffp-contract=off"),
             ("program.cpp", "-O1 -march=native -DEIGEN_DONT_VECTORIZE -fno-rtti"),
             ("program.cpp", "-O1 -march=native -DEIGEN_MAX_ALIGN_BYTES=0 -DEIGEN_DEFAULT_TO_ROW_MAJOR"),
             ("both_namespaces.cpp", "-O1"),
             ("program.cpp", "-O1 -std=c++2b"),
             ("constants.cpp", "-O2 -march=native"),
             ("constants.cpp", "-O3 -march=native")]
REFUSED = {
    "-O1 -ffast-math": FAST,
    "-O1 -ffast-math -fno-finite-math-only": FAST,
    "-O1 -ffinite-math-only": FAST,
    "-O1 -funsafe-math-optimizations": FAST,
    f"-O1 {REASSOCIATES}": FAST,
    "-O3 -freciprocal-math": FAST,
    "-O1 -fno-signed-zeros": FAST,
    "-fno-exceptions": "sinter: .* without -fno-exceptions",
    "-m32": "sinter: needs a 64-bit system",
    "-DEIGEN_DEFAULT_DENSE_INDEX_TYPE=int": "sinter: .*EIGEN_DEFAULT_DENSE_INDEX_TYPE",
}
SUPPORTED_BY = {"gcc": [], "clang": [("program.cpp", "-O0 -funsafe-math-optimizations")]}
REFUSED_BY = {"gcc": {"-O0 -funsafe-math-optimizations": FAST},
              "clang": {"-O1 -fno-honor-nans": FAST, "-O1 -fno-honor-infinities": FAST}}
LIBCXX = "-stdlib=libc++"
# The umbrella header of each room but cuda.
ROOMS = "".join(f"#include <sinter/{file.name}>\n" for file in sorted((tools.INCLUDE / "sinter").glob("*.hpp")) if file.name != "cuda.hpp")


def works(command, source, flags, program):
    """None if a program compiles without a warning and finds its results right, else what is wrong."""
    code, text = tools.run([*command, "-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Werror", *flags.split(), HERE / source, "-pthread", "-o", program])
    if code == 0:
        code, text = tools.run([program.resolve()])
    return None if code == 0 else "\n".join(text.splitlines()[:40])


def refuses(command, flags, message):
    """None if the library is refused with this message alone, else what is wrong."""
    code, text = tools.run([*command, *flags.split(), "-c", "-x", "c++", "-", "-o", "/dev/null"], input=b"#include <sinter/sinter.hpp>\n")
    if code == 0:
        return "compiles"
    # A header that does not exist ends the compilation behind a message.
    errors = [line for line in text.splitlines() if re.search(r"\berror: ", line) and not re.search(r"sinter_needs_\w+'?:? ", line)]
    return None if len(errors) == 1 and re.search(message, errors[0]) else text


def reads(command, flags, text):
    """None if a text compiles without a warning, else what is wrong."""
    code, output = tools.run([*command, *flags.split(), "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-x", "c++", "-"], input=text.encode())
    return None if code == 0 else "\n".join(output.splitlines()[:40])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--eigen", default="/usr/include/eigen3", help="Eigen's include folders, joined by colons")
    parser.add_argument("--scratch", type=Path, default=Path("build/flags"))
    options = parser.parse_args()
    kind = tools.compiler_kind(options.compiler)
    scratch = options.scratch / Path(options.compiler).name
    scratch.mkdir(parents=True, exist_ok=True)
    command = [options.compiler, "-std=c++20", f"-I{tools.INCLUDE}", *tools.eigen_flags(options.eigen)]
    passed = tools.Passed(scratch / "passed", command, tools.run([options.compiler, "--version"])[1], Path(__file__).read_bytes())
    sources = [*sorted(HERE.glob("*.cpp")), *sorted(tools.closure(tools.INCLUDE / "sinter/sinter.hpp"))]
    for name in ("Core", "src/Core/util/Macros.h"):  # in front of the Eigen that is there
        old_eigen = scratch / "old/Eigen" / name
        old_eigen.parent.mkdir(parents=True, exist_ok=True)
        old_eigen.write_text("#define EIGEN_VERSION_AT_LEAST(world, major, minor) 0\n")
    refused = {**REFUSED, **REFUSED_BY[kind], f"-I{scratch}/old": "sinter: needs Eigen 3.4"}
    cases = [(source, flags, None) for source, flags in [*SUPPORTED, *SUPPORTED_BY[kind]]]
    cases += [(None, flags, message) for flags, message in refused.items()]
    if kind == "clang" and reads(command, LIBCXX, "#include <mutex>\n"):
        print("the compiler has no libc++: nothing was read with it")
    elif kind == "clang":
        cases.append((ROOMS, LIBCXX, None))
    skipped = 0

    def one(number_and_case):
        nonlocal skipped
        number, (source, flags, message) = number_and_case
        key = passed.key(source, flags, message, *(tools.headers() if source == ROOMS else sources))
        if key in passed:
            skipped += 1
            return None
        if source == ROOMS:
            problem = reads(command, flags, ROOMS)
        elif message:
            problem = refuses(command, flags, message)
        else:
            problem = works(command, source, flags, scratch / f"program_{number}")
        if problem:
            return f"{'all headers' if source == ROOMS else source or 'refused'} {flags}", problem
        passed.add(key)
        return None

    failures = [failure for failure in tools.parallel(one, list(enumerate(cases))) if failure]
    tools.report(f"flags with {Path(options.compiler).name}", failures, len(cases), skipped)


if __name__ == "__main__":
    main()
