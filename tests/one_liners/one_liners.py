#!/usr/bin/env python3
"""Lines that a PyTorch user types first: each compiles with PyTorch's value, or the first line of the error names what to write instead.

lines.txt has the lines, values.txt PyTorch's values, which make.py writes. --explore compiles each line alone and says what comes.
"""
import argparse
import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tools

import lines

HERE = Path(__file__).resolve().parent
MOST_LINES = 12  # of an error
PARTS = 4  # programs, so that two compilers work at a time
INCLUDED_FROM = re.compile(r"^In file included from |^ +from [^ ]+:\d+[:,]$")
NAMES = "[[maybe_unused]] auto& [gen, x, y, v, u, c, im, p, q, m, i, n] = o;"


def function(line):
    return f"void line_{line.number}() {{\n  operands o;\n  {NAMES}\n#line {line.number} \"lines.txt\"\n  give([&] {{ {line.body()} }}());\n}}\n"


def program(some):
    calls = "".join(f'  std::printf("{line.number}");\n  line_{line.number}();\n  std::printf("\\n");\n' for line in some)
    return '#include "prelude.hpp"\n' + "".join(map(function, some)) + f"int main() {{\n{calls}}}\n"


class Compiler:
    def __init__(self, compiler, eigen, scratch):
        self.kind = tools.compiler_kind(compiler)
        self.scratch = scratch
        scratch.mkdir(parents=True, exist_ok=True)
        self.command = [compiler, "-std=c++20", "-O0", "-w", "-fmessage-length=0", f"-I{scratch}", f"-I{HERE}", f"-I{tools.INCLUDE}",
                        *tools.eigen_flags(eigen)]
        if self.kind == "gcc":
            code, text = tools.run([*self.command, "-x", "c++-header", HERE / "prelude.hpp", "-o", scratch / "prelude.hpp.gch"])
            if code != 0:
                sys.exit(text)

    def check(self, line):
        """Exit code and message of one line."""
        file = self.scratch / f"line_{line.number}.cpp"
        file.write_text(program([line]))
        return tools.run([*self.command, "-fsyntax-only", file])

    def rejects(self, part, some):
        """The numbers of those that do not compile."""
        file, wrong = self.scratch / f"part_{part}.cpp", set()
        while True:  # g++ gives up after some kinds of errors
            file.write_text(program([line for line in some if line.number not in wrong]))
            code, text = tools.run([*self.command, "-fsyntax-only", file])
            found = set(map(int, re.findall(r"lines\.txt:(\d+):\d+: (?:error|  required from)", text))) - wrong
            if code == 0 or not found:
                return wrong
            wrong |= found

    def values(self, part, some):
        """What a program of these lines prints, by number."""
        file, binary = self.scratch / f"part_{part}.cpp", self.scratch / f"part_{part}"
        file.write_text(program(some))
        code, text = tools.run([*self.command, file, "-o", binary, "-pthread"])
        if code != 0:
            sys.exit("\n".join(text.splitlines()[:20]))
        code, text = tools.run([binary])
        if code != 0:
            sys.exit(f"{binary} ended with {code}:\n{text[-500:]}")
        return {int(row.split("\t")[0]): [float(x) for x in row.split("\t")[1:]] for row in text.splitlines()}


def is_near(a, b):
    return a == b or (a != a and b != b) or abs(a - b) <= 1e-6 + 1e-5 * abs(b)


def head_of(text, kind):
    said = [row for row in text.splitlines() if re.search(r"\berror\b" if kind == "gcc" else r": (error|note): ", row)]
    return " ".join(said[:1 if kind == "gcc" else 3])


def misfits(line, code, text, kind):
    if code == 0:
        yield "compiles"
        return
    if not re.search(line.error.replace("anything", ""), head_of(text, kind)):
        yield f"the message does not name {line.error}: {head_of(text, kind)[:300]}"
    count = sum(not INCLUDED_FROM.search(row) for row in text.splitlines() if row.strip())
    if kind == "gcc" and count > MOST_LINES:
        yield f"{count} lines of message"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--eigen", default="/usr/include/eigen3")
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--explore", action="store_true", help="compile each line alone")
    parser.add_argument("--only", default="", help="lines that match this")
    options = parser.parse_args()
    compiler = Compiler(options.compiler, options.eigen, options.scratch)
    all_lines = [line for line in lines.read() if re.search(options.only, line.code)]
    expected = {}
    for row in (HERE / "values.txt").read_text(encoding="utf-8").splitlines():
        code, *values = row.split("\t")
        expected[code] = [float(x) for x in values]
    right = [line for line in all_lines if not line.error]
    problems = []

    if options.explore:
        wrong = set().union(*tools.parallel(lambda part: compiler.rejects(part, right[part::PARTS]), range(PARTS)))
        suspects = [line for line in right if line.number in wrong]
        for line, (code, text) in zip(suspects, tools.parallel(compiler.check, suspects)):
            count = sum(not INCLUDED_FROM.search(row) for row in text.splitlines() if row.strip())
            problems.append(f"{line.code}: {count} lines: {head_of(text, compiler.kind)[:260]}")
        right = [line for line in right if line.number not in wrong]
    parts = [right[part::PARTS] for part in range(PARTS)]
    values = {}
    for some in tools.parallel(lambda part: compiler.values(part, parts[part]), range(PARTS)):
        values.update(some)
    for line in right:
        want, got = expected.get(line.code), values.get(line.number)
        if want is None:
            problems.append(f"{line.code}: values.txt does not have it; run make.py")
        elif len(got) != len(want) or not all(map(is_near, got, want)):
            problems.append(f"{line.code}: gives {got}, PyTorch {want}")
    rejected = [line for line in all_lines if line.error]
    for line, (code, text) in zip(rejected, tools.parallel(compiler.check, rejected)):
        problems += [f"{line.code}: {problem}" for problem in misfits(line, code, text, compiler.kind)]
    for problem in problems:
        print(problem)
    print(f"one_liners: {len(all_lines)} lines, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
