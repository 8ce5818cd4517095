#!/usr/bin/env python3
"""Programs that must not compile, and the least different ones that must.

Every tests/compile_fail/NAME.cpp is compiled twice. With SINTER_MUST_FAIL defined it must be rejected, and the output
must fit what its comments say; without it, it must compile without a warning. Several are compiled together, each in a namespace of its
own, and alone where that does not do. The comments, each on a line of its own:

  // EXPECT: regex          is found in the output
  // EXPECT-GCC: regex      the same for g++ only; -CLANG, -NVCC likewise
  // FIRST-LINE: regex      is found in the first line with "error" (g++, nvcc) or in the first three lines that say
                            "error" or "note" (clang, which puts excerpts of the source between them);
                            FIRST-LINE-GCC, -CLANG, -NVCC for one compiler only
  // LINES-GCC: 12          the output has at most so many lines; -CLANG, -NVCC likewise (default: 12, 25, 12). Lines that
                            say which header includes which are not counted: they change with the order of includes.

Without EXPECT or FIRST-LINE a case is an error: it would accept any message.
"""
import argparse
import os
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tools

HERE = Path(__file__).resolve().parent
# g++ forgets in a precompiled header where warnings about Eigen's vector types are off.
FLAGS = {"gcc": ["-std=c++20", "-fno-diagnostics-color", "-fmessage-length=0", "-Wno-ignored-attributes"],
         "clang": ["-std=c++20", "-fno-color-diagnostics", "-fmessage-length=0", "-fno-crash-diagnostics"],
         "nvcc": ["-std=c++20", "-DSINTER_WITH_CUDA=0", "-x", "cu"]}  # as quick as can be; the messages are the backend's too
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wno-unused-result", "-Werror"]  # twins need no use for what they compute
DEFAULT_LINES = {"gcc": 12, "clang": 25, "nvcc": 12}
INCLUDED_FROM = re.compile(r"^In file included from |^ +from [^ ]+:\d+[:,]$")
TOGETHER = 20  # cases in one compilation
INCLUDE = re.compile(r"^#include <(sinter/.*)>", re.M)
NAMESPACE = "case_"  # in front of a case's name, where it is compiled with others
DIAGNOSTIC = re.compile(r": (?:fatal )?(error|note|warning): ")
# What g++ says before the diagnostic that it belongs to.
CONTEXT = re.compile(r"^In file included from |^ +from [^ ]+:\d+[:,]$|: (?:In|At) [^:]*[^;]*:$|: +(?:recursively )?required (?:from|by) ")
COMMENT = re.compile(r"^//\s*([A-Z]+(?:-[A-Z]+)*):\s*(.+?)\s*$", re.M)


class Case:
    """One file and what its comments expect of one kind of compiler."""

    def __init__(self, file, kind):
        self.file, self.kind, self.name = file, kind, file.stem
        self.text = file.read_text(encoding="utf-8")
        self.expect, self.first_line, self.lines = [], [], DEFAULT_LINES[kind]
        self.mistake = None
        for key, value in COMMENT.findall(self.text):
            word, _, only = key.rpartition("-")
            if only not in ("GCC", "CLANG", "NVCC"):
                word, only = key, ""
            if word not in ("EXPECT", "FIRST-LINE", "LINES") or (word == "LINES" and not only):
                self.mistake = f"unknown comment '// {key}:'"
            elif only and only.lower() != kind:
                continue
            elif word == "LINES":
                self.lines = int(value)
            else:
                (self.expect if word == "EXPECT" else self.first_line).append(value)
        if not self.expect and not self.first_line:
            self.mistake = f"has no EXPECT or FIRST-LINE comment for {kind}"
        if not re.search(r"^\s*#\s*(if|ifdef|ifndef|elif)\b.*\bSINTER_MUST_FAIL\b", self.text, re.M):
            self.mistake = "does not use SINTER_MUST_FAIL"

    def misfits(self, output):
        """What is wrong with the message of the rejected variant."""
        lines = [line for line in output.splitlines() if line.strip()]
        if self.kind == "clang":
            head = "\n".join([line for line in lines if re.search(r": (error|note|warning): ", line)][:3])
        else:
            head = next((line for line in lines if re.search(r"\berror\b", line)), "")
        for pattern in self.expect:
            if not re.search(pattern, output):
                yield f"the output does not match EXPECT: {pattern}"
        for pattern in self.first_line:
            if not re.search(pattern, head):
                where = "first three lines of the message" if self.kind == "clang" else "first error line"
                yield f"the {where} do not match FIRST-LINE: {pattern}"
        count = sum(not INCLUDED_FROM.search(line) for line in lines)
        if count > self.lines:
            yield f"the output has {count} lines; at most {self.lines} are allowed"


def includes_rooms(file):
    """Whether it includes more of Sinter than the umbrella header."""
    return re.search(r"^#include <sinter/(?!sinter\.hpp)", file.read_text(encoding="utf-8"), re.M) is not None


class Compiler:
    def __init__(self, compiler, eigen, scratch):
        self.kind = tools.compiler_kind(compiler)
        self.command = [compiler, *FLAGS[self.kind], f"-I{tools.INCLUDE}", *tools.eigen_flags(eigen)]
        self.name = Path(compiler).name
        self.scratch = scratch / self.name
        self.scratch.mkdir(parents=True, exist_ok=True)
        self.version = tools.run([compiler, "--version"])[1]
        self.precompiled = {}  # whether a file includes other rooms -> options

    def precompile(self, passed, with_rooms):
        """Compiles the umbrella header once for all cases and, where some include more, all rooms once for those."""
        if self.kind == "nvcc":
            return
        self.precompiled = {rooms: self.options_of_precompiled(passed, rooms) for rooms in ([False, True] if with_rooms else [False])}

    def options_of_precompiled(self, passed, rooms):
        headers = [tools.INCLUDE / "sinter" / f"{name}.hpp" for name in ["sinter", *["data", "io", "parallel", "ranks", "sequences"] * rooms]]
        key = passed.key("precompiled", *sorted(set().union(*map(tools.closure, headers))))
        prefix = "pch-rooms-" if rooms else "pch-"
        folder = self.scratch / f"{prefix}{key[:16]}"
        target, wrapper = folder / "sinter/sinter.hpp.gch", folder / "wrapper.hpp"
        if not target.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            partial = target.with_suffix(f".{os.getpid()}")
            wrapper.write_text("".join(f"#include <sinter/{header.name}>\n" for header in headers))
            code, text = tools.run([*self.command, *WARNINGS, "-x", "c++-header", wrapper, "-o", partial])
            if code != 0:
                sys.exit(f"{', '.join(map(str, headers))} do not compile with {self.name}:\n{text}")
            for old in self.scratch.glob(f"{prefix}[0-9a-f]*/sinter/*.gch"):
                old.unlink()
            partial.rename(target)
            for header in headers[1:]:  # a file may include it first
                target.with_name(f"{header.name}.gch").hardlink_to(target)
        # clang 14 crashes on reading some templates back (a lambda in a decltype); it then has to do without.
        if self.kind == "clang":
            code, text = tools.run([*self.command, "-include-pch", target, "-fsyntax-only", "-x", "c++", wrapper])
            if code != 0:
                print(f"{self.name} cannot use a precompiled header: {text.splitlines()[0] if text else code}")
                return []
        # g++ finds sinter.hpp.gch where the include path leads first; clang is told, and skips the include by its pragma.
        return [f"-I{folder}"] if self.kind == "gcc" else ["-include-pch", target]

    def compile(self, file, must_fail):
        if self.kind == "nvcc":
            end = ["-c", "-o", os.devnull]
            warnings = []
        else:
            end = ["-fsyntax-only", "-x", "c++"]
            warnings = [] if must_fail else WARNINGS
        define = ["-DSINTER_MUST_FAIL"] if must_fail else []
        precompiled = self.precompiled.get(includes_rooms(file), [])
        return tools.run([self.command[0], *precompiled, *self.command[1:], *warnings, *define, *end, file])


def check(compiler, case, is_rejected=False, twin_compiles=False):
    """None if the case passes, else what is wrong; what was found together with other cases is not compiled again."""
    if case.mistake:
        return case.mistake
    if not is_rejected:
        code, output = compiler.compile(case.file, must_fail=True)
        if code == 0:
            return "compiles with SINTER_MUST_FAIL, but must not"
        wrong = list(case.misfits(output))
        if code not in (1, 2) or "internal compiler error" in output:
            wrong.append(f"the compiler itself failed, with exit code {code}")
        if wrong:
            return "\n".join([*wrong, "output with SINTER_MUST_FAIL:", *output.splitlines()[:60]])
    code, output = (0, "") if twin_compiles else compiler.compile(case.file, must_fail=False)
    if code != 0:
        return "\n".join(["the twin, without SINTER_MUST_FAIL, does not compile:", *output.splitlines()[:60]])
    return None


def compile_together(compiler, files, folder, must_fail):
    """Exit code and output of one source with all the files, each in a namespace."""
    source = folder / f"{'rejected' if must_fail else 'twins'}_{files[0].stem}.cpp"
    # Headers come before the namespaces, which would hold them otherwise, and once: g++ takes one precompiled header.
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    heads = {name for text in texts.values() for name in INCLUDE.findall(text)} - {"sinter/sinter.hpp"}
    source.write_text("".join(f"#include <{name}>\n" for name in ["sinter/sinter.hpp", *sorted(heads)]) +
                      "".join(f'namespace {NAMESPACE}{file.stem} {{\n#line 1 "{file}"\n{INCLUDE.sub("", text)}\n}}\n'
                              for file, text in texts.items()))
    return compiler.compile(source, must_fail)


def beside_others(files):
    """Those that may stand beside others: pragmas and macros would reach the next file, and Sinter's namespace is not inside another."""
    return [file for file in files if not re.search(r"#pragma|#define|^namespace sinter\b", file.read_text(encoding="utf-8"), re.M)]


def groups_of(files):
    """Groups of files that include the same headers."""
    by_heads = {}
    for file in files:
        by_heads.setdefault(frozenset(INCLUDE.findall(file.read_text(encoding="utf-8"))), []).append(file)
    return [group[first:first + TOGETHER] for group in by_heads.values() for first in range(0, len(group), TOGETHER)]


def compiling_together(compiler, files, folder):
    """Those of the files whose twins compile in one source; all or none."""
    together = beside_others(files)
    return together if together and compile_together(compiler, together, folder, must_fail=False)[0] == 0 else []


def messages_of(output, files):
    """The part of the output that each file is the cause of."""
    blocks, has_diagnostic = [], True
    for line in output.splitlines():
        kind = DIAGNOSTIC.search(line)
        if CONTEXT.search(line) or (kind and kind[1] == "error"):
            if has_diagnostic:
                blocks.append([])
            has_diagnostic = False
        if kind:
            if kind[1] == "note" and not has_diagnostic and len(blocks) > 1:  # its context belongs to the error before
                context = blocks.pop()
                blocks[-1] += context
            has_diagnostic = True
        if blocks:
            blocks[-1].append(line)
    parts = {file: [] for file in files}
    for block in blocks:
        head = [line for line in block if re.search(r"\berror\b", line)]
        cause = next((file for line in head + block for file in files if str(file) in line), None)
        if cause:
            parts[cause] += block
    return {file: re.sub(rf"\b{NAMESPACE}{file.stem}::", "", "\n".join(lines)) for file, lines in parts.items()}


def rejected_together(compiler, files, folder):
    """Those of the files that one source with all of them is rejected for, in the words that they ask for. An error inside a template
    is told of once only, so it counts for none."""
    together = beside_others(files)
    code, output = compile_together(compiler, together, folder, must_fail=True) if together else (0, "")
    if code != 1 or "internal compiler error" in output:
        return []

    def is_told(file, text):
        return (re.search(r"\berror\b", text) and not re.search(r"\binstantiation of\b", text, re.I) and
                not list(Case(file, compiler.kind).misfits(text)))

    return [file for file, text in messages_of(output, together).items() if is_told(file, text)]


SELF_TEST = {  # source -> what the harness must say of it; None: passes
    "// EXPECT: deliberate\n#ifdef SINTER_MUST_FAIL\n#error deliberate\n#endif\n": None,
    "// FIRST-LINE: deliberate\n#ifdef SINTER_MUST_FAIL\n#error deliberate\n#endif\n": None,
    "// EXPECT: other\n#ifdef SINTER_MUST_FAIL\n#error deliberate\n#endif\n": "does not match EXPECT",
    "// EXPECT-GCC: other\n// EXPECT-CLANG: other\n// EXPECT-NVCC: other\n// EXPECT: .\n#ifdef SINTER_MUST_FAIL\n#error one\n#endif\n":
        "does not match EXPECT",
    "// FIRST-LINE: second\n#ifdef SINTER_MUST_FAIL\n#error a\n#error b\n#error c\n#error d\n#error second\n#endif\n":
        "do not match FIRST-LINE",
    "// EXPECT: one\n// LINES-GCC: 3\n// LINES-CLANG: 3\n// LINES-NVCC: 3\n#ifdef SINTER_MUST_FAIL\n#error one\n#error two\n#endif\n":
        "at most 3 are allowed",
    "// EXPECT: one\n#ifdef SINTER_MUST_FAIL\nint one;\n#endif\n": "compiles with SINTER_MUST_FAIL",
    "// EXPECT: one\n#ifdef SINTER_MUST_FAIL\n#endif\n#error one\n": "the twin",
    "// EXPECT: one\n#ifdef SINTER_MUST_FAIL\n#error one\n#else\n#warning two\n#endif\n": "the twin",
    "#ifdef SINTER_MUST_FAIL\n#error one\n#endif\n": "has no EXPECT",
    "// EXPECT: one\n#error one\n": "does not use SINTER_MUST_FAIL",
    "// EXPECTS: one\n#ifdef SINTER_MUST_FAIL\n#error one\n#endif\n": "unknown comment|has no EXPECT",
}


def self_test(compiler):
    failures, files = [], []
    with tempfile.TemporaryDirectory() as folder:
        for number, (text, verdict) in enumerate(SELF_TEST.items()):
            file = Path(folder) / f"number_{number}.cpp"
            file.write_text(text)
            files.append(file)
            if "#warning" in text and compiler.kind == "nvcc":
                continue
            result = check(compiler, Case(file, compiler.kind))
            if (verdict is None) != (result is None) or (verdict and not re.search(verdict, result)):
                failures.append((f"self-test {number}", f"{text}expected: {verdict or 'passes'}\ngot: {result}"))
        if compiler.kind != "nvcc":
            rejected = rejected_together(compiler, files, Path(folder))
            expected = [file for file, verdict in zip(files, SELF_TEST.values()) if verdict in (None, "the twin")]
            if not set(expected) <= set(rejected):
                failures.append(("self-test together", f"expected at least {expected}\ngot: {rejected}"))
            for file in rejected:
                if list(Case(file, compiler.kind).misfits(compiler.compile(file, must_fail=True)[1])):
                    failures.append(("self-test together", f"{file.name} is rejected in other words alone"))
    tools.report("compile-fail harness", failures, len(SELF_TEST) + 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default="g++", help="g++, clang++ or nvcc (default: %(default)s)")
    parser.add_argument("--eigen", default="/usr/include/eigen3", help="Eigen's include folders, joined by colons")
    parser.add_argument("--scratch", type=Path, default=Path("build/compile_fail"))
    parser.add_argument("--only", choices=["umbrella", "rooms"], help="cases that include the umbrella header alone, or the others")
    parser.add_argument("--show", action="store_true", help="print the message of each case and check nothing")
    parser.add_argument("--self-test", action="store_true", help="check that the harness itself can fail")
    parser.add_argument("cases", nargs="*", type=Path, help="only these files (default: all beside this script)")
    options = parser.parse_args()
    compiler = Compiler(options.compiler, options.eigen, options.scratch)
    if options.self_test:
        self_test(compiler)
    passed = tools.Passed(compiler.scratch / "passed", compiler.command, compiler.version, Path(__file__).read_bytes())
    files = [file.resolve() for file in options.cases] or sorted(HERE.glob("*.cpp"))
    if options.only:
        files = [file for file in files if includes_rooms(file) == (options.only == "rooms")]
    if not files:
        sys.exit(f"no cases in {HERE}")
    compiler.precompile(passed, any(map(includes_rooms, files)))
    if options.show:
        for file in files:
            output = compiler.compile(file, must_fail=True)[1]
            print(f"---- {file.stem} ({len(output.splitlines())} lines)\n{output}")
        return
    keys = {file: passed.key(file, *sorted(tools.closure(file))) for file in files}
    new = [file for file in files if keys[file] not in passed]
    groups = groups_of(new) if compiler.kind != "nvcc" else []
    twins, rejected = (set(sum(tools.parallel(lambda group: together(compiler, group, compiler.scratch), groups), []))
                       for together in (compiling_together, rejected_together))

    def one(file):
        problem = check(compiler, Case(file, compiler.kind), file in rejected, file in twins)
        if problem:
            return file.stem, problem
        passed.add(keys[file])
        return None

    failures = [failure for failure in tools.parallel(one, new) if failure]
    tools.report(f"compile_fail with {compiler.name}", failures, len(files), len(files) - len(new))


if __name__ == "__main__":
    main()
