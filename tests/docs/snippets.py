#!/usr/bin/env python3
"""Fills the code blocks of README.md and docs/ from marked regions of tests and examples, or checks them (--check).

A block is preceded by `<!-- snippet: FILE NAME -->`; in FILE the region stands between `// [docs:NAME]` and `// [docs:end]`.
Of a case of tests/compile_fail the region `rejected` is what must not compile, the names that the message must have, and the twin. In a
header that a program wrote there are no marks: there NAME() is the member function of that name.
"""
import argparse
import re
import sys
import textwrap
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tools

BLOCK = re.compile(r"(<!-- snippet: (\S+) (\S+) -->\n```\w*\n)(.*?)(```)", re.S)


def rejected(case):
    """What a case of tests/compile_fail rejects, the names that its message must have, and what compiles in its place."""
    text = case.read_text()
    asked = " ".join(re.findall(r"^// (?:FIRST-LINE|EXPECT)(?:-GCC)?: (.*)$", text, re.M))
    names = list(dict.fromkeys(re.findall(r"[A-Za-z0-9]+(?:_[A-Za-z0-9]+){2,}", asked)))
    wrong, right = re.search(r"#ifdef SINTER_MUST_FAIL\n(.*?)#else\n(.*?)#endif", text, re.S).groups()
    return f"{wrong.rstrip()}\n// error: {', '.join(names) or asked}\n\n// compiles:\n{right}"


def region(file, name):
    """The lines of a region, without their common indentation."""
    path = tools.ROOT / file
    if not path.is_file():
        sys.exit(f"snippets.py: there is no {file}")
    if name == "rejected":
        return textwrap.dedent(rejected(path))
    if name.endswith("()"):
        found = re.findall(rf"^  (?:template <[^\n]*>\n  )?auto {re.escape(name[:-2])}\(.*?^  }}\n", path.read_text(), re.S | re.M)
        return textwrap.dedent(found[0]) if found else sys.exit(f"snippets.py: {file} has no {name}")
    found = re.findall(rf"^[ ]*// \[docs:{re.escape(name)}\]\n(.*?)^[ ]*// \[docs:end\]$", path.read_text(), re.S | re.M)
    if len(found) != 1:
        sys.exit(f"snippets.py: {file} has {len(found)} regions named {name}, not 1")
    return textwrap.dedent(found[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 where a block differs")
    check = parser.parse_args().check
    stale = []
    blocks = 0
    for page in [tools.ROOT / "README.md", *sorted((tools.ROOT / "docs").rglob("*.md"))]:
        text = page.read_text()
        filled = BLOCK.sub(lambda m: m[1] + region(m[2], m[3]) + m[5], text)
        blocks += len(BLOCK.findall(text))
        if filled != text:
            stale.append(page.relative_to(tools.ROOT).as_posix())
            if not check:
                page.write_text(filled)
    if blocks == 0:
        sys.exit("snippets.py: no page has a snippet")
    if check and stale:
        sys.exit(f"snippets.py: not what the tests say: {', '.join(stale)}; run tests/docs/snippets.py")
    print(f"{blocks} snippets" + (f", filled in {', '.join(stale)}" if stale and not check else ""))


main()
