#!/usr/bin/env python3
"""tests/compiled/stock.py: with sinter::compiled a file makes the functions of its own formulas only, and few of them; and a header
that includes fwd.hpp can name the library's types.

Compiles programs with SINTER_COMPILED=1 and names each statement that a file runs by functions of its own, though it is not in the list of what
is the program's own. Then the size of what it makes is compared with a limit; unlike seconds, it is the same on every machine. So is the memory
that g++ takes to read the library, as a ratio to Eigen/Core: nearly all of it is names that were declared and templates that were made.
"""
import argparse
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools import INCLUDE, ROOT, compiler_kind, eigen_flags, parallel, run  # noqa: E402

# A program: the most functions and KiB of code that it makes with -O0, and statements of its own. A part of each name is enough.
PROGRAMS = {
    "tests/bench/compile/convnet.cpp": (1000, 86, []),
    "examples/01_digits.cpp": (1580, 133, ["cast_op<unsigned char, float>, sinter::map_expr<sinter::ops::subtract_op"]),
    "tests/compiled/layers.cpp": (3800, 350, []),
    "examples/04_cifar.cpp": (4100, 380, [
        "cast_op<unsigned char, float>",  # pictures that are made up
        "cast_op<float, long>", "bernoulli", "reduce_op<sinter::ops::sum_op, 1, 0>",
        "map_expr<sinter::ops::divide_op, sinter::map_expr<sinter::ops::subtract_op",  # pictures less their mean, over their deviation
    ]),
}
RUNS = re.compile(r"\b(?:compute_slot|run_statement|write_statement|draw)<")


def functions_of(symbols):
    """Names of the functions that an object file holds, and the bytes of their code."""
    found = {}
    for line in symbols.splitlines():
        parts = line.split(maxsplit=3)
        if len(parts) == 4 and parts[2] in "tTwWuV":
            found[parts[3]] = int(parts[1], 16)
    return found


def check(options, program):
    """What is wrong with what a program makes; empty if nothing is."""
    target = options.scratch / (Path(program).stem + ".o")
    code, text = run([options.compiler, "-std=c++20", "-O0", "-DSINTER_COMPILED=1", "-I", INCLUDE, "-I", ROOT / "examples",
                      *eigen_flags(options.eigen), "-c", ROOT / program, "-o", target])
    if code != 0:
        return f"{program} does not compile:\n{text}"
    names = functions_of(run(["nm", "-C", "-S", "--defined-only", target])[1])
    most_functions, most_kib, own = PROGRAMS[program]
    problems, met = [], set()
    for name in names:
        if not RUNS.search(name):
            continue
        parts = [part for part in own if part in name]
        met.update(parts)
        if not parts:
            problems.append(f"{program} makes a function that sinter::compiled should hold; see include/sinter/cpu/stock.hpp:\n  {name}")
    problems += [f"{program} has no statement '{part}' of its own; take it off the list" for part in own if part not in met]
    kib = sum(names.values()) / 1024
    print(f"{program}: {len(names)} functions, at most {most_functions}; {kib:.0f} KiB, at most {most_kib}", flush=True)
    if len(names) > most_functions or kib > most_kib:
        problems.append(f"{program} makes {len(names)} functions of {kib:.0f} KiB, more than the {most_functions} of {most_kib} KiB that it may; "
                        "what is the same in every program belongs into sinter::compiled")
    return "\n".join(problems)


FORWARD = """#include <sinter/fwd.hpp>
sinter::tensor<float, 2> scores(const sinter::tensor<float, 2>& x, sinter::variable<float, 1, sinter::cuda<0>>* bias);
int draw(sinter::generator& gen);
#include <sinter/sinter.hpp>
sinter::tensor<float, 2> scores(const sinter::tensor<float, 2>& x, sinter::variable<float, 1, sinter::cuda<0>>*) { return x; }
int draw(sinter::generator& gen) { return int(sinter::randint(gen, 0, 9, {1})(0)); }
"""


def check_forward(options):
    source = options.scratch / "forward.cpp"
    source.write_text(FORWARD, encoding="utf-8")
    code, text = run([options.compiler, "-std=c++20", "-fsyntax-only", "-I", INCLUDE, *eigen_flags(options.eigen), source])
    return "" if code == 0 else f"names of sinter/fwd.hpp do not fit those of sinter/sinter.hpp:\n{text}"


KERNELS = """#include <sinter/sinter.hpp>
using namespace sinter;
void run(const variable<float, 2>& a, const variable<float, 1>& b, const tensor<float, 2>& seed) {
  variable y = sigmoid(a * b) * tanh(exp(a) - 1) + gelu(b) / sqrt(a);
  y.backward(seed);
  variable z = where(a > b, pow(a, b), log1p(abs(a))) + softplus(a) * atan2(a, b);
  z.backward(seed);
}
"""
STEPS = re.compile(r"sinter::math::|detail::kernel::.*::(?:eval|forward|reverse)<|sinter::ops::\w+::(?:apply|grad)<")


def check_kernels(options):
    """What a pass calls for each vector, though it should hold it; -O2, as it is about speed."""
    source, target = options.scratch / "kernels.cpp", options.scratch / "kernels.o"
    source.write_text(KERNELS, encoding="utf-8")
    code, text = run([options.compiler, "-std=c++20", "-O2", "-DSINTER_COMPILED=1", "-I", INCLUDE, *eigen_flags(options.eigen),
                      "-c", source, "-o", target])
    if code != 0:
        return f"formulas do not compile:\n{text}"
    names = functions_of(run(["nm", "-C", "-S", "--defined-only", target])[1])
    if not any("run_pass<" in name for name in names):
        return "the file with formulas has no pass; adapt check_kernels()"
    calls = [name for name in names if STEPS.search(name) and "run_pass<" not in name and "_formula<" not in name]
    return "\n".join(f"a function that a pass should hold is one of its own; see SINTER_KERNEL:\n  {name}" for name in calls)


# Flags: how many times the memory of Eigen/Core the umbrella header may take.
READING = {(): 2.45, ("-DSINTER_COMPILED=1",): 1.9}


def memory_of(options, text, flags, name):
    """MB that g++ takes in all to read a text."""
    source = options.scratch / name
    source.write_text(text, encoding="utf-8")
    code, report = run([options.compiler, "-std=c++20", "-fsyntax-only", "-ftime-report", *flags, "-I", INCLUDE, *eigen_flags(options.eigen), source])
    total = re.search(r"^ TOTAL .*?(\d+)M$", report, re.M)
    if code != 0 or not total:
        sys.exit(f"{options.compiler} does not say what {name} takes:\n{report}")
    return int(total[1])


def check_reading(options):
    """What is wrong with what reading the umbrella header takes. It grew before by assertions that only tests need, by templates of std in
    functions that few files call, and by classes with many members that every file makes."""
    if compiler_kind(options.compiler) != "gcc":
        return ""
    eigen = memory_of(options, "#include <Eigen/Core>\n", (), "eigen.cpp")
    problems = []
    for flags, most in READING.items():
        ratio = memory_of(options, "#include <sinter/sinter.hpp>\n", flags, "umbrella.cpp") / eigen
        print(f"sinter/sinter.hpp {' '.join(flags)}: {ratio:.2f} times the memory of Eigen/Core, at most {most}", flush=True)
        if ratio > most:
            problems.append(f"reading sinter/sinter.hpp {' '.join(flags)} takes {ratio:.2f} times the memory of Eigen/Core, more than {most}")
    return "\n".join(problems)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--eigen", default="/usr/include/eigen3")
    parser.add_argument("--scratch", type=Path, required=True)
    options = parser.parse_args()
    options.scratch.mkdir(parents=True, exist_ok=True)
    problems = [text for text in [check_forward(options), check_kernels(options), check_reading(options)] if text]
    problems += [text for text in parallel(lambda program: check(options, program), PROGRAMS) if text]
    print("\n".join(problems) or "no statement is made twice")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
