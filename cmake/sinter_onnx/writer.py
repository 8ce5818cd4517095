"""Writes the header: a struct with members, and a forward with one statement for each value that is needed whole."""
import re

import numpy as np

from . import names, sizes
from .graph import ELEMENTS, FLOATS, Refused

# How strongly an expression of C++ holds together.
ATOM, UNARY, PRODUCT, SUM, RELATION = 4, 3, 2, 1, 0


LONGEST_FORMULA, LONGEST_VIEW = 110, 70  # characters before a name is given


class Code:
    """An expression: its text; whether it can stand in a formula as it is ("formula"), needs eval() for a name ("op"), or is a
    tensor already ("tensor")."""

    def __init__(self, text, kind="formula", strength=ATOM):
        self.text, self.kind, self.strength = text, kind, strength


def op(text):
    return Code(text, "op")


def tensor(text):
    return Code(text, "tensor")


def number(value):
    """A literal."""
    if isinstance(value, sizes.Size):
        return sizes.text(value)
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if np.isnan(value):
        return "NAN"
    if np.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    if isinstance(value, np.floating):
        short = str(value) if not isinstance(value, np.float16) else repr(float(value))
        value_text = short
    else:
        value_text = repr(float(value))
    if float(value) == int(value) and abs(float(value)) < 1e6:
        return str(int(value))
    return value_text


def listed(values, text=number):
    return "{" + ", ".join(text(v) for v in values) + "}"


def one_or_all(values):
    """One number where all are alike."""
    return number(values[0]) if len(set(values)) == 1 else listed(values)


def path_of(n, weight=None, bias=None):
    """The name of a layer: that of its weight without ".weight" or of its bias without ".bias", or that of the node."""
    for value, ends in ((weight, (".weight", "_weight", ".kernel")), (bias, (".bias", "_bias"))):
        for end in ends:
            if value is not None and value.name.endswith(end):
                return value.name[:-len(end)]
    return names.readable(n.name or n.outputs[0].name, n.op)


class Member:
    def __init__(self, name, path, type_, arguments, arrays, note=""):
        self.name, self.path, self.type, self.arguments, self.arrays, self.note = name, path, type_, arguments, arrays, note


class Writer:
    """What an op's code is written with: expr() and made() give operands, layer() and constant() members."""

    def __init__(self, builder, struct):
        self.builder, self.struct = builder, struct
        self.members, self.lines, self.pending, self.constants, self.tokens, self.same = [], [], {}, {}, {}, {}
        self.made_by = {}  # number of a line -> the value that it makes
        self.includes = set()
        self.tables, self.heads = [], []  # weights of embeddings and of linear layers, and their members
        self.paths = set()

    # Operands

    def expr(self, value, strength=RELATION):
        """The value in a formula: a literal, a name, or the formula that makes it, in parentheses if it holds together less."""
        if value.known is not None:
            return self._known(value, strength)
        if id(value) in self.pending:
            code = self.pending.pop(id(value))
            return code.text if code.strength >= strength else f"({code.text})"
        return self._name(value)

    def made(self, value):
        """The name of a tensor or variable that holds the value."""
        if value.known is not None:
            return self._known_tensor(value)
        if id(value) in self.pending:
            self._write(value, self.pending.pop(id(value)))
        return self._name(value)

    def result(self, value):
        """The value as forward() returns it."""
        code = self.pending.pop(id(value), None)
        if code is None:
            return self.made(value)
        return code.text if code.kind == "tensor" else f"eval({code.text})"

    def viewed(self, value):
        """What stands before .reshape() and its like: a name, or views of one that nobody else needs."""
        code = self.pending.get(id(value))
        if code is not None and code.kind == "tensor" and len(code.text) <= LONGEST_VIEW:
            return self.pending.pop(id(value)).text
        return self.made(value)

    def scalar(self, value):
        """The one element of a value that is known, or None."""
        if value is None or value.known is None or value.known.size != 1 or value.is_trained:
            return None
        return value.known.reshape(-1)[0]

    def _name(self, value):
        if id(value) in self.same:
            return self.same[id(value)]
        return f"@{value.ident}@" if value.maker is not None else value.ident

    def _known(self, value, strength):
        if value.known.size == 1 and not value.is_trained and (value.rank == 0 or value.rank <= getattr(self, "rank", 0)):
            element = value.known.reshape(-1)[0]
            text = number(element)
            if isinstance(element, sizes.Size):
                text = f"static_cast<{ELEMENTS[value.dtype]}>({text})" if value.dtype.kind == "f" else text
                return f"({text})" if " " in text and strength > RELATION and value.dtype.kind != "f" else text
            return f"({text})" if text.startswith("-") and strength >= UNARY else text
        return self._known_tensor(value)

    def _known_tensor(self, value):
        if value.const is not None:
            return self.constant(value)
        element = ELEMENTS[value.dtype]
        cast = "" if value.dtype.kind == "i" else f"{element}"
        items = ", ".join(f"{element}({sizes.text(v)})" if cast else sizes.text(v) for v in value.sizes.reshape(-1))
        if value.rank == 0:
            return f"sinter::full<{element}, D>({{}}, {items})"
        return f"sinter::from_data<D>(std::vector<{element}>{{{items}}}, {listed(value.shape)})"

    # Statements

    def set(self, value, code):
        """The code of a value. It is written as a statement where it is used more than once, or not in a formula."""
        value.is_set = True
        if code.kind == "tensor" and re.fullmatch(r"@[^@]+@|[a-z_0-9]+", code.text):
            self.same[id(value)] = code.text  # another name of the same
            return
        self.pending[id(value)] = code
        many = len(value.users) + sum(v is value for _, v in self.builder.outputs) != 1
        if many or value.is_made or len(code.text) > LONGEST_FORMULA:
            self._write(value, self.pending.pop(id(value)))

    def _write(self, value, code):
        text = code.text if code.kind == "tensor" else f"eval({code.text})"
        self.made_by[len(self.lines)] = value
        self.lines.append(f"const auto {self._name(value)} = {text};")

    def chain(self, results):
        """Gives values that the next line alone reads one name, h, which is assigned again and again: a value's memory is free for the next ones
        as soon as it was read. They have one type, as each comes from the inputs and from something trained by floats alone."""
        def tokens(text):
            return set(re.findall(r"@([^@]+)@", text))

        inputs, members = {v.ident for v in self.builder.inputs}, {m.name for m in self.members}
        from_input, trained, last = set(), set(), {}
        for i, line in enumerate(self.lines + results):
            last.update(dict.fromkeys(tokens(line), i))
            made, value = re.match(r"const auto @([^@]+)@ = (.*)", line, re.S), self.made_by.get(i)
            if made is None:
                continue
            name, read, words = made[1], tokens(made[2]), set(re.findall(r"[A-Za-z_]\w*", made[2]))
            if read & from_input or words & inputs:
                from_input.add(name)
            if (read & trained or words & members) and (value is None or value.dtype in FLOATS):
                trained.add(name)
        kinds = {}
        for i, value in self.made_by.items():
            is_evaluated = self.lines[i].startswith(f"const auto @{value.ident}@ = eval(")
            if is_evaluated and last.get(value.ident) == i + 1 and value.ident in from_input & trained:
                kinds.setdefault((value.rank, value.dtype.str), []).append(i)
        lines = max(kinds.values(), key=len, default=[])
        if len(lines) < 2:
            return results
        h = self.local("h")
        for i in lines:
            old, start = f"@{self.made_by[i].ident}@", "auto " if i == lines[0] else ""
            self.lines[i] = self.lines[i].replace(f"const auto {old} = ", f"{start}{h} = ", 1)
            for text in (self.lines, results):
                at = i + 1 - (len(self.lines) if text is results else 0)
                if 0 <= at < len(text):
                    text[at] = text[at].replace(old, h)
        return results

    def statement(self, text):
        self.lines.append(text)

    def local(self, hint):
        return f"@{self._token(hint)}@"

    def _token(self, hint):
        token = f"+{hint}{len(self.tokens)}"
        self.tokens[token] = hint
        return token

    # Members

    def layer(self, hint, type_, arguments, arrays, note=""):
        """A member of a layer type, and where its parameters lie: arrays maps "weight" to an array. The member's name."""
        # Exporters write equal tensors once: layers that still have their first weights are not tied for that.
        is_tied = any(v.size > 1 and (v != v.reshape(-1)[0]).any() for v in arrays.values())
        key = (type_, arguments, tuple(sorted((k, id(v)) for k, v in arrays.items()))) if is_tied else object()
        if key in self.constants:
            return self.constants[key][0]
        self.constants[key] = member = (self._member(hint, type_, arguments, arrays, note), list(arrays.values()))
        return member[0]

    def ties(self):
        """Statements of the constructor: a linear layer with the weight of an embedding, of which exporters make two tensors, has that one."""
        found = [f"{layer}.weight = {member}.weight;" for weight, layer in self.heads for table, member in self.tables
                 if table.shape == weight.shape and np.array_equal(table, weight)]
        return list(dict.fromkeys(found))

    def constant(self, value):
        """A member that holds a known tensor."""
        if id(value.const) in self.constants:
            return self.constants[id(value.const)][0]
        if value.dtype not in ELEMENTS:
            raise Refused(f"a constant of element type {value.dtype}")
        kind = "parameter" if value.is_parameter and value.dtype in FLOATS else "buffer"
        arguments = f"sinter::zeros<{ELEMENTS[value.dtype]}, D>({listed(value.shape) if value.rank else ''})"
        type_ = f"nn::parameter<{ELEMENTS[value.dtype]}, {value.rank}, D, Kind>" if kind == "parameter" else \
            f"nn::buffer<{ELEMENTS[value.dtype]}, {value.rank}, D>"
        text = self._member(names.readable(value.name, "constant"), type_, arguments, {"": value.const}) + ("" if kind == "parameter" else ".value()")
        self.constants[id(value.const)] = (text, value.const)
        return text

    def _member(self, hint, type_, arguments, arrays, note=""):
        path = re.sub(r"[^0-9A-Za-z_.]+", "_", hint).strip("._") or "layer"
        if path[0].isdigit():
            path = "layer_" + path
        base, n = path, 2
        while path in self.paths:
            path, n = f"{base}_{n}", n + 1
        self.paths.add(path)
        name = self.builder.names.take(path, "layer")
        self.members.append(Member(name, path, type_, arguments, arrays, note))
        return name
