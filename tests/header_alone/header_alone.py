#!/usr/bin/env python3
"""Compiles every header of the library alone, twice included, with names that other libraries define as macros poisoned.

Headers that reach Eigen are compiled alone without the poison, since Eigen uses some of the names, and once more all together:
after Eigen, and the header that reads parts of it, with the poison. Those that reach CUDA's runtime are for nvcc; tests/cuda/compile.py compiles them. tests/mpi compiles what needs MPI.

With --shared-std every header finds the standard headers of the whole library precompiled, which takes a third of the time: a
forgotten header of ours is noticed all the same, a forgotten standard header is not.
"""
import argparse
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tools

HERE = Path(__file__).resolve().parent
POISON = f'#include "{HERE}/poison.hpp"\n'
FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]


def needs_mpi(header):
    # tests/mpi compiles it.
    return "#if !SINTER_WITH_MPI" in header.read_text(encoding="utf-8")


def needs_openssl(header):
    # tests/ranks compiles it, where OpenSSL is there.
    return "#if !SINTER_WITH_OPENSSL" in header.read_text(encoding="utf-8")


def own_name(header):
    return header.relative_to(tools.INCLUDE).as_posix()


def eigen_of(header):
    """The lines with which a header and all that it reaches include Eigen. A file of ours that reads parts of it counts as Eigen: the parts
    depend on the processor, and on their order."""
    found = set()
    for file in tools.closure(header):
        lines = {line for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("#include <Eigen/")}
        in_parts = any(line.startswith("#include <Eigen/src/") for line in lines)
        found |= {f"#include <{own_name(file)}>"} if in_parts else lines
    return found


STANDARD = re.compile(r"^#include <([a-z_0-9]+)>$", re.M)


def precompiled_standard(command, folder):
    """The flags by which the compiler finds every standard header that the library includes already compiled."""
    names = sorted({name for header in tools.headers() for name in STANDARD.findall(header.read_text(encoding="utf-8"))
                    if not name.startswith("sinter_needs_")})  # those exist nowhere, to end a compilation
    header = folder / "standard.hpp"
    header.write_text("".join(f"#include <{name}>\n" for name in names))
    made = header.with_suffix(".hpp.gch" if tools.compiler_kind(command[0]) == "gcc" else ".hpp.pch")
    flags = [flag for flag in command[1:] if flag != "-fsyntax-only"]
    code, text = tools.run([command[0], *flags, "-x", "c++-header", header, "-o", made])
    if code != 0:
        sys.exit(f"the standard headers do not compile:\n{text}")
    return ["-include", header, "-Winvalid-pch"]


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
    parser.add_argument("--shared-std", action="store_true", help="precompile the standard headers for all")
    parser.add_argument("headers", nargs="*", type=Path, help="only these (default: all under include/)")
    options = parser.parse_args()
    command = [options.compiler, *FLAGS, f"-I{tools.INCLUDE}", *tools.eigen_flags(options.eigen)]
    passed = tools.Passed(options.scratch, command, tools.run([options.compiler, "--version"])[1])
    if options.shared_std:
        command += precompiled_standard(command, options.scratch)
    command += ["-x", "c++", "-"]
    files = [header.resolve() for header in options.headers] or [header for header in tools.headers() 
                                                                  if not (tools.needs_cuda(header) or needs_mpi(header) or needs_openssl(header))]
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
