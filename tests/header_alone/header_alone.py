#!/usr/bin/env python3
"""Compiles every header of the library alone, twice included, with names that other libraries define as macros poisoned.

Headers that reach Eigen are compiled alone without the poison, since Eigen uses some of the names, and once more all together:
after Eigen, with the poison. Those that reach CUDA's runtime are for nvcc; tests/cuda/compile.py compiles them.
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


def own_name(header):
    return header.relative_to(tools.INCLUDE).as_posix()


def eigen_of(header):
    """The lines with which a header and all that it reaches include Eigen."""
    return {line for file in tools.closure(header) for line in file.read_text(encoding="utf-8").splitlines()
            if line.startswith("#include <Eigen/")}


def compilations(headers):
    """(name, headers, source) of each."""
    items = []
    after_eigen = []
    for header in headers:
        twice = f"#include <{own_name(header)}>\n" * 2
        if eigen_of(header):
            after_eigen.append(header)
            items.append((own_name(header), [header], twice))
        else:
            items.append((own_name(header), [header], POISON + twice))
    if after_eigen:
        eigen = sorted(set().union(*map(eigen_of, after_eigen)))
        own = [f"#include <{own_name(header)}>" for header in after_eigen]
        items.append(("all that reach Eigen (poisoned)", after_eigen, "\n".join(eigen) + "\n" + POISON + "\n".join(own) + "\n"))
    return items


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
        name, headers, source = item
        key = passed.key(name, source, HERE / "poison.hpp", *sorted(set().union(*map(tools.closure, headers))))
        if key in passed:
            skipped += 1
            return None
        code, text = tools.run(command, input=source.encode())
        if code != 0:
            return name, "\n".join(text.splitlines()[:40])
        passed.add(key)
        return None

    items = compilations(files)
    headers_of = {name: headers for name, headers, _ in items}
    failures = [failure for failure in tools.parallel(check, items) if failure]
    # A header that fails takes those that include it along; the text of its own failure is enough.
    failed = {name for name, _ in failures}

    def own_text(name, text):
        reached = set().union(*map(tools.closure, headers_of[name]))
        culprits = sorted(failed & {own_name(part) for part in reached} - {name})
        return f"fails with {', '.join(culprits[:3])}" if culprits else text

    failures = [(name, own_text(name, text)) for name, text in failures]
    tools.report("headers alone", failures, len(items), skipped)


if __name__ == "__main__":
    main()
