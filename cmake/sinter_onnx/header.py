"""The header and the file of weights of a model."""
import json
import re
import struct

import numpy as np

from . import graph as g
from . import layers, more, names, sizes  # layers and more add their rows to OPS
from .build import Builder
from .ops import OPS
from .patterns import Patterns
from .writer import Writer, listed, number, op, tensor

WIDTH = 120


class Converted:
    """text: the header. arrays: {name: array} for the file of weights. inputs: Values. outputs: the names of the results in C++.
    counts: how many nodes there were, were left and were written as statements."""

    def __init__(self, text, arrays, inputs, outputs, counts):
        self.text, self.arrays, self.inputs, self.outputs, self.counts = text, arrays, inputs, outputs, counts


def convert(model, path, struct_name, version):
    """The model as C++. Errors: Refused for what is not there, all of it listed with its places."""
    builder = Builder(model, path, struct_name, set(OPS))
    Patterns(builder)
    writer = Writer(builder, struct_name)
    missing = []
    for node in builder.nodes:
        writer.rank = node.outputs[0].rank
        where = f'at "{node.name or node.outputs[0].name}"'
        try:
            OPS[node.op](writer, node)
        except g.Refused as e:
            missing.append(f"  {e}, {where}")
            continue
        except g.MISFIT as e:
            missing.append(f"  {node.op} of a form that is not there ({type(e).__name__}: {e}), {where}")
            continue
        for i, y in enumerate(node.outputs):
            if not hasattr(y, "is_set") and (y.users or any(v is y for _, v in builder.outputs)):
                missing.append(f"  {node.op} with result {i}, {where}")
    if missing:
        raise g.Refused(f"{path}: what is not there yet:\n" + "\n".join(sorted(set(missing))))
    results = [(name, writer.result(value)) for name, value in builder.outputs]
    arrays = {}
    for m in writer.members:
        for part, values in m.arrays.items():
            arrays[f"{m.path}.{part}" if part else m.path] = values
    text = _Text(builder, writer, results, path, struct_name, version)
    counts = (len(model.graph.node), len(builder.nodes), len(writer.lines) + 1, len(writer.members))
    return Converted(text.text(), arrays, builder.inputs, text.fields(), counts)


class _Text:
    def __init__(self, builder, writer, results, path, struct_name, version):
        self.builder, self.writer, self.results, self.version = builder, writer, results, version
        self.path, self.struct_name = path, struct_name
        self.idents = {}

    def text(self):
        w, b = self.writer, self.builder
        body = self.body()
        members = [m for m in w.members]
        out = [f"// {self.struct_name}.hpp: made by onnx_to_sinter.py {self.version} from {names.comment(re.sub(r'.*/', '', str(self.path)))}. It is yours to change."]
        out += ["//"] + [f"//     {line}" for line in self.interface()]
        out += ["#pragma once", ""]
        standard = [h for h in ("algorithm", "cmath", "cstdint", "tuple", "utility", "vector") if self.needs(h, body, members)]
        out += [f"#include <{h}>" for h in standard] + [""] * bool(standard)
        out += ["#include <sinter/sinter.hpp>"] + [f"#include <{h}>" for h in sorted(w.includes)] + [""]
        out += ["namespace models {", "", "namespace nn = sinter::nn;", ""]
        if len(self.results) > 1:
            fields = self.fields()
            parameters = [f"T{i}" for i in range(len(fields))]
            out += [f"/// What {self.struct_name} gives.", f"template <{', '.join('class ' + p for p in parameters)}>",
                    f"struct {self.struct_name}_results {{"]
            out += [f"  {p} {f};" for p, f in zip(parameters, fields)]
            out += ["};", ""]
        out += [f"template <sinter::device D = sinter::cpu, class Kind = nn::tracked>",
                f"struct {self.struct_name} : nn::module<{self.struct_name}<D, Kind>> {{"]
        inner = ["using device_type = D;", "using kind = Kind;", "template <sinter::device To, class K>",
                 f"using rebind = {self.struct_name}<To, K>;", "", f"{self.struct_name}() = default;"]
        has_generator = any(re.search(r"\bgen\b", m.arguments) for m in members)
        gen = "sinter::generator& gen" if has_generator else "sinter::generator&"
        inner += [f"/// With new weights; nn::load(model, \"{self.struct_name}.safetensors\") reads those of the file.",
                  f"explicit {self.struct_name}({gen})"]
        if members:
            starts = [f"{m.name}({self.named(m.arguments)})" for m in members]
            ties = w.ties()
            inner += [f"    {': ' if i == 0 else '  '}{s}{',' if i + 1 < len(starts) else ' {' if ties else ' {}'}" for i, s in enumerate(starts)]
            inner += [f"  {tie}" for tie in ties] + ["}"] * bool(ties)
        else:
            inner[-1] += " {}"
        inner += ["", *body, "", "template <class F, class... M>",
                  "static void visit(F&& f, M&... m) {" if members else "static void visit(F&&, M&...) {}"]
        if members:
            inner += [f'  f("{m.path}", m.{m.name}...);' for m in members] + ["}"]
        inner += [""] + [f"{m.type} {m.name};" for m in members]
        out += [("  " + line).rstrip() for line in inner]
        out += ["};", "", "}  // namespace models", ""]
        return "\n".join(out)

    def fields(self):
        taken = names.Names()
        return [taken.take(name, "result") for name, _ in self.results]

    def interface(self):
        def line(word, name, value):
            return f"{word} {names.comment(name)}: {g.ELEMENTS.get(value.dtype, value.dtype)} ({', '.join(self.size(e) for e in value.shape)})"
        return [line("input", v.name, v) for v in self.builder.inputs] + [line("output", n, v) for n, v in self.builder.outputs]

    def size(self, extent):
        return "?" if "@" in sizes.text(extent) else sizes.text(extent)

    def needs(self, header, body, members):
        text = "\n".join(body) + "\n".join(m.arguments for m in members)
        marks = {"algorithm": ("std::min", "std::max"), "cmath": ("INFINITY", "NAN"), "cstdint": ("std::int", "std::uint"), "tuple": (),
                 "utility": (), "vector": ("std::vector",)}
        return any(m in text for m in marks[header])

    def body(self):
        w, b = self.writer, self.builder
        self.results = list(zip([name for name, _ in self.results], w.chain([code for _, code in self.results])))
        parameters = [f"X{i}" if len(b.inputs) > 1 else "X" for i in range(len(b.inputs))]
        arguments = [f"const {p}& {v.ident}" for p, v in zip(parameters, b.inputs)]
        lines = [f"template <{', '.join('class ' + p for p in parameters)}>"] if parameters else []
        lines += [f"auto forward({', '.join(arguments)}) const {{", "  using namespace sinter;"]
        code = "\n".join(w.lines + [r for _, r in self.results])
        used = [(i, c) for i, (_, c) in b.symbols.items() if re.search(rf"\b{i}\b", code)]
        if used:
            lines.append("  const index_t " + ", ".join(f"{i} = {c}" for i, c in used) + ";")
        for i, line in enumerate(w.lines):
            lines.append("  " + self.named(line))
        answers = [self.named(r) for _, r in self.results]
        if len(answers) == 1:
            lines.append(f"  return {answers[0]};")
        else:
            lines.append(f"  return {self.struct_name}_results{{{', '.join(answers)}}};")
        return [part for line in lines + ["}"] for part in wrapped(line)]

    def named(self, text):
        return re.sub(r"@([^@]+)@", lambda m: self.ident(m.group(1)), text)

    def ident(self, token):
        """The name of a value: the first place that has it is where it is made."""
        if token not in self.idents:
            hint = self.builder.idents.get(token) or self.writer.tokens.get(token) or token
            if token in {v.ident for v in self.builder.inputs}:
                self.idents[token] = token
            else:
                self.idents[token] = self.builder.names.take(hint, "value")
        return self.idents[token]


def wrapped(line):
    """A line, broken behind commas where it is too wide."""
    if len(line) + 2 <= WIDTH:
        return [line]
    indent = len(line) - len(line.lstrip()) + 4
    out = []
    while len(line) + 2 > WIDTH:
        cut = line.rfind(", ", 0, WIDTH - 3)
        if cut <= indent:
            break
        out.append(line[:cut + 1])
        line = " " * indent + line[cut + 2:]
    return out + [line]


SAFE = {np.dtype(np.float32): "F32", np.dtype(np.float64): "F64", np.dtype(np.float16): "F16", np.dtype(np.int64): "I64", np.dtype(np.int32): "I32",
        np.dtype(np.int16): "I16", np.dtype(np.int8): "I8", np.dtype(np.uint8): "U8", np.dtype(np.bool_): "BOOL"}


def write_safetensors(path, arrays):
    """The format of huggingface/safetensors: the length of a JSON header, the header, the elements."""
    table, begin = {}, 0
    for name, values in arrays.items():
        size = values.size * values.dtype.itemsize
        table[name] = {"dtype": SAFE[values.dtype], "shape": list(values.shape), "data_offsets": [begin, begin + size]}
        begin += size
    head = json.dumps(table, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(head)) + head)
        for values in arrays.values():
            file.write(np.ascontiguousarray(values).tobytes())
