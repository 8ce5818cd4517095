#!/usr/bin/env python3
"""Formats the C++ of the repository with clang-format 19; with --check, says which files are not formatted.

Cases of tests that consist of their comments (compile_fail, cuda/rejected) are left as they are. Exit code: 0 if all is well, 1 if a
file is not formatted, 77 if there is no clang-format 19.
"""
import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import tools

FOLDERS = ("include", "tests", "examples")
AS_THEY_ARE = ("tests/compile_fail/", "tests/cuda/rejected/")


def formatter():
    for name in ("clang-format-19", "clang-format"):
        if shutil.which(name) and re.search(r"version 19\.", subprocess.run([name, "--version"], capture_output=True, text=True).stdout):
            return name
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    name = formatter()
    if name is None:
        print("no clang-format 19; on Debian or Ubuntu: apt-get install clang-format-19")
        sys.exit(77)
    files = [f for folder in FOLDERS for suffix in ("hpp", "cpp", "cu") for f in sorted((tools.ROOT / folder).rglob(f"*.{suffix}"))
             if not str(f.relative_to(tools.ROOT)).startswith(AS_THEY_ARE)]

    def format_one(file):
        if not options.check:
            return subprocess.run([name, "-i", file], check=True).returncode
        formatted = subprocess.run([name, file], capture_output=True, text=True, check=True).stdout
        return formatted != file.read_text()

    wrong = [f for f, bad in zip(files, tools.parallel(format_one, files)) if bad]
    for file in wrong:
        print(f"{file.relative_to(tools.ROOT)} is not formatted; python3 tests/format.py formats it")
    print(f"format: {len(files)} files, {len(wrong)} not formatted")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
