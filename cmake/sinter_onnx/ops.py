"""The code of each op: a row of the table OPS is a function of the writer and a node, which sets the code of what the node gives."""
import numpy as np
from . import known, sizes
from .graph import ELEMENTS, Refused
from .shapes import axis_of, bounds, reduced_axes
from .writer import ATOM, PRODUCT, RELATION, SUM, UNARY, Code, listed, number, op, path_of, tensor

OPS = {}


def row(*ops):
    def add(f):
        OPS.update({o: f for o in ops})
        return f
    return add


def formula(name, *ops, arguments=lambda n: ""):
    """Rows for functions of one operand."""
    def write(w, n):
        w.set(n.outputs[0], Code(f"{name}({w.expr(n.inputs[0])}{arguments(n)})"))
    OPS.update({o: write for o in ops})


for onnx_name in ("Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Erf Exp Floor Log Mish Reciprocal Relu Round Sigmoid Sign Sin Sinh "
                  "Softplus Softsign Sqrt Tan Tanh IsNaN").split():
    formula(onnx_name.lower(), onnx_name)
formula("hardswish", "HardSwish")
formula("silu", "Silu")
formula("gelu", "PlainGelu")
formula("gelu_tanh", "FastGelu", "TanhGelu")
formula("elu", "Elu", arguments=lambda n: f", {number(np.float32(n.attr('alpha', 1.0)))}")
formula("celu", "Celu", arguments=lambda n: f", {number(np.float32(n.attr('alpha', 1.0)))}")
formula("leaky_relu", "LeakyRelu", arguments=lambda n: f", {number(np.float32(n.attr('alpha', 0.01)))}")
formula("hardsigmoid", "HardSigmoid", arguments=lambda n: f", {number(np.float32(n.attr('alpha', 0.2)))}, {number(np.float32(n.attr('beta', 0.5)))}")
formula("shrink", "Shrink", arguments=lambda n: f", {number(np.float32(n.attr('lambd', 0.5)))}, {number(np.float32(n.attr('bias', 0.0)))}")
formula("selu", "Selu", arguments=lambda n: "" if "alpha" not in n.attrs and "gamma" not in n.attrs else
        f", {number(np.float32(n.attr('alpha', 1.67326319217681884765625)))}, {number(np.float32(n.attr('gamma', 1.05070102214813232421875)))}")


def rank_for_literals(w, n):
    w.rank = n.outputs[0].rank


def infix(sign, strength, *ops):
    def write(w, n):
        rank_for_literals(w, n)
        a, b = n.inputs
        right = strength + 1 if sign in "-/%" or strength == RELATION else strength
        w.set(n.outputs[0], Code(f"{w.expr(a, strength if strength else SUM)} {sign} {w.expr(b, right if strength else SUM)}", strength=strength))
    OPS.update({o: write for o in ops})


infix("+", SUM, "Add")
infix("-", SUM, "Sub")
infix("*", PRODUCT, "Mul")
infix("==", RELATION, "Equal")
infix("<", RELATION, "Less")
infix(">", RELATION, "Greater")
infix("<=", RELATION, "LessOrEqual")
infix(">=", RELATION, "GreaterOrEqual")


def call(name, *ops):
    """Rows for functions of several operands."""
    def write(w, n):
        rank_for_literals(w, n)
        w.set(n.outputs[0], Code(f"{name}({', '.join(w.expr(x) for x in n.inputs)})"))
    OPS.update({o: write for o in ops})


call("logical_and", "And")
call("logical_or", "Or")
call("logical_xor", "Xor")
formula("logical_not", "Not")


@row("Where")
def where(w, n):
    rank_for_literals(w, n)
    sides = [w.expr(x) for x in n.inputs[1:]]
    if all(w.scalar(x) is not None for x in n.inputs[1:]):  # two literals: C++ would take their types
        sides = [f"{ELEMENTS[n.outputs[0].dtype]}({text})" for text in sides]
    w.set(n.outputs[0], Code(f"where({w.expr(n.inputs[0])}, {', '.join(sides)})"))


@row("Div")
def div(w, n):
    rank_for_literals(w, n)
    a, b = n.inputs
    # Integers: C++ and ONNX cut towards 0.
    w.set(n.outputs[0], Code(f"{w.expr(a, PRODUCT)} / {w.expr(b, UNARY)}", strength=PRODUCT))


@row("Neg")
def neg(w, n):
    w.set(n.outputs[0], Code(f"-{w.expr(n.inputs[0], UNARY)}", strength=UNARY))


@row("Pow")
def power(w, n):
    rank_for_literals(w, n)
    a, b = n.inputs
    e = w.scalar(b)
    if e is not None and not isinstance(e, sizes.Size):
        if e == 2:
            w.set(n.outputs[0], Code(f"square({w.expr(a)})"))
        elif e == 0.5:
            w.set(n.outputs[0], Code(f"sqrt({w.expr(a)})"))
        else:
            w.set(n.outputs[0], Code(f"pow({w.expr(a)}, {number(e)})"))
        return
    exponent = w.expr(b) if a.dtype == b.dtype else f"cast<{ELEMENTS[a.dtype]}>({w.expr(b)})"
    w.set(n.outputs[0], Code(f"pow({w.expr(a)}, {exponent})"))


@row("Mod")
def modulo(w, n):
    rank_for_literals(w, n)
    a, b = n.inputs
    name = "fmod" if n.attr("fmod", 0) else "remainder"
    w.set(n.outputs[0], Code(f"{name}({w.expr(a)}, {w.expr(b)})"))


def folded(name, sign=None):
    def write(w, n):
        rank_for_literals(w, n)
        text = w.expr(n.inputs[0], SUM)
        for x in n.inputs[1:]:
            text = f"{text} + {w.expr(x, SUM)}" if sign else f"{name}({text}, {w.expr(x)})"
        w.set(n.outputs[0], Code(text, strength=SUM if sign else ATOM))
    return write


OPS["Max"] = folded("maximum")
OPS["Min"] = folded("minimum")
OPS["Sum"] = folded("add", "+")


@row("Clip")
def clip(w, n):
    low, high = w.scalar(n.input(1)), w.scalar(n.input(2))
    if (n.input(1) is not None and low is None) or (n.input(2) is not None and high is None):
        text = w.expr(n.inputs[0])
        for name, limit in (("maximum", n.input(1)), ("minimum", n.input(2))):
            text = f"{name}({text}, {w.expr(limit)})" if limit is not None else text
        return w.set(n.outputs[0], Code(text))
    w.rank = n.outputs[0].rank
    x = w.expr(n.inputs[0])
    if low is not None and high is not None:
        w.set(n.outputs[0], Code(f"clamp({x}, {number(low)}, {number(high)})"))
    elif low is not None:
        w.set(n.outputs[0], Code(f"clamp_min({x}, {number(low)})"))
    elif high is not None:
        w.set(n.outputs[0], Code(f"clamp_max({x}, {number(high)})"))
    else:
        w.set(n.outputs[0], Code(x))


@row("ThresholdedRelu")
def thresholded_relu(w, n):
    x = w.made(n.inputs[0])
    w.set(n.outputs[0], Code(f"where({x} > {number(np.float32(n.attr('alpha', 1.0)))}, {x}, 0)"))


@row("IsInf")
def is_inf(w, n):
    kinds = (n.attr("detect_negative", 1), n.attr("detect_positive", 1))
    name = {(1, 1): "isinf", (1, 0): "isneginf", (0, 1): "isposinf"}.get(kinds)
    if name is None:
        raise Refused("IsInf of no sign")
    w.set(n.outputs[0], Code(f"{name}({w.expr(n.inputs[0])})"))


@row("Gelu")
def gelu(w, n):
    name = "gelu_tanh" if n.attr("approximate", "none") == "tanh" else "gelu"
    w.set(n.outputs[0], Code(f"{name}({w.expr(n.inputs[0])})"))


@row("Dropout")
def dropout(w, n):
    """Of a model in training mode; the layer drops while it is trained."""
    if len(n.outputs) > 1 and (n.outputs[1].users or any(v is n.outputs[1] for _, v in w.builder.outputs)):
        raise Refused("Dropout with its mask as a result")
    p = w.scalar(n.input(1)) if n.input(1) is not None else np.float32(0.5)
    if p is None:
        raise Refused("Dropout with a probability that is computed")
    layer = w.layer(path_of(n), "nn::dropout<Kind>", f"{number(p)}, gen", {})
    w.set(n.outputs[0], op(f"{layer}({w.made(n.inputs[0])})"))


@row("PRelu")
def prelu(w, n):
    x, slope = n.inputs
    if slope.const is not None and (slope.const.size == 1 or slope.const.size == slope.const.shape[-slope.rank] and x.rank - slope.rank == 1):
        layer = w.layer(path_of(n, slope), "nn::prelu<float, D, Kind>", f"{slope.const.size}", {"weight": slope.const.reshape(-1)})
        return w.set(n.outputs[0], Code(f"{layer}({w.expr(x)})"))
    name = w.made(x)
    w.set(n.outputs[0], Code(f"where({name} > 0, {name}, {w.expr(slope, PRODUCT)} * {name})"))


@row("Cast")
def cast(w, n):
    to = n.outputs[0].dtype
    if to not in ELEMENTS:
        raise Refused(f"Cast to {to}")
    w.set(n.outputs[0], Code(f"cast<{ELEMENTS[to]}>({w.expr(n.inputs[0])})"))


# Shapes


def reshaped(w, n, shape):
    if tuple(shape) == tuple(n.inputs[0].shape):
        return w.set(n.outputs[0], tensor(w.made(n.inputs[0])))
    unknown = [i for i, e in enumerate(shape) if isinstance(e, sizes.Size)]
    items = [sizes.text(e) for e in shape]
    if len(unknown) == 1 and " " in items[unknown[0]]:
        items[unknown[0]] = "-1"
    w.set(n.outputs[0], tensor(f"{w.viewed(n.inputs[0])}.reshape({{{', '.join(items)}}})"))


@row("Reshape", "Flatten")
def reshape(w, n):
    shape = list(n.outputs[0].shape)
    x = n.inputs[0]
    if n.op == "Flatten" and n.attr("axis", 1) == 1 or (len(shape) == 2 and shape[0] == x.shape[0] and x.rank > 2):
        return w.set(n.outputs[0], tensor(f"{w.viewed(x)}.reshape({{{sizes.text(shape[0])}, -1}})"))
    reshaped(w, n, shape)


@row("Squeeze", "Unsqueeze")
def squeeze(w, n):
    reshape_by = n.outputs[0]
    x = w.viewed(n.inputs[0])
    if n.op == "Squeeze":
        axes = sorted((i for i in {axis_of(a, n.inputs[0].rank) for a in known.ints(n.input(1), [
            i for i, e in enumerate(n.inputs[0].shape) if isinstance(e, int) and e == 1])}), reverse=True)
        text = "".join(f".squeeze({a})" for a in axes)
    else:
        axes = sorted(axis_of(a, reshape_by.rank) for a in known.ints(n.inputs[1]))
        text = "".join(f".unsqueeze({a})" for a in axes)
    w.set(n.outputs[0], tensor(x + text))


@row("Transpose")
def transpose(w, n):
    order = n.attr("perm") or list(range(n.inputs[0].rank))[::-1]
    x = w.viewed(n.inputs[0])
    moved = [i for i, a in enumerate(order) if i != a]
    if not moved:
        return w.set(n.outputs[0], tensor(x))
    if len(moved) == 2:
        return w.set(n.outputs[0], tensor(f"{x}.transpose({moved[0]}, {moved[1]})"))
    w.set(n.outputs[0], tensor(f"{x}.permute({listed(order)})"))


@row("Concat")
def concat(w, n):
    axis = axis_of(n.attr("axis"), n.outputs[0].rank)
    parts = [w.made(x) for x in n.inputs if not any(isinstance(e, int) and e == 0 for e in x.shape)]
    w.set(n.outputs[0], tensor(parts[0] if len(parts) == 1 else f"concat({axis}, {', '.join(parts)})"))


@row("Slice")
def slice_(w, n):
    text = w.viewed(n.inputs[0])
    for axis, (begin, end, step) in bounds(n).items():
        extent = n.inputs[0].shape[axis]
        if step < 0:
            if (begin, end) != (sizes.add(extent, -1), -1):
                # The elements forwards, from the last one that is taken.
                count = n.outputs[0].shape[axis]
                first = sizes.add(begin, sizes.mul(sizes.add(count, -1), step))
                text += f".slice({axis}, {sizes.text(first)}, {sizes.text(sizes.add(begin, 1))}{f', {-step}' if step != -1 else ''})"
            elif step != -1:
                count = n.outputs[0].shape[axis]
                first = sizes.add(begin, sizes.mul(sizes.add(count, -1), step))
                text += f".slice({axis}, {sizes.text(first)}, {sizes.text(extent)}, {-step})"
            text += f".flip({axis})"
            continue
        if (begin, end, step) == (0, extent, 1):
            continue
        text += f".slice({axis}, {sizes.text(begin)}, {sizes.text(end)}{f', {step}' if step != 1 else ''})"
    w.set(n.outputs[0], tensor(text))


@row("Split")
def split(w, n):
    x = w.made(n.inputs[0])
    axis, begin = axis_of(n.attr("axis", 0), n.inputs[0].rank), 0
    for y in n.outputs:
        end = sizes.add(begin, y.shape[axis])
        if y.users or any(v is y for _, v in w.builder.outputs):
            w.set(y, tensor(f"{x}.slice({axis}, {sizes.text(begin)}, {sizes.text(end)})"))
        begin = end


@row("Expand")
def expand(w, n):
    if n.outputs[0].shape == n.inputs[0].shape:
        return w.set(n.outputs[0], tensor(w.viewed(n.inputs[0])))
    x = w.viewed(n.inputs[0])
    x += "".join(".unsqueeze(0)" for _ in range(n.outputs[0].rank - n.inputs[0].rank))
    w.set(n.outputs[0], tensor(f"{x}.broadcast_to({{{', '.join(sizes.text(e) for e in n.outputs[0].shape)}}})"))


@row("Tile")
def tile(w, n):
    w.set(n.outputs[0], tensor(f"tile({w.made(n.inputs[0])}, {listed(n.inputs[1].known)})"))


@row("ConstantOfShape")
def constant_of_shape(w, n):
    value = n.attr("value")
    from .graph import array
    fill = array(value).reshape(-1)[0] if value is not None else np.float32(0)
    w.set(n.outputs[0], tensor(f"sinter::full<{ELEMENTS[n.outputs[0].dtype]}, D>({listed(n.outputs[0].shape)}, {number(fill)})"))


@row("Range")
def range_(w, n):
    a, b, step = (x.known.reshape(-1)[0] for x in n.inputs)
    text = f"{sizes.text(b)}" if a == 0 and step == 1 else f"{sizes.text(a)}, {sizes.text(b)}" + ("" if step == 1 else f", {step}")
    w.set(n.outputs[0], tensor(f"sinter::arange<{ELEMENTS[n.outputs[0].dtype]}, D>({text})"))


@row("Pad")
def pad(w, n):
    x = n.inputs[0]
    pads = list(n.inputs[1].known)
    axes = [axis_of(a, x.rank) for a in known.ints(n.input(3), list(range(x.rank)))]
    begin, end = dict(zip(axes, pads)), dict(zip(axes, pads[len(axes):]))
    amounts, last = [], 0
    for i, axis in enumerate(reversed(range(x.rank))):
        pair = [begin.get(axis, 0), end.get(axis, 0)]
        amounts += pair
        if any(not (isinstance(v, (int, np.integer)) and v == 0) for v in pair):
            last = i + 1
    mode = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}.get(n.attr("mode", "constant"))
    if mode is None:
        raise Refused(f"Pad with mode {n.attr('mode')}")
    fill = w.scalar(n.input(2))
    if n.input(2) is not None and fill is None:
        raise Refused("Pad with a value that is computed")
    tail = "" if mode == "constant" and (fill is None or fill == 0) else f", pad_mode::{mode}"
    if mode == "constant" and tail:
        tail += f", {number(fill)}"
    w.set(n.outputs[0], op(f"pad({w.made(x)}, {listed(amounts[:2 * last])}{tail})"))


# Picking


@row("Gather")
def gather(w, n):
    x, at = n.inputs
    axis = axis_of(n.attr("axis", 0), x.rank)
    if at.known is not None and at.rank == 0:
        i = at.known.reshape(-1)[0]
        i = i if isinstance(i, sizes.Size) or i >= 0 else sizes.add(int(i), x.shape[axis])
        return w.set(n.outputs[0], tensor(f"{w.viewed(x)}.select({axis}, {sizes.text(i)})"))
    if axis == 0 and x.rank == 2 and x.const is not None and x.is_parameter and x.dtype == np.float32 and at.dtype.kind in "iu":
        rows, width = x.shape
        layer = w.layer(path_of(n, x), "nn::embedding<float, D, Kind>", f"{rows}, {width}, gen", {"weight": x.const})
        w.tables.append((x.const, layer))
        return w.set(n.outputs[0], op(f"{layer}({w.made(at)})"))
    if at.const is not None and at.rank == 1 and len(at.const) and (np.diff(at.const) == 1).all() and at.const[0] >= 0:
        return w.set(n.outputs[0], tensor(f"{w.made(x)}.slice({axis}, {at.const[0]}, {at.const[-1] + 1})"))
    where = w.made(at)
    if at.const is None or (at.const < 0).any():
        extent = sizes.text(x.shape[axis], 1)
        where = f"eval(sinter::where({where} < 0, {where} + {extent}, {where}))"
    if at.rank != 1:
        where += ".reshape({-1})"
    text = f"index_select({w.made(x)}, {axis}, {where})"
    if at.rank != 1:
        text += f".reshape({listed(n.outputs[0].shape)})"
    w.set(n.outputs[0], tensor(text))


def _not_negative(w, at, extent):
    name = w.made(at)
    if at.const is not None and (at.const >= 0).all():
        return name
    return f"eval(sinter::where({name} < 0, {name} + {sizes.text(extent, 1)}, {name}))"


@row("GatherElements")
def gather_elements(w, n):
    x, at = n.inputs
    axis = axis_of(n.attr("axis", 0), x.rank)
    w.set(n.outputs[0], tensor(f"gather({w.made(x)}, {axis}, {_not_negative(w, at, x.shape[axis])})"))


@row("ScatterElements")
def scatter_elements(w, n):
    x, at, src = n.inputs
    axis = axis_of(n.attr("axis", 0), x.rank)
    how = {"none": None, "add": "sum", "mul": "prod", "max": "max", "min": "min"}[n.attr("reduction", "none")]
    head = f"{w.made(x)}, {axis}, {_not_negative(w, at, x.shape[axis])}, {w.made(src)}"
    w.set(n.outputs[0], tensor(f"scatter({head})" if how is None else f"scatter_reduce({head}, reduction::{how})"))


@row("TopK")
def topk(w, n):
    k = n.inputs[1].known
    if k is None:
        raise Refused("TopK of as many as is computed")
    pair = w.local("best")
    w.statement(f"const auto {pair} = topk({w.made(n.inputs[0])}, {number(k.reshape(-1)[0])}, {n.attr('axis', -1)}"
                f"{'' if n.attr('largest', 1) else ', false'});")
    for y, part in zip(n.outputs, ("values", "indices")):
        w.set(y, tensor(f"{pair}.{part}"))


@row("ArgMax", "ArgMin")
def arg(w, n):
    axis = axis_of(n.attr("axis", 0), n.inputs[0].rank)
    rest = ", keepdim" if n.attr("keepdims", 1) else ""
    last = ", {.select_last = true}" if n.attr("select_last_index", 0) else ""
    w.set(n.outputs[0], op(f"{n.op.lower()}({w.expr(n.inputs[0])}, {axis}{rest}{last})"))


@row("NonZero")
def nonzero(w, n):
    w.set(n.outputs[0], tensor(f"nonzero({w.made(n.inputs[0])}).transpose(0, 1)"))


@row("CumSum")
def cumsum(w, n):
    axis = w.scalar(n.inputs[1])
    if axis is None:
        raise Refused("CumSum along an axis that is computed")
    options = [f".{o} = true" for o in ("exclusive", "reverse") if n.attr(o, 0)]
    tail = f", {{{', '.join(options)}}}" if options else ""
    text = f"cumsum({w.expr(n.inputs[0])}, {int(axis)}{tail})"
    if n.inputs[0].dtype == np.int32:  # sums of integers are int64
        text = f"cast<std::int32_t>({text})"
    w.set(n.outputs[0], op(text))


@row("Trilu")
def trilu(w, n):
    offset = w.scalar(n.input(1)) if n.input(1) is not None else 0
    name = "triu" if n.attr("upper", 1) else "tril"
    w.set(n.outputs[0], op(f"{name}({w.made(n.inputs[0])}, {number(offset)})"))


# Along axes


def reduction(name, *ops, before=None, after=None):
    def write(w, n):
        axes, x = reduced_axes(n), n.inputs[0]
        text = w.expr(x)
        if not axes:
            return w.set(n.outputs[0], Code(before.format(text) if before else text))
        text = before.format(text) if before else text
        keep = n.attr("keepdims", 1)
        if len(axes) == x.rank and not keep:
            text = f"{name}({text})"
        else:
            text = f"{name}({text}, {axes[0] if len(axes) == 1 else listed(axes)}{', keepdim' if keep else ''})"
        w.set(n.outputs[0], op(after.format(text) if after else text))
    OPS.update({o: write for o in ops})


reduction("sum", "ReduceSum")
reduction("mean", "ReduceMean")
reduction("max", "ReduceMax")
reduction("min", "ReduceMin")
reduction("prod", "ReduceProd")
reduction("sum", "ReduceL1", before="abs({})")
reduction("sum", "ReduceSumSquare", before="square({})")
reduction("norm", "ReduceL2")
reduction("sum", "ReduceLogSum", after="log({})")
reduction("logsumexp", "ReduceLogSumExp")


@row("Softmax", "LogSoftmax", "Hardmax")
def softmax(w, n):
    x = n.inputs[0]
    old = n.opset < 13
    axis = axis_of(n.attr("axis", 1 if old else -1), x.rank)
    name = {"Softmax": "softmax", "LogSoftmax": "log_softmax", "Hardmax": "hardmax"}[n.op]
    if old and axis != x.rank - 1 and any(e != 1 for e in x.shape[axis + 1:]):
        rows, row = known.product(x.shape[:axis]), known.product(x.shape[axis:])
        flat = f"{w.made(x)}.reshape({listed([rows, row])})"
        return w.set(n.outputs[0], tensor(f"eval({name}({flat}, 1)).reshape({listed(x.shape)})"))
    w.set(n.outputs[0], op(f"{name}({w.expr(x)}, {axis})"))
