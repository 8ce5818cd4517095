#!/usr/bin/env python3
"""Stores a small selection of cases in tests/judge/data: of every op some that pass, the smallest ones.

    judge_tests --data DIR --passed | python3 tests/judge/select.py DIR

DIR holds the sets, as for judge_tests. A case is taken if it is not too large.
"""
import argparse
import collections
import pathlib
import sys

# So many cases of an op, of so many bytes at most.
SETS = {"torch_ops": (3, 2200), "torch_modules": (2, 8000), "onnx_node": (2, 2500)}
HERE = pathlib.Path(__file__).resolve().parent


def read(folder):
    """The cases as lists of lines, each split at its tabs."""
    cases = []
    for line in (folder / "cases.idx").read_text(encoding="utf-8").splitlines():
        fields = line.split("\t")
        if fields[0] == "C":
            cases.append([])
        cases[-1].append(fields)
    return cases


def size(case):
    return sum(len("\t".join(f)) + 1 + (int(f[6]) if f[0] == "T" else 0) for f in case)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    options = parser.parse_args()
    passed = {tuple(line.rstrip("\n").split("\t")) for line in sys.stdin}
    for name, (most, largest) in SETS.items():
        by_op = collections.defaultdict(list)
        for case in read(options.data / name):
            if (name, case[0][1]) in passed and size(case) <= largest:
                by_op[case[0][3]].append(case)
        lines, data = [], bytearray()
        with open(options.data / name / "cases.dat", "rb") as source:
            for op in sorted(by_op):
                # Cases without elements show little; they come last.
                for case in sorted(by_op[op], key=lambda c: (not any(f[0] == "T" and f[6] != "0" for f in c), size(c)))[:most]:
                    for fields in case:
                        if fields[0] == "T":
                            source.seek(int(fields[5]))
                            fields = [*fields[:5], str(len(data)), fields[6]]
                            data += source.read(int(fields[6]))
                        lines.append("\t".join(fields))
        target = HERE / "data" / name
        target.mkdir(parents=True, exist_ok=True)
        (target / "cases.idx").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (target / "cases.dat").write_bytes(data)
        count = sum(line.startswith("C\t") for line in lines)
        print(f"{name}: {count} cases of {len(by_op)} ops, {(target / 'cases.idx').stat().st_size + len(data)} bytes")


if __name__ == "__main__":
    main()
