#!/usr/bin/env python3
"""Runs the g++ command that stands in the comment at the top of an example, in the top folder of the repository."""
import re
import shlex
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tools


def command_in(source):
    """The words of the one line '//   g++ ...' in the comment at the top."""
    top = []
    for line in source.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("//"):
            break
        top.append(line)
    commands = [line[2:].strip() for line in top if re.match(r"//\s+g\+\+\s", line)]
    if len(commands) != 1:
        sys.exit(f"{source}: needs one line '//   g++ ...' in the comment at its top, has {len(commands)}")
    return shlex.split(commands[0])


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: example_command.py examples/NN_name.cpp")
    source = Path(sys.argv[1]).resolve()
    words = command_in(source)
    relative = source.relative_to(tools.ROOT).as_posix()
    for needed, why in ((relative, "the source"), ("-o", "a name for the program")):
        if needed not in words:
            sys.exit(f"{relative}: the command does not name {why} ({needed}): {shlex.join(words)}")
    if not re.search(r"-I\s?single_include\b", " ".join(words)) or re.search(r"-I\s?include\b", " ".join(words)):
        sys.exit(f"{relative}: the command does not use single_include: {shlex.join(words)}")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program"
        words[words.index("-o") + 1] = str(program)
        code, text = tools.run(words, cwd=tools.ROOT)
        print(f"$ {shlex.join(words)}\n{text}")
        if code != 0 or not program.is_file():
            sys.exit(f"failed with exit code {code}")
        if text.strip():
            sys.exit("the command prints something; it should compile without a warning")


if __name__ == "__main__":
    main()
