#!/usr/bin/env python3
"""Follows docs/adding-a-kernel-op.md in a copy of the repository and runs the table of kernel ops on the op that it adds.

The headers, the umbrella lines and the table row are taken from the page; the other rows are left out, to save time.
"""
import argparse
import re
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))
import tools
from adding_an_op import add_line, block

PAGE = tools.ROOT / "docs" / "adding-a-kernel-op.md"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--eigen", default="/usr/include/eigen3")
    parser.add_argument("--scratch", required=True)
    options = parser.parse_args()
    page = PAGE.read_text()
    copy = Path(options.scratch)
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(tools.INCLUDE, copy / "include")
    for room in ("kernels", "cuda", "grad"):
        shutil.copytree(tools.ROOT / "tests" / room, copy / "tests" / room)
    for name in ("catch.hpp", "main.cpp"):
        shutil.copy(tools.ROOT / "tests" / name, copy / "tests")
    for room in ("ops", "cpu", "cuda"):
        header = block(page, rf"^// sinter/{room}/roll\.hpp")
        (copy / f"include/sinter/{room}/roll.hpp").write_text(header)
        umbrella = "cuda/kernels" if room == "cuda" else room
        add_line(copy / f"include/sinter/{umbrella}.hpp", block(page, rf'^#include "sinter/{room}/roll.hpp"\n$'))
    table = copy / "tests/kernels/rows.hpp"
    row = block(page, r'KERNEL_ROW\("roll"')
    text, n = re.subn(r"(  // clang-format off\n).*?(  // clang-format on\n)", lambda m: m[1] + row + m[2], table.read_text(), flags=re.S)
    if n != 1:
        sys.exit("tests/kernels/rows.hpp: no rows found")
    table.write_text(text)
    flags = ["-std=c++20", "-O1", "-pthread", f"-I{copy}/include", f"-I{copy}/tests", *tools.eigen_flags(options.eigen)]
    sources = [copy / "tests/main.cpp", copy / "tests/kernels/table_test.cpp", copy / "tests/cuda/kernel_table_test.cpp"]

    def compiled(source):
        result = source.with_suffix(".o")
        return result, *tools.run([options.compiler, *flags, "-c", source, "-o", result])

    objects = tools.parallel(compiled, sources)
    for _, code, output in objects:
        if code != 0:
            sys.exit(output)
    code, output = tools.run([options.compiler, "-pthread", *(o for o, _, _ in objects), "-o", copy / "program"])
    if code == 0:
        code, output = tools.run([copy / "program"])
    if code == 0 and "All tests passed" not in output:
        code = 1
    print(output)
    sys.exit(code)


if __name__ == "__main__":
    main()
