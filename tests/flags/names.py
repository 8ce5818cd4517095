#!/usr/bin/env python3
"""With both namespaces visible, the names that the compiler calls ambiguous are those that docs/library.md lists."""
import argparse
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tools

SOURCE = ("#include <bits/stdc++.h>\n#define SINTER_WITH_DATA 1\n#include <sinter/sinter.hpp>\n"
          "namespace both { using namespace std; using namespace sinter; }\n")


def refused(compiler, eigen, namespace, names):
    """Those of the names that a using-declaration does not find, or finds twice."""
    source = SOURCE + "".join(f"namespace n{i} {{ using {namespace}::{name}; }}\n" for i, name in enumerate(names))
    limit = ["-ferror-limit=0"] if tools.compiler_kind(compiler) == "clang" else []
    _, text = tools.run([compiler, "-std=c++20", *limit, f"-I{tools.INCLUDE}", *tools.eigen_flags(eigen), "-fsyntax-only", "-x", "c++", "-"],
                        input=source.encode())
    lines = {int(line) for line in re.findall(r"^<stdin>:(\d+):\d+: error: ", text, re.M)}
    return {name for line, name in enumerate(names, SOURCE.count("\n") + 1) if line in lines}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--eigen", default="/usr/include/eigen3", help="Eigen's include folders, joined by colons")
    options = parser.parse_args()
    words = set()
    for header in tools.headers():
        words |= set(re.findall(r"\b[a-z]\w{2,}\b", re.sub(r"//.*", "", header.read_text(encoding="utf-8"))))
    words = sorted(words)
    none = refused(options.compiler, options.eigen, "sinter", words)
    ours = [word for word in words if word not in none]
    ambiguous = refused(options.compiler, options.eigen, "both", ours)
    listed = re.search(r"are ambiguous beside `using namespace std`: (.*?)\.", (tools.ROOT / "docs/library.md").read_text(encoding="utf-8"), re.S)
    told = set(re.findall(r"`(\w+)`", listed[1])) if listed else set()
    failures = [(name, "is ambiguous, but docs/library.md does not say so") for name in sorted(ambiguous - told)]
    failures += [(name, "is not ambiguous, but docs/library.md says so") for name in sorted(told - ambiguous)]
    tools.report("names beside namespace std", failures, len(ours))


if __name__ == "__main__":
    main()
