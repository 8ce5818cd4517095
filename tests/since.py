#!/usr/bin/env python3
"""Prints the slow tests that need not run for what has changed since a revision, as a regular expression for ctest -E.

  since.py REVISION TABLE [--budget SECONDS]
  since.py --self-test

Each line of TABLE, which CMake writes, is a slow test: its name, its seconds on two cores, and its inputs: files and folders. A
test runs if one of its inputs changed, or if a changed file is reached from them by #include. With a budget, those
whose own inputs changed come first, all in the order of the table; a test that no longer fits is left out and named.
"""
import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import tools

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+\.(?:hpp|cuh|cpp))[">]', re.M)
SOURCES = {".hpp", ".cpp", ".cu"}
FOR_ALL = {"tests/tools.py", "tests/guard.py"}  # every check runs by these


def changed_since(revision):
    """Paths from the root of the repository: changed since the revision, removed, or new and not ignored."""
    paths = set()
    for command in (["git", "diff", "--name-only", "--no-renames", revision, "--"], ["git", "ls-files", "--others", "--exclude-standard"]):
        done = subprocess.run(command, cwd=tools.ROOT, stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"since.py: {' '.join(command)} failed")
        paths |= set(done.stdout.splitlines())
    return paths


def includes_of(file):
    """The files of this repository that a file includes, as they may be found: beside it, in tests/ or in include/."""
    for name in INCLUDE.findall(file.read_text(encoding="utf-8", errors="replace")):
        for folder in (file.parent, tools.ROOT / "tests", tools.INCLUDE):
            found = Path(os.path.normpath(folder / name))
            if found.is_file():
                yield found
                break


def reached_from(inputs):
    """All files that the inputs reach by #include, as paths from the root."""
    waiting = []
    for name in inputs:
        path = tools.ROOT / name
        waiting += [file for file in ([path] if path.is_file() else path.rglob("*")) if file.suffix in SOURCES]
    seen = set(waiting)
    while waiting:
        for file in includes_of(waiting.pop()):
            if file not in seen:
                seen.add(file)
                waiting.append(file)
    return {file.relative_to(tools.ROOT).as_posix() for file in seen}


def is_own(path, inputs):
    return any(path == name or path.startswith(name + "/") for name in inputs)


def chosen(table, changed, budget):
    """(those that run, those that no longer fit) of [(name, seconds, inputs)]."""
    own, reached = [], []
    for name, seconds, inputs in table:
        if any(is_own(path, inputs) for path in changed):
            own.append((name, seconds))
        elif changed & FOR_ALL or changed & reached_from(inputs):
            reached.append((name, seconds))
    run, left = [], []
    for name, seconds in own + reached:
        if budget is None or seconds <= budget:
            run.append(name)
            budget = None if budget is None else budget - seconds
        else:
            left.append(name)
    return run, left


def self_test():
    table = [("a", 10, ["tests/odr"]), ("b", 20, ["tests/flags", "CMakeLists.txt"]), ("c", 5, ["docs/gpu.md"])]
    cases = [({"README.md"}, None, ([], [])), ({"tests/odr/odr.py"}, None, (["a"], [])),
             ({"CMakeLists.txt"}, None, (["b"], [])), ({"tests/CMakeLists.txt"}, None, ([], [])),
             ({"include/sinter/config.hpp"}, None, (["b"], [])),  # flags/program.cpp includes the library
             ({"tests/tools.py"}, None, (["a", "b", "c"], [])), ({"tests/tools.py"}, 15, (["a", "c"], ["b"])),
             ({"include/sinter/config.hpp", "docs/gpu.md"}, 22, (["c"], ["b"])), ({"tests/odr/odr.py", "tests/tools.py"}, 10, (["a"], ["b", "c"]))]
    failures = [(f"{changed} within {budget}", f"{got}, not {expected}") for changed, budget, expected in cases
                if (got := chosen(table, changed, budget)) != expected]
    tools.report("choice of slow tests", failures, len(cases))


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision")
    parser.add_argument("table", type=Path)
    parser.add_argument("--budget", type=int, help="seconds that slow tests may take on two cores")
    options = parser.parse_args()
    lines = [line.split() for line in options.table.read_text(encoding="utf-8").splitlines()]
    table = [(name, int(seconds), inputs) for name, seconds, *inputs in lines]
    run, left = chosen(table, changed_since(options.revision), options.budget)
    print(f"slow tests whose inputs changed since {options.revision}: {' '.join(run) or 'none'}", file=sys.stderr)
    if left:
        print(f"slow tests whose inputs changed and that are NOT run, to stay within {options.budget} s: {' '.join(left)}", file=sys.stderr)
    omitted = [re.sub(r"([+.])", r"[\1]", name) for name, _, _ in table if name not in run]
    print(f"^(build_)?({'|'.join(omitted)})$" if omitted else "")  # with what compiles a room for it


if __name__ == "__main__":
    main()
