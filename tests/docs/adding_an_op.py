#!/usr/bin/env python3
"""Follows docs/adding-an-op.md in a copy of the repository and runs the op table on the op that it adds.

The header, the umbrella line and the table row are taken from the page; the other rows are left out, to save time.
"""
import argparse
import re
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tools

PAGE = tools.ROOT / "docs" / "adding-an-op.md"
AS_FUNCTION = """
#include "../catch.hpp"
#include "sinter/sinter.hpp"
namespace user {{
{function}
}}
TEST_CASE("the function and the op agree") {{
  sinter::variable<double, 1> x(sinter::tensor<double, 1>{{-3, -0.5, 0, 0.5, 3}}), z(x.value());
  sinter::variable a = user::serf(x);
  sinter::variable b = sinter::serf(z);
  a.backward(sinter::ones<double>({{5}}));
  b.backward(sinter::ones<double>({{5}}));
  for (int i = 0; i < 5; ++i) {{
    CHECK(a(i) == Approx(b(i)).margin(1e-15));
    CHECK(x.grad()(i) == Approx(z.grad()(i)));
  }}
}}
"""


def block(page, pattern):
    """The one code block of the page that matches."""
    found = [b for b in re.findall(r"```cpp\n(.*?)```", page, re.S) if re.search(pattern, b)]
    if len(found) != 1:
        sys.exit(f"{len(found)} code blocks of the page match {pattern!r}, not 1")
    return found[0]


def add_line(file, line):
    """Adds a line to an umbrella, in alphabetical order."""
    lines = file.read_text().splitlines(keepends=True)
    includes = [i for i, other in enumerate(lines) if other.startswith("#include")]
    place = next((i for i in includes if lines[i] > line), includes[-1] + 1)
    file.write_text("".join(lines[:place] + [line] + lines[place:]))


def run_tests(options, copy, sources, *arguments):
    """Compiles the sources in a copy of the repository, runs the program that they make, and ends with its exit code."""
    flags = ["-std=c++20", "-O1", "-pthread", f"-I{copy}/include", f"-I{copy}/tests", *tools.eigen_flags(options.eigen)]

    def compiled(source):
        result = source.with_suffix(".o")
        return result, *tools.run([options.compiler, *flags, "-c", source, "-o", result])

    objects = tools.parallel(compiled, sources)
    for _, code, output in objects:
        if code != 0:
            sys.exit(output)
    code, output = tools.run([options.compiler, "-pthread", *(o for o, _, _ in objects), "-o", copy / "program"])
    if code == 0:
        code, output = tools.run([copy / "program", *arguments])
    if code == 0 and "All tests passed" not in output:
        code = 1
    print(output)
    sys.exit(code)


def copy_of_repository(scratch, rooms):
    """A copy of the headers and of some rooms of the tests."""
    copy = Path(scratch)
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(tools.INCLUDE, copy / "include")
    for room in rooms:
        shutil.copytree(tools.ROOT / "tests" / room, copy / "tests" / room)
    for name in ("catch.hpp", "main.cpp"):
        shutil.copy(tools.ROOT / "tests" / name, copy / "tests")
    return copy


def replace_rows(table, row):
    """Leaves the one row in a table."""
    text, n = re.subn(r"(  // clang-format off\n).*?(  // clang-format on\n)", lambda m: m[1] + row + m[2], table.read_text(), flags=re.S)
    if n != 1:
        sys.exit(f"{table.name}: no rows found")
    table.write_text(text)
    return text


def options_of(doc):
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--eigen", default="/usr/include/eigen3")
    parser.add_argument("--scratch", required=True)
    return parser.parse_args()


def main():
    options = options_of(__doc__)
    page = PAGE.read_text()
    header, umbrella = block(page, r"^// sinter/ops/serf\.hpp"), block(page, r'^#include "sinter/ops/serf.hpp"\n$')
    row, function = block(page, r'ROW1\("serf"'), block(page, r"^auto serf")

    copy = copy_of_repository(options.scratch, ["ops"])
    (copy / "include/sinter/ops/serf.hpp").write_text(header)
    add_line(copy / "include/sinter/ops.hpp", umbrella)
    text = replace_rows(copy / "tests/ops/table.hpp", row)
    parts = "".join(f"void op_table::append_part_{k}(std::vector<row>&{' rows' if k == 0 else ''}) {{ "
                    f"{'append_rows<0>(rows); ' if k == 0 else ''}}}\n"
                    for k in range(int(re.search(r"parts = (\d+)", text)[1])))
    (copy / "tests/ops/parts.cpp").write_text('#include "table.hpp"\n' + parts)
    (copy / "tests/ops/function.cpp").write_text(AS_FUNCTION.format(function=function))
    sources = [copy / "tests/main.cpp", *(copy / "tests/ops" / f"{name}.cpp" for name in ("parts", "function", "table_test"))]
    run_tests(options, copy, sources, "~the op table has each name once*")


if __name__ == "__main__":
    main()
