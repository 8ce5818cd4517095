"""The graph as it is converted: what is known beforehand is computed, and all shapes are known, as numbers or formulas."""
import re

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

from . import graph as g
from . import known, names, sizes
from .shapes import SHAPES

LARGEST_CONSTANT = 1 << 28  # elements
RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial", "Dropout"}
ALIASES = {"Identity"}
MOST_PARTS = 1000
SEQUENCES = {"SequenceConstruct", "SequenceEmpty", "SplitToSequence", "SequenceAt", "SequenceLength", "ConcatFromSequence"}
# What PyTorch's exporters call constants that are initializers: val_12, onnx::Mul_7, _tensor_constant0, scalar_tensor_default.
MADE = re.compile(r"::|/|(^|_)\d+$|constant|scalar|lifted|default")
# What is computed of known parameters by these is a parameter, too.
OF_PARAMETERS = {"Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Cast", "Slice", "Gather", "Split", "Concat", "Expand", "Add", "Sub", "Mul",
                 "Div", "DequantizeLinear"}


class Builder:
    """Reads the nodes of a model in order. Afterwards: `inputs`, `outputs`, `nodes`, `symbols` (name -> C++)."""

    def __init__(self, model, path, struct_name, supported):
        self.path, self.supported = path, supported
        self.names = names.Names([struct_name])
        self.nodes, self.inputs, self.symbols, self.missing = [], [], {}, []
        self.seen, self.idents = {}, {}
        self.opset = {o.domain: o.version for o in model.opset_import}
        self.ir_version = model.ir_version
        if self.opset.get("", 1) < 7:
            raise g.Refused(f"{path}: opset {self.opset.get('', 1)}; models of opset 7 and later are converted")
        self.is_pytorch = model.producer_name == "pytorch"
        scope = {}
        self._initializers(model.graph, scope)
        for info in model.graph.input:
            if info.name not in scope:
                scope[info.name] = self._input(info)
                self.inputs.append(scope[info.name])
        self._run(model.graph, scope)
        if self.missing:
            raise g.Refused(f"{path}: what is not there yet:\n" + "\n".join(sorted(self.missing)))
        for o in model.graph.output:
            if isinstance(scope.get(o.name), list):
                raise g.Refused(f'{path}: the output "{o.name}" is a sequence')
            if o.name not in scope:
                raise g.Refused(f'{path}: no node gives the output "{o.name}"')
        self.outputs = [(o.name, scope[o.name]) for o in model.graph.output]
        self._drop_dead()

    def _input(self, info):
        kind = info.type.tensor_type
        if not info.type.HasField("tensor_type") or not kind.HasField("shape"):
            raise g.Refused(f'{self.path}: the input "{info.name}" is no tensor of a known number of axes')
        dtype = g.element_type(kind.elem_type, f'{self.path}: the input "{info.name}"')
        if dtype not in g.ELEMENTS:
            raise g.Refused(f'{self.path}: the input "{info.name}" has the element type {dtype}, which is not there')
        ident = self.names.take(info.name, "input")
        shape = []
        for i, d in enumerate(kind.shape.dim):
            if d.HasField("dim_value") and d.dim_value > 0:
                shape.append(d.dim_value)
            else:
                named = d.dim_param if names.is_name(d.dim_param) else f"{ident}_{i}"
                shape.append(self._symbol(named, f"{ident}.size({i})"))
        value = g.Value(info.name, dtype, tuple(shape))
        value.ident = ident
        return value

    def _symbol(self, text, code):
        for ident, (known_text, _) in self.symbols.items():
            if known_text == text:
                return sizes.name(ident)
        ident = self.names.take(text, "n")
        self.symbols[ident] = (text, code)
        return sizes.name(ident)

    def _initializers(self, graph, scope):
        for tensor in graph.initializer:
            if tensor.name not in scope:
                try:
                    values = g.array(tensor)
                except g.MISFIT as e:
                    raise g.Refused(f'{self.path}: the tensor "{tensor.name}" cannot be read ({e})') from None
                is_trained = self.is_pytorch and values.size == 1 and values.dtype in g.FLOATS and not MADE.search(tensor.name)
                scope[tensor.name] = g.Value(tensor.name, values.dtype, values.shape, values, is_parameter=True, is_trained=is_trained)

    def _run(self, graph, scope):
        self._initializers(graph, scope)
        for proto in graph.node:
            try:
                self._node(proto, scope)
            except g.MISFIT as e:
                self.missing.append(f'  {proto.op_type} of a form that is not there ({type(e).__name__}: {e}), at "{proto.name or proto.output[0]}"')

    def _node(self, proto, scope):
        op = proto.op_type
        inputs = []
        for name in proto.input:
            if name and name not in scope:
                return  # what gives it is not there, and listed
            inputs.append(scope[name] if name else None)
        if op == "CastLike":
            proto = helper.make_node("Cast", proto.input[:1], proto.output, proto.name, to=helper.np_dtype_to_tensor_dtype(inputs[1].dtype))
            op, inputs = "Cast", inputs[:1]
        attrs = g.attributes(proto)
        where = f'"{proto.name or proto.output[0]}"'
        if op == "Constant":
            return self._constant(proto, attrs, scope)
        if op == "If":
            return self._if(proto, attrs, inputs, scope, where)
        if op in SEQUENCES:
            try:
                return self._sequence(op, proto, attrs, inputs, scope)
            except g.Refused as e:
                self.missing.append(f"  {e}, at {where}")
                return
        if any(isinstance(x, list) for x in inputs):
            self.missing.append(f"  {op} of a sequence, at {where}")
            return
        if op in ALIASES or (op == "Cast" and inputs[0].dtype == self._cast_type(attrs)):
            scope[proto.output[0]] = inputs[0]
            return
        op, attrs, inputs = g.modern(op, attrs, inputs, inputs[0].dtype if inputs and inputs[0] is not None else None)
        if op == "Dropout" and not (len(inputs) > 2 and inputs[2] is not None and inputs[2].const is not None and inputs[2].const.any()):
            scope[proto.output[0]] = inputs[0]
            if len(proto.output) < 2 or not proto.output[1]:
                return
        node = g.Node(op, inputs, [], attrs, proto.name, proto)
        node.opset = self.opset.get(proto.domain, 1)
        results = self._fold(node, proto)
        if results is None:
            if op not in self.supported or proto.domain not in ("", "ai.onnx", "com.microsoft"):
                self.missing.append(f"  {op}, at {where}")
                return
            results = self._infer(node, proto, where)
            if results is None:
                return
        for name, value in zip(proto.output, results):
            if name:
                scope[name] = value

    def _cast_type(self, attrs):
        return np.dtype(helper.tensor_dtype_to_np_dtype(attrs["to"]))

    def _constant(self, proto, attrs, scope):
        (kind, given), = attrs.items()
        if kind == "value":
            values = g.array(given)
        elif kind in ("value_float", "value_floats"):
            values = np.array(given, np.float32)
        elif kind in ("value_int", "value_ints"):
            values = np.array(given, np.int64)
        else:
            self.missing.append(f'  Constant with {kind}, at "{proto.name or proto.output[0]}"')
            return
        scope[proto.output[0]] = g.Value(proto.output[0], values.dtype, values.shape, values)

    def _sequence(self, op, proto, attrs, inputs, scope):
        """Sequences whose members are known by their places: lists of Values while the model is read."""
        def node(op, operands, outputs, **attributes):
            names_of = []
            for i, x in enumerate(operands):
                names_of.append(f"{proto.output[0]}/{op}/{i}")
                scope[names_of[-1]] = x
            self._node(helper.make_node(op, names_of, outputs, name=proto.name, **attributes), scope)
            return [scope.get(name) for name in outputs]

        out = proto.output[0]
        if op in ("SequenceConstruct", "SequenceEmpty"):
            scope[out] = inputs
        elif op == "SequenceLength":
            scope[out] = g.Value(out, np.dtype(np.int64), (), np.array(len(inputs[0]), np.int64))
        elif op == "SequenceAt":
            if inputs[1].const is None:
                raise g.Refused("SequenceAt a place that is computed")
            scope[out] = inputs[0][int(inputs[1].const.reshape(-1)[0])]
        elif op == "ConcatFromSequence":
            parts, axis = list(inputs[0]), attrs["axis"]
            if attrs.get("new_axis", 0):
                where = g.Value("axes", np.dtype(np.int64), (1,), np.array([axis], np.int64))
                parts = [node("Unsqueeze", [x, where], [f"{out}/part/{i}"])[0] for i, x in enumerate(parts)]
            node("Concat", parts, [out], axis=axis)
        else:
            x, split, axis = inputs[0], inputs[1] if len(inputs) > 1 else None, attrs.get("axis", 0)
            extent = x.shape[axis]
            if not isinstance(extent, int) or (split is not None and split.const is None):
                raise g.Refused("SplitToSequence of an axis or into parts that are not known")
            parts = [1] * extent if split is None else [int(v) for v in split.const.reshape(-1)]
            if split is not None and split.rank == 0:
                parts = [min(parts[0], extent - begin) for begin in range(0, extent, parts[0])]
            if len(parts) > MOST_PARTS:
                raise g.Refused(f"SplitToSequence into {len(parts)} parts")
            sizes_of = g.Value("split", np.dtype(np.int64), (len(parts),), np.array(parts, np.int64))
            found = node("Split", [x, sizes_of], [f"{out}/{i}" for i in range(len(parts))], axis=axis)
            if split is None and not attrs.get("keepdims", 1):
                where = g.Value("axes", np.dtype(np.int64), (1,), np.array([axis], np.int64))
                found = [node("Squeeze", [y, where], [f"{out}/{i}/row"])[0] for i, y in enumerate(found)]
            if any(y is None for y in found):
                return  # why is listed
            scope[out] = found

    def _if(self, proto, attrs, inputs, scope, where):
        condition = inputs[0].known
        if condition is None or isinstance(condition.reshape(-1)[0], sizes.Size):
            self.missing.append(f"  If on a condition that depends on the input, at {where}")
            return
        branch = attrs["then_branch" if condition.reshape(-1)[0] else "else_branch"]
        inner = dict(scope)
        self._run(branch, inner)
        for name, out in zip(proto.output, branch.output):
            if name and out.name in inner:
                scope[name] = inner[out.name]

    def _fold(self, node, proto):
        """The results as constants or sizes, where they are known; else None."""
        if node.op in RANDOM or any(a for a in node.attrs.values() if isinstance(a, onnx.GraphProto)):
            return None
        if node.op == "Shape":
            shape = node.inputs[0].shape
            begin, end = node.attr("start", 0), node.attr("end", len(shape))
            return [self._known(proto.output[0], known.array(shape[begin:end]), np.dtype(np.int64))]
        if node.op == "Size":
            return [self._known(proto.output[0], known.array(known.product(node.inputs[0].shape)), np.dtype(np.int64))]
        if not node.inputs and node.op not in ("EyeLike",):
            return None
        if any(x is not None and (x.known is None or x.is_trained) for x in node.inputs):
            return None
        if node.op == "Gather" and node.inputs[0].is_parameter and node.inputs[0].rank == 2 and node.inputs[0].dtype in g.FLOATS:
            return None  # rows of an embedding, which stays whole
        if any(x is not None and x.sizes is not None for x in node.inputs):
            result = known.compute(node)
            return None if result is None else [self._known(proto.output[0], *result)]
        return self._constant_results(node, proto)

    def _count(self, node):
        """The elements of what a node of known operands gives, 0 where no rule says."""
        if node.op == "Range":
            begin, end, step = (x.const.reshape(-1)[0].item() for x in node.inputs)
            return max(0, (end - begin) / step)
        rule = SHAPES.get(node.op)
        try:
            return sum(known.product([int(e) for e in shape]) for _, shape in rule(node)) if rule else 0
        except g.Refused:
            return 0

    def _constant_results(self, node, proto):
        total = self._count(node)
        if total > LARGEST_CONSTANT:
            raise g.Refused(f"{self.path}: {g.named(node)} would make a constant of {total} elements")
        single = helper.make_node(node.op, [f"x{i}" if x is not None else "" for i, x in enumerate(node.inputs)],
                                  list(proto.output), domain=proto.domain)
        single.attribute.extend(a for a in proto.attribute if a.name in node.attrs)
        feeds = {f"x{i}": x.const for i, x in enumerate(node.inputs) if x is not None}
        infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in feeds.items()]
        wanted = [n for n in proto.output if n]
        outs = [helper.make_tensor_value_info(n, 0, None) for n in wanted]
        for version in (max(self.opset.get("", 13), 13), 21):  # the reference has some ops from a later version on
            model = helper.make_model(helper.make_graph([single], "one", infos, outs),
                                      opset_imports=[helper.make_opsetid("", version)], ir_version=self.ir_version)
            try:
                with np.errstate(all="ignore"):
                    found = dict(zip(wanted, ReferenceEvaluator(model).run(None, feeds)))
                break
            except Exception:
                continue
        else:
            return None
        out = []
        for name in proto.output:
            values = np.asarray(found[name]) if name else None
            parameter = node.op in OF_PARAMETERS and any(x is not None and x.is_parameter and x.dtype in g.FLOATS for x in node.inputs)
            out.append(g.Value(name, values.dtype, values.shape, values, is_parameter=parameter) if name else None)
        return out

    def _known(self, name, values, dtype):
        if any(isinstance(v, sizes.Size) for v in values.reshape(-1)):
            return g.Value(name, dtype, values.shape, None, values)
        numbers = values.astype(dtype)
        return g.Value(name, dtype, numbers.shape, numbers)

    def _infer(self, node, proto, where):
        key = (node.op, tuple(id(x) for x in node.inputs), repr(sorted(node.attrs.items())), len(proto.output))
        if node.op not in RANDOM and key in self.seen:
            return self.seen[key]
        node.place = len(self.nodes)
        try:
            rule = SHAPES.get(node.op)
            found = rule(node) if rule else None
            if found is None:
                found = self._by_onnx(node, proto)
            elif len(found) < len(proto.output):
                found += self._by_onnx(node, proto)[len(found):]
        except g.Refused as e:
            self.missing.append(f"  {e}, at {where}")
            return None
        except g.MISFIT as e:
            self.missing.append(f"  {node.op} of operands that do not fit ({e}), at {where}")
            return None
        results = []
        for i, (name, (dtype, shape)) in enumerate(zip(proto.output, found)):
            if np.dtype(dtype) not in g.ELEMENTS:
                self.missing.append(f"  {node.op} with a result of element type {np.dtype(dtype)}, at {where}")
                return None
            value = g.Value(name, np.dtype(dtype), None, maker=node)
            value.ident = f"{len(self.idents)}"
            self.idents[value.ident] = names.readable(name, node.op)
            value.is_made = False
            extents = []
            for axis, extent in enumerate(shape):
                if extent is None:
                    value.is_made = True
                    extent = sizes.name(f"@{value.ident}@.size({axis})", node.place)
                extents.append(extent)
            value.shape = tuple(extents)
            results.append(value)
        node.outputs = results
        self.nodes.append(node)
        self.seen[key] = results
        return results

    def _by_onnx(self, node, proto):
        """Element type and number of axes by the shape inference of ONNX; None for each extent it does not know."""
        feeds, infos, constants = [], [], []
        for i, x in enumerate(node.inputs):
            feeds.append("" if x is None else f"x{i}")
            if x is None:
                continue
            shape = [s if isinstance(s, int) else f"s{i}_{k}" for k, s in enumerate(x.shape)]
            kind = helper.np_dtype_to_tensor_dtype(x.dtype)
            infos.append(helper.make_tensor_value_info(f"x{i}", kind, shape))
            if x.const is not None and x.const.size < 1000:
                constants.append(onnx.numpy_helper.from_array(np.asarray(x.const), f"x{i}"))
        single = helper.make_node(node.op, feeds, [f"y{i}" for i in range(len(proto.output))], domain=proto.domain)
        single.attribute.extend(a for a in proto.attribute if a.name in node.attrs)
        model = helper.make_model(helper.make_graph([single], "one", infos, [], constants),
                                  opset_imports=[helper.make_opsetid("", max(self.opset.get("", 13), 13))])
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
        found = {v.name: v.type.tensor_type for v in inferred.graph.value_info}
        out = []
        for i in range(len(proto.output)):
            kind = found.get(f"y{i}")
            if kind is None or not kind.HasField("shape"):
                raise g.Refused(f"{node.op} of whose result the number of axes is not known")
            out.append((helper.tensor_dtype_to_np_dtype(kind.elem_type),
                        [d.dim_value if d.HasField("dim_value") else None for d in kind.shape.dim]))
        return out

    def _drop_dead(self):
        live, kept = {id(v) for _, v in self.outputs}, []
        for node in reversed(self.nodes):
            if any(id(v) in live for v in node.outputs):
                live.update(id(x) for x in node.inputs if x is not None)
                kept.append(node)
        self.nodes = kept[::-1]
        for node in self.nodes:
            for x in node.inputs:
                if x is not None:
                    x.users.append(node)
        # A size that is read off a value needs it as a variable of the code.
