#!/usr/bin/env python3
"""Writes docs/ops.md from the docstrings in include/sinter/ops/.

    python3 tests/docs/ops_reference.py            # writes docs/ops.md
    python3 tests/docs/ops_reference.py --check    # fails when docs/ops.md is not what would be written, or a public
                                                   # function of an op has no docstring
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
OPS = ROOT / "include" / "sinter" / "ops"
PAGE = ROOT / "docs" / "ops.md"
HEAD = """# Ops

Made from the docstrings in `include/sinter/ops/` by `tests/docs/ops_reference.py`; edit those. In the formulas `y` is
the result and `g` its gradient. Operands broadcast as in NumPy; all are on one device and of one element type, literals
adopt it. Floating point means float, double, half and bfloat16; the last two are computed in float and rounded once per
statement. [adding-an-op.md](adding-an-op.md) tells how to add one.

"""
MACRO = re.compile(r"SINTER_(\w+)\(([^,]+), .*\)")


def forms_of_macro(kind, name):
    """How an op declared with SINTER_<kind>(name, ...) is called."""
    operator = name.removeprefix("operator") if name.startswith("operator") else ""
    if kind == "UNARY_FUNCTION":
        return [f"{operator}x" if operator else f"{name}(x)"]
    if kind == "BINARY_FUNCTION":
        return [f"a {operator} b" if operator else f"{name}(a, b)"]
    if kind == "TERNARY_FUNCTION":
        return [f"{name}(a, b, c)"]
    if kind == "REDUCTION_WITH":
        return [f"{name}(x, options)", f"{name}(x, axis, options)", f"{name}(x, {{axis, ...}}, options)",
                f"{name}(x, axis, keepdim, options)"]
    if kind == "STACK_FUNCTION":
        return [f"{name}(parts...)", f"{name}(vector)"]
    if kind == "SPLIT_FUNCTION":
        return [f"{name}(x, count)", f"{name}(x, cuts)"]
    if kind.endswith("REDUCTION"):
        return [f"{name}(x)", f"{name}(x, axis)", f"{name}(x, {{axis, ...}})", f"{name}(x, axis, keepdim)"]
    return [f"{name}(x)"]


def split_at_commas(text):
    """The parts of a parameter list, not split inside brackets."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "(<[{") - (c in ")>]}")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts if p.strip()]


def matching(text, start):
    """Where the parenthesis that opens at start closes."""
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i
    raise ValueError(f"unbalanced: {text}")


def without_constraints(text):
    """A declaration without its template head and requires clauses."""
    text = re.sub(r"\s+", " ", text)
    explicit = re.match(r"template <(?:element|device) (\w+), ", text)
    while text.startswith("template"):
        depth = 0
        for i, c in enumerate(text):
            depth += (c == "<") - (c == ">" and text[i - 1] != "-")
            if c == ">" and depth == 0:
                text = text[i + 1:].strip()
                break
        while text.startswith("requires"):
            text = text[len("requires"):].strip()
            while True:  # a chain of parenthesised terms or concepts joined by && or ||
                if text.startswith("("):
                    text = text[matching(text, 0) + 1:].strip()
                else:
                    term = re.match(r"[\w:]+(<[^()]*?>)?\s*", text)
                    text = text[term.end():].strip()
                joint = re.match(r"(&&|\|\|)\s*", text)
                if not joint:
                    break
                text = text[joint.end():]
    return text, explicit.group(1) if explicit else ""


def forms_of_function(text):
    text, explicit = without_constraints(text)
    concept = re.match(r"concept (\w+)", text)
    if concept:
        return None, concept.group(1)
    if re.match(r"(struct|class|using|inline constexpr) ", text):
        return None, None
    start = re.search(r"([\w~!]+|operator\S+)\s*\(", text)
    if not start:
        return None, None
    name = start.group(1)
    opened = text.index("(", start.start() + len(name))
    parameters = []
    for p in split_at_commas(text[opened + 1:matching(text, opened)]):
        default = re.search(r"(\w+)(?:\[\w*\])?\)?\s*=\s*(.*)$", p)
        found = re.search(r"(\w+)(?:\[\w*\])?$", p) if not default else None
        if "..." in p:
            parameters.append("...")
        elif default:
            parameters.append(f"{default.group(1)} = {default.group(2)}")
        elif re.search(r"\(&(\w+)\)", p):
            parameters.append(re.search(r"\(&(\w+)\)", p).group(1))
        else:
            parameters.append(found.group(1))
    return [f"{name}{'<' + explicit + '>' if explicit else ''}({', '.join(parameters)})"], name


def declaration_after(lines, i):
    """The text of the declaration that starts at line i, up to its body or semicolon."""
    text = ""
    while i < len(lines):
        text += lines[i] + " "
        stripped = lines[i].rstrip()
        if stripped.endswith((";", "{")):
            return text.rstrip(" {;"), i
        i += 1
    return text, i


def entries_of(path):
    """(forms, docstring lines) of what a header documents in namespace sinter, and names without a docstring."""
    lines = path.read_text().split("\n")
    entries, bare, doc, spaces = [], [], [], []
    i = 0
    while i < len(lines):
        line = lines[i]
        opened = re.match(r"namespace ([\w:]+) \{", line)
        if opened:
            spaces.append(opened.group(1))
        elif re.match(r"\}  // namespace", line):
            spaces.pop()
        elif line.startswith("///"):
            doc.append(line[4:] if len(line) > 3 else "")
            i += 1
            continue
        elif spaces == ["sinter"]:
            macro = MACRO.match(line)
            if macro and macro.group(1).endswith(("_FUNCTION", "REDUCTION", "REDUCTION_WITH", "_OP")):
                forms = forms_of_macro(macro.group(1), macro.group(2))
                if doc:
                    entries.append((forms, doc))
                elif i > 0 and MACRO.match(lines[i - 1]) and entries:
                    entries[-1][0].extend(forms)
                else:
                    bare.append(macro.group(2))
            elif doc and line and not macro:
                text, i = declaration_after(lines, i)
                forms, name = forms_of_function(text)
                if forms is None and name:
                    forms = [f"concept {name}"]
                if forms:
                    entries.append((forms, doc))
        if line.strip():
            doc = []
        i += 1
    return entries, bare


def paragraphs(doc):
    """The docstring as Markdown: indented lines are examples."""
    text, example = [], []
    for line in doc:
        (example if line.startswith("    ") else text).append(line.removeprefix("    "))
    while text and not text[-1]:
        text.pop()
    # Code spans stand as they are.
    spans = " ".join(text).split("`")
    out = "`".join(re.sub(r"([*_<>|])", r"\\\1", part) if i % 2 == 0 else part for i, part in enumerate(spans))
    out = re.sub(r"\s+", " ", out)
    if example:
        out += "\n\n```cpp\n" + "\n".join(example) + "\n```"
    return out


def page():
    sections, missing = [], []
    for path in sorted(OPS.glob("*.hpp")):
        entries, bare = entries_of(path)
        missing += [f"{path.relative_to(ROOT)}: {name} has no docstring" for name in bare]
        if not entries:
            continue
        text = f"## {path.stem}\n\n"
        for forms, doc in entries:
            text += " · ".join(f"`{form}`" for form in dict.fromkeys(forms)) + "  \n" + paragraphs(doc) + "\n\n"
        sections.append((path.stem, text))
    index = " · ".join(f"[{name}](#{name})" for name, _ in sections)
    return HEAD + index + "\n\n" + "".join(text for _, text in sections).rstrip() + "\n", missing


def main():
    if len(sys.argv) > 2 or (len(sys.argv) == 2 and sys.argv[1] != "--check"):
        sys.exit(__doc__)
    text, missing = page()
    if missing:
        sys.exit("\n".join(missing))
    if len(sys.argv) == 1:
        PAGE.write_text(text)
        return
    if not PAGE.is_file() or PAGE.read_text() != text:
        sys.exit(f"{PAGE.relative_to(ROOT)} is out of date: run python3 tests/docs/ops_reference.py")


if __name__ == "__main__":
    main()
