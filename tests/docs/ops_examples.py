#!/usr/bin/env python3
"""Compiles the examples in the docstrings of include/sinter/ops/, each in a scope of its own.

What an example does not declare stands in SURROUNDINGS.
"""
import argparse
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
  const auto model = [](const auto& v) { return variable<float, 2>(v); };
"""


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
    code, text = tools.run([options.compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wno-unused", "-Werror",
                            f"-I{tools.INCLUDE}", *tools.eigen_flags(options.eigen), source])
    print(text if code else f"{len(inside) + len(outside)} examples compile")
    sys.exit(code != 0)


if __name__ == "__main__":
    main()
