#!/usr/bin/env python3
"""Writes single_include/sinter/sinter.hpp: include/sinter/sinter.hpp with every header of the library put in its place.

A header that is first included inside #if ... is put there, and put again (each copy guarded) where it is included
outside of it: the result means what the separate headers mean, whichever branch the preprocessor takes. What stands
inside #if SINTER_WITH_A serves inside #if SINTER_WITH_A && SINTER_WITH_B, too. The same headers give the same bytes.
"""
import argparse
import difflib
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
MACRO_INCLUDE = re.compile(r'^\s*#\s*include\s+[A-Za-z_]')
DIRECTIVE = re.compile(r'^\s*#\s*(if|ifdef|ifndef|elif|elifdef|elifndef|else|endif)\b')
FEATURES = re.compile(r'^\s*#\s*if\s+(SINTER_WITH_\w+(?:\s*&&\s*SINTER_WITH_\w+)*)\s*$')
PRAGMA_ONCE = re.compile(r'^\s*#\s*pragma\s+once\b')


class Problem(Exception):
    pass


def own_header(quoted, angled, file, include_dir):
    """The file that an include names if it is one of ours, else None."""
    if quoted is not None:
        for candidate in (file.parent / quoted, include_dir / quoted):
            if candidate.is_file():
                return candidate.resolve()
        if quoted.startswith("sinter/") or quoted.startswith("."):
            raise Problem(f"{file}: includes \"{quoted}\", which does not exist")
        return None
    candidate = include_dir / angled
    if candidate.is_file():
        return candidate.resolve()
    if angled.startswith("sinter/"):
        raise Problem(f"{file}: includes <{angled}>, which does not exist")
    return None


class Amalgamation:
    """One traversal. `context` is the list of preprocessor branches that surround the current line, each as the set of
    what is true in it: numbers of branches, and names of features."""

    def __init__(self, include_dir, repeated):
        self.include_dir = include_dir
        self.repeated = repeated  # headers that a former traversal put in more than one place
        self.placed = {}          # header -> contexts where it stands
        self.system = {}          # system header -> contexts where it is included
        self.lines = []
        self.branch = 0
        self.open = []

    @staticmethod
    def covered(places, context):
        known = frozenset().union(*context)
        return any(known.issuperset(set().union(*place)) for place in places)

    def add(self, file, context):
        if file in self.open or self.covered(self.placed.get(file, ()), context):
            return
        self.placed.setdefault(file, []).append(context)
        guard = None
        if file in self.repeated:
            relative = file.relative_to(self.include_dir).as_posix()
            guard = "SINTER_SINGLE_" + re.sub(r"\W", "_", relative).upper()
            self.lines += [f"#ifndef {guard}", f"#define {guard}"]
        self.open.append(file)
        self.body(file, context)
        self.open.pop()
        if guard:
            self.lines.append(f"#endif  // {guard}")

    def body(self, file, outer):
        text = file.read_text(encoding="utf-8")
        if 'R"' in text and re.search(r'R"[^(\s]{0,16}\([^)]*^\s*#\s*include', text, re.M):
            raise Problem(f"{file}: #include inside a raw string is not supported")
        context, in_comment = outer, False
        for number, line in enumerate(text.splitlines(), 1):
            code, in_comment = self.without_comment(line, in_comment)
            include = INCLUDE.match(code)
            if PRAGMA_ONCE.match(code):
                continue
            if include:
                target = own_header(include[1], include[2], file, self.include_dir)
                if target is not None:
                    self.add(target, context)
                    continue
                name = include[2] or include[1]
                if self.covered(self.system.get(name, ()), context):
                    continue
                self.system.setdefault(name, []).append(context)
            elif MACRO_INCLUDE.match(code):
                raise Problem(f"{file}:{number}: #include of a macro cannot be followed")
            else:
                directive = DIRECTIVE.match(code)
                if directive:
                    kind = directive[1]
                    if not kind.startswith("if") and len(context) == len(outer):
                        raise Problem(f"{file}:{number}: #{kind} without #if")
                    if not kind.startswith("if"):
                        context = context[:-1]
                    if kind != "endif":
                        self.branch += 1
                        features = FEATURES.match(code)
                        context = (*context, frozenset(re.findall(r"\w+", features[1]) if features else [self.branch]))
            self.lines.append(line.rstrip())
        if len(context) != len(outer):
            raise Problem(f"{file}: #if without #endif")

    @staticmethod
    def without_comment(line, in_comment):
        """The line with /* */ comments blanked, and whether one is still open at its end."""
        code = ""
        while line:
            if in_comment:
                end = line.find("*/")
                if end < 0:
                    return code, True
                line, in_comment = line[end + 2:], False
            else:
                start, slashes = line.find("/*"), line.find("//")
                if start < 0 or 0 <= slashes < start:
                    return code + line, False
                code, line, in_comment = code + line[:start] + " ", line[start + 2:], True
        return code, in_comment


def banner(root):
    version = dict(re.findall(r"#define SINTER_VERSION_(MAJOR|MINOR|PATCH) (\d+)",
                              (root / "include/sinter/config.hpp").read_text(encoding="utf-8")))
    licence = (root / "LICENSE").read_text(encoding="utf-8").splitlines()
    return [
        f"// sinter/sinter.hpp: Sinter {version['MAJOR']}.{version['MINOR']}.{version['PATCH']}, the whole library in one file.",
        "// Generated by single_include/amalgamate.py from include/sinter. Do not edit.",
        "//",
        "// SPDX-License-Identifier: MIT",
        "//",
        *[("// " + line).rstrip() for line in licence],
        "#pragma once",
        "",
    ]


def squeeze(lines):
    """No more than one empty line in a row."""
    result = []
    for line in lines:
        if line or (result and result[-1]):
            result.append(line)
    return result


def generate(root):
    include_dir = (root / "include").resolve()
    umbrella = include_dir / "sinter/sinter.hpp"
    if not umbrella.is_file():
        raise Problem(f"{umbrella} does not exist")
    repeated = set()
    while True:
        result = Amalgamation(include_dir, repeated)
        result.add(umbrella, ())
        twice = {file for file, places in result.placed.items() if len(places) > 1}
        if twice <= repeated:
            break
        repeated |= twice
    return "\n".join(squeeze(banner(root) + result.lines)) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the file is not up to date")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository (default: %(default)s)")
    parser.add_argument("--output", type=Path, help="where to write (default: single_include/sinter/sinter.hpp)")
    options = parser.parse_args()
    output = options.output or options.root / "single_include/sinter/sinter.hpp"
    try:
        text = generate(options.root)
    except Problem as problem:
        sys.exit(f"amalgamate.py: {problem}")
    old = output.read_text(encoding="utf-8") if output.is_file() else ""
    if options.check:
        if text != old:
            difference = difflib.unified_diff(old.splitlines(), text.splitlines(), "checked in", "generated", "", "", 1, "")
            for _, line in zip(range(40), difference):
                print(line)
            sys.exit(f"{output} is not up to date: run python3 single_include/amalgamate.py")
        print(f"{output} is up to date")
    elif text != old:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding="utf-8")
        print(f"wrote {output}: {text.count(chr(10))} lines")
    else:
        print(f"{output} was up to date")


if __name__ == "__main__":
    main()
