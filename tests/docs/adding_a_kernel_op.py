#!/usr/bin/env python3
"""Follows docs/adding-a-kernel-op.md in a copy of the repository and runs the table of kernel ops on the op that it adds.

The headers, the umbrella lines and the table row are taken from the page; the other rows are left out, to save time.
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))
import tools
from adding_an_op import add_line, block, copy_of_repository, options_of, replace_rows, run_tests

PAGE = tools.ROOT / "docs" / "adding-a-kernel-op.md"


def main():
    options = options_of(__doc__)
    page = PAGE.read_text()
    copy = copy_of_repository(options.scratch, ["kernels", "cuda", "grad"])
    for room in ("ops", "cpu", "cuda"):
        header = block(page, rf"^// sinter/{room}/turn\.hpp")
        (copy / f"include/sinter/{room}/turn.hpp").write_text(header)
        umbrella = "cuda/kernels" if room == "cuda" else room
        add_line(copy / f"include/sinter/{umbrella}.hpp", block(page, rf'^#include "sinter/{room}/turn.hpp"\n$'))
    replace_rows(copy / "tests/kernels/rows.hpp", block(page, r'KERNEL_ROW\("turn"'))
    run_tests(options, copy, [copy / "tests" / name for name in ("main.cpp", "kernels/table_test.cpp", "cuda/kernel_table_test.cpp")])


if __name__ == "__main__":
    main()
