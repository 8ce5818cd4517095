#!/usr/bin/env python3
"""Compiles the examples in the docstrings of include/sinter/ops/, each in a scope of its own, as a program with sinter::compiled does, and
bounds the code that a file makes for each op: what a new op adds to the compile time of files that use it.

What an example does not declare stands in SURROUNDINGS. Code is counted for g++ alone; of a function whose name tells several ops, for each.
"""
import argparse
import collections
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import ops_reference
import tools

SURROUNDINGS = """
  const tensor<float, 2> x, y, a, b, w, p, target, logits, margin, energies, extents, train, test, images, image_a, image_b, image_c;
  const tensor<float, 1> bias, gain, direction;
  const tensor<std::int32_t, 2> k;
  const tensor<std::uint8_t, 2> pixels;
  const tensor<std::int64_t, 1> labels, permutation;
  const variable<float, 4> scores;
  const tensor<float, 2> g, points, centres, samples, border, left, right, first, second, red, green, blue;
  const tensor<float, 1> replacements, losses, limits, years, boundaries, row, ages, heights, signal;
  const tensor<std::int64_t, 1> rows, columns, wanted;
  const tensor<std::int64_t, 2> votes, indices;
  const tensor<bool, 2> mask;
  const tensor<bool, 1> valid;
  const tensor<float, 3> image;
  const variable<float, 1> slope;
  const index_t n = 8;
  const tensor<float, 4> pictures, filters, kernels;
  const tensor<float, 1> running_mean, running_var;
  const variable<float, 1> shift;
  const tensor<float, 3> signals, taps, spread;
  const tensor<float, 5> volumes, blocks, spread_blocks;
  const tensor<std::int64_t, 3> classes;
  const tensor<float, 4> queries, keys;
  const variable<float, 4> values;
  const tensor<bool, 2> is_word;
  const float* const slopes = nullptr;
  const tensor<float, 3> tokens;
  const tensor<float, 2> w_ih, w_hh, h0, c0, h;
  const tensor<float, 1> b_hh;
  const tensor<std::int64_t, 1> targets;
  const tensor<float, 1> rare;
  const tensor<std::int32_t, 2> ids;
  const tensor<std::int32_t, 1> words, offsets;
  const tensor<float, 2> table;
  const variable<float, 2> weight;
  const variable<float, 1> importance;
  const variable<float, 2> student;
  const tensor<float, 2> teacher;
  const tensor<float, 2> found, more, true_boxes, regions;
  const tensor<float, 1> confidence;
  const tensor<std::int64_t, 1> kinds;
  const auto model = [](const auto& v) { return variable<float, 2>(v); };
"""


# KiB of code that an op may make in a file. Who has a reason raises it, or names the op here.
MOST = 20
FORMULAS = "formulas of several ops"  # as cdist and many losses are: all of them together
LARGER = {  # kernels that are compiled for the user's formula, or with a generator; norms of differences, of any order, in four functions
    "no_dropout": 180, "plain_score": 95, "function_score": 80, "attention_op": 65, "attention_mask": 65, FORMULAS: 180, "subtract_op": 130,
}


def code_of_ops(object_file):
    """KiB by the name in sinter::ops, of functions whose names tell it."""
    sizes = collections.Counter()
    symbols = subprocess.run(["nm", "-S", "-C", "--defined-only", object_file], capture_output=True, text=True, check=True).stdout
    for line in symbols.splitlines():
        if match := re.match(r"[0-9a-f]+ ([0-9a-f]+) [tTwW] (.*)", line):
            ops = set(re.findall(r"ops::(\w+)", match[2]))
            for op in ops if len(ops) <= 2 else ops & LARGER.keys() or [FORMULAS]:
                sizes[op] += int(match[1], 16) / 1024
    return sizes


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--eigen", default="/usr/include/eigen3")
    parser.add_argument("--scratch", required=True)
    options = parser.parse_args()
    outside, inside = [], []
    for path in sorted(ops_reference.OPS.glob("*.hpp")):
        for _, doc in ops_reference.entries_of(path)[0]:
            example = "\n".join(line for line in doc if line.startswith("    "))
            if not example:
                continue
            text = f'#line 1 "example in {path.name}"\n{example}\n'
            if example.lstrip().startswith("template"):
                outside.append(text)
            else:
                inside.append("  {\n" + text + "  }\n")
    if len(inside) < 90:
        sys.exit(f"only {len(inside)} examples found")
    scratch = Path(options.scratch)
    scratch.mkdir(parents=True, exist_ok=True)
    source = scratch / "examples.cpp"
    source.write_text('#define SINTER_WITH_SEQUENCES 1\n#include "sinter/sinter.hpp"\nusing namespace sinter;\nnamespace examples {\n' + "".join(outside) +
                      "void all() {" + SURROUNDINGS + "".join(inside) + "}\n}  // namespace examples\n")
    made = source.with_suffix(".o")
    code, text = tools.run([options.compiler, "-std=c++20", "-O1", "-c", "-DSINTER_COMPILED=1", "-Wall", "-Wextra", "-Wno-unused", "-Werror",
                            f"-I{tools.INCLUDE}", *tools.eigen_flags(options.eigen), source, "-o", made])
    if code:
        sys.exit(text)
    print(f"{len(inside) + len(outside)} examples compile")
    if tools.compiler_kind(options.compiler) != "gcc":
        return
    sizes = code_of_ops(made)
    too_large = {op: size for op, size in sizes.items() if size > LARGER.get(op, MOST)}
    for op, size in too_large.items():
        print(f"a file that uses {op} makes {size:.1f} KiB of code, at most {LARGER.get(op, MOST)} are allowed: see {Path(__file__).name}")
    for op in LARGER:
        if sizes[op] <= MOST:
            sys.exit(f"{op} makes {sizes[op]:.1f} KiB of code: it need not be named in {Path(__file__).name}")
    print(f"the largest: {', '.join(f'{op} {size:.1f} KiB' for op, size in sizes.most_common(8))}")
    sys.exit(bool(too_large))


if __name__ == "__main__":
    main()
