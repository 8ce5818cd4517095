#!/usr/bin/env python3
"""Compiles every header of the library alone, twice included, with names that other libraries define as macros poisoned.

Headers that reach Eigen are compiled twice: alone, and after Eigen with the poison, since Eigen uses some of the names.
Those that reach CUDA's runtime are for nvcc; tests/cuda/compile.py compiles them.
"""
import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tools

HERE = Path(__file__).resolve().parent
POISON = f'#include "{HERE}/poison.hpp"\n'
FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-x", "c++"]


def needs_cuda(header):
    # sinter.hpp includes the backend only where a CUDA compiler reads it.
    return header.name != "sinter.hpp" and any("#include <cuda_runtime.h>" in file.read_text(encoding="utf-8") for file in tools.closure(header))


def variants(header):
    """(name, source) of each compilation of a header."""
    name = header.relative_to(tools.INCLUDE).as_posix()
    twice = f"#include <{name}>\n#include <{name}>\n"
    eigen = sorted({line for file in tools.closure(header) for line in file.read_text(encoding="utf-8").splitlines()
                    if line.startswith("#include <Eigen/")})
    if not eigen:
        return [(name, POISON + twice)]
    return [(name, twice), (name + " (poisoned)", "\n".join(eigen) + "\n" + POISON + twice)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--eigen", default="/usr/include/eigen3", help="Eigen's include folders, joined by colons")
    parser.add_argument("--scratch", type=Path, default=Path("build/header_alone"))
    parser.add_argument("headers", nargs="*", type=Path, help="only these (default: all under include/)")
    options = parser.parse_args()
    command = [options.compiler, *FLAGS, f"-I{tools.INCLUDE}", *tools.eigen_flags(options.eigen), "-"]
    passed = tools.Passed(options.scratch, command, tools.run([options.compiler, "--version"])[1])
    files = [header.resolve() for header in options.headers] or [header for header in tools.headers() if not needs_cuda(header)]
    if not files:
        sys.exit("no headers found")
    skipped = 0

    def check(item):
        nonlocal skipped
        header, name, source = item
        key = passed.key(name, source, HERE / "poison.hpp", *sorted(tools.closure(header)))
        if key in passed:
            skipped += 1
            return None
        code, text = tools.run(command, input=source.encode())
        if code != 0:
            return name, "\n".join(text.splitlines()[:40])
        passed.add(key)
        return None

    items = [(header, *variant) for header in files for variant in variants(header)]
    failures = [failure for failure in tools.parallel(check, items) if failure]
    # A header that fails takes those that include it along; the text of its own failure is enough.
    failed = {name.split(" ")[0] for name, _ in failures}

    def own_text(name, text):
        first = tools.INCLUDE / name.split(" ")[0]
        culprits = sorted(failed & {part.relative_to(tools.INCLUDE).as_posix() for part in tools.closure(first) - {first}})
        return f"fails with {', '.join(culprits[:3])}" if culprits else text

    failures = [(name, own_text(name, text)) for name, text in failures]
    tools.report("headers alone", failures, len(items), skipped)


if __name__ == "__main__":
    main()
