"""Element type and shape of what an op gives: functions of a node, which return [(element type, shape), ...].

An op that is not here gets both from ONNX's own inference, which knows the number of axes; extents it does not know are
read off the value where the program runs.
"""
import numpy as np
from onnx import helper

from . import known, sizes
from .graph import Refused

SHAPES = {}
FAR = 10 ** 9  # exporters write such a number for the end of an axis


def shape(*ops):
    def add(f):
        SHAPES.update({op: f for op in ops})
        return f
    return add


def axis_of(axis, rank):
    return axis + rank if axis < 0 else axis


def broadcast(*shapes):
    rank = max(len(s) for s in shapes)
    out = []
    for i in range(rank):
        extents = [s[i - rank + len(s)] for s in shapes if i - rank + len(s) >= 0]
        extents = [e for e in extents if e != 1] or [1]
        numbers = [e for e in extents if isinstance(e, int)]
        out.append(numbers[0] if numbers else extents[0])
        if len(set(numbers)) > 1:
            raise Refused(f"shapes {shapes} that do not broadcast")
    return tuple(out)


@shape("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Celu", "Clip", "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor",
       "Gelu", "HardSigmoid", "HardSwish", "Hardmax", "LeakyRelu", "Log", "LogSoftmax", "Mish", "Neg", "Not", "PRelu", "Reciprocal",
       "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softmax", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh",
       "ThresholdedRelu", "Trilu", "CumSum", "InstanceNormalization", "GroupNormalization", "LpNormalization", "LRN",
       "MeanVarianceNormalization", "ReverseSequence", "ScatterElements", "ScatterND", "BitwiseNot", "Identity", "FastGelu", "QuickGelu",
       "Swish")
def as_first(n):
    return [(n.inputs[0].dtype, n.inputs[0].shape)]


@shape("BatchNormalization", "LayerNormalization", "RMSNormalization", "Dropout")
def as_first_of_some(n):
    return [(n.inputs[0].dtype, n.inputs[0].shape)] * max(1, len(n.proto.output))


@shape("IsNaN", "IsInf")
def mask(n):
    return [(np.bool_, n.inputs[0].shape)]


@shape("Add", "Sub", "Mul", "Div", "Pow", "Mod", "Max", "Min", "Mean", "Sum", "And", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor",
       "BitShift")
def elementwise(n):
    return [(n.inputs[0].dtype, broadcast(*[x.shape for x in n.inputs]))]


@shape("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual")
def comparison(n):
    return [(np.bool_, broadcast(*[x.shape for x in n.inputs]))]


@shape("Where")
def where(n):
    return [(n.inputs[1].dtype, broadcast(*[x.shape for x in n.inputs]))]


@shape("Cast")
def cast(n):
    return [(helper.tensor_dtype_to_np_dtype(n.attr("to")), n.inputs[0].shape)]


@shape("Transpose")
def transpose(n):
    x = n.inputs[0]
    order = n.attr("perm") or list(range(x.rank))[::-1]
    return [(x.dtype, [x.shape[a] for a in order])]


@shape("Reshape")
def reshape(n):
    x, to = n.inputs[0], n.inputs[1].known
    if to is None:
        raise Refused("Reshape to a shape that is computed from elements of tensors")
    out = [x.shape[i] if v == 0 and not n.attr("allowzero", 0) else v for i, v in enumerate(to)]
    out = [v if isinstance(v, sizes.Size) else int(v) for v in out]
    if -1 in out:
        rest = known.product([v for v in out if not (isinstance(v, int) and v == -1)])
        out[out.index(-1)] = sizes.div(known.product(x.shape), rest)
    return [(x.dtype, out)]


@shape("Flatten")
def flatten(n):
    x, axis = n.inputs[0], axis_of(n.attr("axis", 1), n.inputs[0].rank)
    return [(x.dtype, [known.product(x.shape[:axis]), known.product(x.shape[axis:])])]


@shape("Squeeze")
def squeeze(n):
    x = n.inputs[0]
    axes = known.ints(n.input(1), [i for i, e in enumerate(x.shape) if isinstance(e, int) and e == 1])
    axes = {axis_of(a, x.rank) for a in axes}
    return [(x.dtype, [e for i, e in enumerate(x.shape) if i not in axes])]


@shape("Unsqueeze")
def unsqueeze(n):
    x = n.inputs[0]
    axes = known.ints(n.inputs[1])
    out = list(x.shape)
    for a in sorted(axis_of(a, x.rank + len(axes)) for a in axes):
        out.insert(a, 1)
    return [(x.dtype, out)]


@shape("Concat")
def concat(n):
    axis = axis_of(n.attr("axis"), n.inputs[0].rank)
    out = list(n.inputs[0].shape)
    for x in n.inputs[1:]:
        out[axis] = sizes.add(out[axis], x.shape[axis])
        for i, e in enumerate(x.shape):
            if i != axis and isinstance(e, int):
                out[i] = e
    return [(n.inputs[0].dtype, out)]


@shape("Gather")
def gather(n):
    x, i = n.inputs
    axis = axis_of(n.attr("axis", 0), x.rank)
    return [(x.dtype, x.shape[:axis] + i.shape + x.shape[axis + 1:])]


@shape("GatherElements")
def gather_elements(n):
    return [(n.inputs[0].dtype, n.inputs[1].shape)]


def bounds(n):
    """Slice: for each cut axis its begin, end and step, with 0 <= begin and end <= extent where they are numbers."""
    x = n.inputs[0]
    begins, ends = n.inputs[1].known, n.inputs[2].known
    axes = known.ints(n.input(3), list(range(len(begins)))) if begins is not None else None
    steps = known.ints(n.input(4), [1] * len(begins)) if begins is not None else None
    if begins is None or ends is None:
        raise Refused("Slice between bounds that are computed from elements of tensors")
    out = {}
    for begin, end, axis, step in zip(begins, ends, axes, steps):
        axis = axis_of(axis, x.rank)
        extent = x.shape[axis]
        out[axis] = (_bound(begin, extent, step, True), _bound(end, extent, step, False), step)
    return out


def _bound(at, extent, step, is_begin):
    if not isinstance(at, sizes.Size):
        at = int(at)
        if at >= FAR:
            return sizes.add(extent, -1) if step < 0 else extent
        if at <= -FAR or (step < 0 and not is_begin and isinstance(extent, int) and at < -extent):
            return -1 if step < 0 else 0
    if isinstance(at, int) and at < 0 or sizes.is_less(at, 0):
        at = sizes.larger(sizes.add(at, extent), 0)
    return sizes.smaller(at, sizes.add(extent, -1) if step < 0 and is_begin else extent)


@shape("Slice")
def slice_(n):
    out = list(n.inputs[0].shape)
    for axis, (begin, end, step) in bounds(n).items():
        length = sizes.add(end, sizes.mul(begin, -1)) if step > 0 else sizes.add(begin, sizes.mul(end, -1))
        out[axis] = sizes.larger(sizes.div(sizes.add(length, abs(step) - 1), abs(step)), 0)
    return [(n.inputs[0].dtype, out)]


@shape("Split")
def split(n):
    x = n.inputs[0]
    axis = axis_of(n.attr("axis", 0), x.rank)
    count = len(n.proto.output)
    if n.input(1) is not None:
        parts = [p if isinstance(p, sizes.Size) else int(p) for p in n.inputs[1].known]
    else:
        part = sizes.div(sizes.add(x.shape[axis], count - 1), count)
        parts = [part] * (count - 1) + [sizes.add(x.shape[axis], sizes.mul(part, 1 - count))]
    return [(x.dtype, x.shape[:axis] + (p,) + x.shape[axis + 1:]) for p in parts]


@shape("Expand")
def expand(n):
    if n.inputs[1].known is None:
        raise Refused("Expand to a shape that is computed from elements of tensors")
    to = tuple(v if isinstance(v, sizes.Size) else int(v) for v in n.inputs[1].known)
    return [(n.inputs[0].dtype, broadcast(n.inputs[0].shape, to))]


@shape("Tile")
def tile(n):
    return [(n.inputs[0].dtype, [sizes.mul(e, r if isinstance(r, sizes.Size) else int(r)) for e, r in zip(n.inputs[0].shape, n.inputs[1].known)])]


@shape("ConstantOfShape")
def constant_of_shape(n):
    if n.inputs[0].known is None:
        raise Refused("ConstantOfShape of a shape that is computed from elements of tensors")
    value = n.attr("value")
    dtype = helper.tensor_dtype_to_np_dtype(value.data_type) if value is not None else np.float32
    return [(dtype, list(n.inputs[0].known))]


@shape("Range")
def range_(n):
    a, b, step = (x.known for x in n.inputs)
    if a is None or b is None or step is None or n.inputs[0].dtype.kind != "i":
        raise Refused("Range between bounds that are computed from elements of tensors")
    a, b, step = (x.reshape(-1)[0] for x in (a, b, step))
    step = int(step)
    length = sizes.add(b, sizes.mul(a, -1)) if step > 0 else sizes.add(a, sizes.mul(b, -1))
    return [(n.inputs[0].dtype, [sizes.div(sizes.add(length, abs(step) - 1), abs(step))])]


@shape("Pad")
def pad(n):
    x = n.inputs[0]
    pads = n.inputs[1].known
    axes = known.ints(n.input(3), list(range(x.rank)))
    out = list(x.shape)
    for i, a in enumerate(axes):
        out[a] = sizes.add(out[a], sizes.add(_int(pads[i]), _int(pads[i + len(axes)])))
    return [(x.dtype, out)]


def _int(v):
    return v if isinstance(v, sizes.Size) else int(v)


@shape("MatMul")
def matmul(n):
    a, b = n.inputs
    x, y = a.shape, b.shape
    if len(x) == 1:
        x = (1,) + x
    if len(y) == 1:
        y = y + (1,)
    out = broadcast(x[:-2], y[:-2]) + (x[-2], y[-1])
    out = list(out)
    if a.rank == 1:
        del out[-2]
    if b.rank == 1:
        del out[-1]
    return [(a.dtype, out)]


@shape("Gemm")
def gemm(n):
    a, b = n.inputs[:2]
    return [(a.dtype, [a.shape[1 if n.attr("transA", 0) else 0], b.shape[0 if n.attr("transB", 0) else 1]])]


def windows(n, kernel):
    """The places of a window along each axis behind the second; see explicit_pads for auto_pad."""
    x = n.inputs[0]
    pads = explicit_pads(n, kernel)
    k = len(kernel)
    out = []
    for i in range(k):
        d, s = n.attr("dilations", [1] * k)[i], n.attr("strides", [1] * k)[i]
        free = sizes.add(x.shape[2 + i], pads[i] + pads[k + i] - d * (kernel[i] - 1) - 1)
        whole = sizes.div(sizes.add(free, s - 1) if n.attr("ceil_mode", 0) else free, s)
        if n.attr("ceil_mode", 0) and isinstance(whole, int) and whole * s >= x.shape[2 + i] + pads[i]:
            whole -= 1
        out.append(sizes.add(whole, 1))
    return out


def explicit_pads(n, kernel):
    """pads (begin of each axis, then end of each), also where auto_pad says them. Errors: Refused where they depend on the input."""
    k = len(kernel)
    auto = n.attr("auto_pad", "NOTSET")
    if auto in ("NOTSET", ""):
        return n.attr("pads", [0] * 2 * k)
    if auto == "VALID":
        return [0] * 2 * k
    begin, end = [], []
    for i in range(k):
        d, s, extent = n.attr("dilations", [1] * k)[i], n.attr("strides", [1] * k)[i], n.inputs[0].shape[2 + i]
        if s != 1 and not isinstance(extent, int):
            raise Refused(f"{n.op} with auto_pad {auto} and a stride, of an input whose size is not known")
        need = d * (kernel[i] - 1) if s == 1 else max((-(-extent // s) - 1) * s + d * (kernel[i] - 1) + 1 - extent, 0)
        begin.append(need // 2 if auto == "SAME_UPPER" else need - need // 2)
        end.append(need - begin[-1])
    return begin + end


@shape("Conv")
def conv(n):
    x, w = n.inputs[:2]
    if not all(isinstance(e, int) for e in w.shape):
        raise Refused("Conv whose kernel has no known size")
    return [(x.dtype, [x.shape[0], w.shape[0]] + windows(n, w.shape[2:]))]


@shape("ConvTranspose")
def conv_transpose(n):
    x, w = n.inputs[:2]
    k = w.rank - 2
    kernel = w.shape[2:]
    if n.attr("auto_pad", "NOTSET") not in ("NOTSET", "VALID") or n.attr("output_shape"):
        raise Refused("ConvTranspose with auto_pad or output_shape")
    pads, out = n.attr("pads", [0] * 2 * k), []
    for i in range(k):
        d, s = n.attr("dilations", [1] * k)[i], n.attr("strides", [1] * k)[i]
        extra = n.attr("output_padding", [0] * k)[i]
        out.append(sizes.add(sizes.mul(sizes.add(x.shape[2 + i], -1), s), d * (kernel[i] - 1) + 1 + extra - pads[i] - pads[k + i]))
    return [(x.dtype, [x.shape[0], w.shape[1] * n.attr("group", 1)] + out)]


@shape("MaxPool", "AveragePool", "LpPool")
def pool(n):
    x = n.inputs[0]
    out = (x.dtype, list(x.shape[:2]) + windows(n, n.attr("kernel_shape")))
    return [out] + [(np.int64, out[1])] * (len(n.proto.output) - 1)


@shape("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(n):
    x = n.inputs[0]
    return [(x.dtype, list(x.shape[:2]) + [1] * (x.rank - 2))]


def reduced_axes(n):
    x, axes = n.inputs[0], known.ints(n.input(1))
    if not axes:
        return [] if n.attr("noop_with_empty_axes", 0) else list(range(x.rank))
    return sorted(axis_of(a, x.rank) for a in axes)


@shape("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
       "ReduceSumSquare")
def reduction(n):
    x, axes = n.inputs[0], reduced_axes(n)
    keep = n.attr("keepdims", 1)
    return [(x.dtype, [1 if i in axes else e for i, e in enumerate(x.shape) if keep or i not in axes])]


@shape("ArgMax", "ArgMin")
def arg(n):
    x = n.inputs[0]
    axis = axis_of(n.attr("axis", 0), x.rank)
    keep = n.attr("keepdims", 1)
    return [(np.int64, [1 if i == axis else e for i, e in enumerate(x.shape) if keep or i != axis])]


@shape("Resize", "Upsample")
def resize(n):
    x = n.inputs[0]
    given = n.input(3).known if n.input(3) is not None else None
    if given is not None and len(given) == x.rank:
        return [(x.dtype, [_int(v) for v in given])]
    scales = n.inputs[1 if n.op == "Upsample" else 2]
    if scales is None or scales.const is None or n.attr("axes") or len(scales.const) != x.rank:
        raise Refused(f"{n.op} by factors that are computed from elements of tensors, or along given axes")
    out = []
    for e, f in zip(x.shape, scales.const):
        if float(f) == int(f):
            out.append(sizes.mul(e, int(f)))
        elif isinstance(e, int):
            out.append(int(np.floor(e * np.float64(f))))
        elif 1 / float(f) == int(1 / float(f)):
            out.append(sizes.div(e, int(1 / float(f))))
        else:
            out.append(None)
    return [(x.dtype, out)]


@shape("LSTM", "GRU", "RNN")
def recurrent(n):
    x, w, r = n.inputs[:3]
    t, b, directions, hidden = x.shape[0], x.shape[1], w.shape[0], r.shape[2]
    state = (x.dtype, [directions, b, hidden])
    return [(x.dtype, [t, directions, b, hidden]), state, state][:len(n.proto.output)]


@shape("Einsum")
def einsum(n):
    equation = n.attr("equation").replace(" ", "")
    if "." in equation:
        return None
    operands, _, out = equation.partition("->")
    extents = {}
    for letters, x in zip(operands.split(","), n.inputs):
        extents.update(zip(letters, x.shape))
    if "->" not in equation:
        out = "".join(c for c in sorted(extents) if operands.count(c) == 1)
    return [(n.inputs[0].dtype, [extents[c] for c in out])]
