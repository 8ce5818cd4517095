"""Rows of OPS for what fewer models have: sampling, coordinates, attention as one op, and formulas of several functions."""
import numpy as np
from onnx import helper

from . import known, sizes
from .graph import ELEMENTS, Refused
from .layers import is_weight
from .ops import OPS, rank_for_literals, row
from .shapes import axis_of, shape
from .writer import ATOM, PRODUCT, SUM, UNARY, Code, listed, number, op, tensor


@row("Mean")
def mean(w, n):
    rank_for_literals(w, n)
    total = " + ".join(w.expr(x, SUM) for x in n.inputs)
    w.set(n.outputs[0], Code(total if len(n.inputs) == 1 else f"({total}) / {len(n.inputs)}", strength=PRODUCT))


@row("Swish")
def swish(w, n):
    alpha = np.float32(n.attr("alpha", 1.0))
    if alpha == 1:
        return w.set(n.outputs[0], Code(f"silu({w.expr(n.inputs[0])})"))
    x = w.made(n.inputs[0])
    w.set(n.outputs[0], Code(f"{x} * sigmoid({number(alpha)} * {x})", strength=PRODUCT))


@row("QuickGelu")
def quick_gelu(w, n):
    x = w.made(n.inputs[0])
    w.set(n.outputs[0], Code(f"{x} * sigmoid({number(np.float32(n.attr('alpha', 1.702)))} * {x})", strength=PRODUCT))


@row("LpNormalization")
def lp_normalization(w, n):
    w.set(n.outputs[0], op(f"normalize({w.made(n.inputs[0])}, {n.attr('p', 2)}, {axis_of(n.attr('axis', -1), n.inputs[0].rank)})"))


@row("MeanVarianceNormalization")
def mean_variance_normalization(w, n):
    x = w.made(n.inputs[0])
    axes = listed(n.attr("axes", [0, 2, 3]))
    centred = w.local("centred")
    w.statement(f"const auto {centred} = eval({x} - mean({x}, {axes}, keepdim));")
    w.set(n.outputs[0], Code(f"{centred} / (sqrt(mean(square({centred}), {axes}, keepdim)) + 1e-9)", "op", PRODUCT))


@shape("EyeLike")
def eye_like_shape(n):
    to = n.attr("dtype")
    return [(helper.tensor_dtype_to_np_dtype(to) if to else n.inputs[0].dtype, n.inputs[0].shape)]


@row("EyeLike")
def eye_like(w, n):
    if n.attr("k", 0):
        raise Refused("EyeLike off the main diagonal")
    w.set(n.outputs[0], tensor(f"sinter::eye<{ELEMENTS[n.outputs[0].dtype]}, D>({', '.join(sizes.text(e) for e in n.inputs[0].shape)})"))


@shape("OneHot")
def one_hot_shape(n):
    depth = n.inputs[1].known
    if depth is None:
        raise Refused("OneHot of as many classes as is computed")
    out = list(n.inputs[0].shape)
    axis = axis_of(n.attr("axis", -1), len(out) + 1)
    out.insert(axis, depth.reshape(-1)[0] if isinstance(depth.reshape(-1)[0], sizes.Size) else int(depth.reshape(-1)[0]))
    return [(n.inputs[2].dtype, out)]


@row("OneHot")
def one_hot(w, n):
    classes, values = n.inputs[0], n.inputs[2].const
    if values is None:
        raise Refused("OneHot of values that are computed")
    axis, rank = axis_of(n.attr("axis", -1), n.outputs[0].rank), n.outputs[0].rank
    depth, element = n.outputs[0].shape[axis], ELEMENTS[n.outputs[0].dtype]
    places = f"sinter::arange<{ELEMENTS[classes.dtype]}, D>({sizes.text(depth)}).reshape({listed([-1 if i == axis else 1 for i in range(rank)])})"
    c = f"{w.made(classes)}.unsqueeze({axis})"
    is_one = f"{c} == {places}" if classes.dtype.kind == "u" else f"where({c} < 0, {c} + {sizes.text(depth, 1)}, {c}) == {places}"
    off, on = values.reshape(-1)
    text = f"cast<{element}>({is_one})" if (off, on) == (0, 1) else f"where({is_one}, {element}({number(on)}), {element}({number(off)}))"
    w.set(n.outputs[0], op(text))


def coordinates(w, at, batch_dims=0):
    """The coordinates (..., k) as a list of k index tensors, behind those of the axes that both tensors share."""
    name, last = w.made(at), at.rank - 1
    if not isinstance(at.shape[last], int):
        raise Refused("coordinates of an unknown number")
    columns = []
    for i in range(batch_dims):
        shape = listed([-1 if k == i else 1 for k in range(last)])
        columns.append(f"sinter::arange<std::int64_t, D>({sizes.text(at.shape[i])}).reshape({shape})")
    for i in range(at.shape[last]):
        column = w.local("column")
        w.statement(f"const auto {column} = cast<std::int64_t>({name}.select({last}, {i})).eval();" if at.dtype != np.int64 else
                    f"const auto {column} = {name}.select({last}, {i}).contiguous();")
        columns.append(column)
    return "{" + ", ".join(columns) + "}"


@shape("GatherND")
def gather_nd_shape(n):
    x, at = n.inputs
    if not isinstance(at.shape[-1], int):
        raise Refused("GatherND by coordinates of an unknown number")
    return [(x.dtype, at.shape[:-1] + x.shape[n.attr("batch_dims", 0) + at.shape[-1]:])]


@row("GatherND")
def gather_nd(w, n):
    x, at = n.inputs
    w.set(n.outputs[0], tensor(f"index_get({w.made(x)}, {coordinates(w, at, n.attr('batch_dims', 0))})"))


@row("ScatterND")
def scatter_nd(w, n):
    x, at, values = n.inputs
    how = {"none": "", "add": ", reduction::sum", "mul": ", reduction::prod", "max": ", reduction::max", "min": ", reduction::min"}[n.attr("reduction", "none")]
    w.set(n.outputs[0], tensor(f"index_put({w.made(x)}, {coordinates(w, at)}, {w.made(values)}{how})"))


@row("Compress")
def compress(w, n):
    x, mask = n.inputs
    axis = n.attr("axis")
    if axis is None:
        return w.set(n.outputs[0], tensor(f"masked_select({w.made(x)}.reshape({{-1}}), 0, {w.made(mask)})"))
    w.set(n.outputs[0], tensor(f"masked_select({w.made(x)}, {axis_of(axis, x.rank)}, {w.made(mask)})"))


@row("CumProd")
def cumprod(w, n):
    axis = w.scalar(n.inputs[1])
    options = [f".{o} = true" for o in ("exclusive", "reverse") if n.attr(o, 0)]
    w.set(n.outputs[0], op(f"cumprod({w.expr(n.inputs[0])}, {int(axis)}{', {' + ', '.join(options) + '}' if options else ''})"))


@row("GridSample")
def grid_sample(w, n):
    x, grid = n.inputs
    mode = {"bilinear": "", "linear": "", "nearest": "nearest", "cubic": "bicubic", "bicubic": "bicubic"}.get(n.attr("mode", "linear"))
    if mode is None:
        raise Refused(f"GridSample with mode {n.attr('mode')}")
    options = [f".mode = interpolation::{mode}"] if mode else []
    if n.attr("padding_mode", "zeros") != "zeros":
        options.append(f".padding_mode = grid_padding::{ {'border': 'border', 'reflection': 'reflection'}[n.attr('padding_mode')] }")
    if n.attr("align_corners", 0):
        options.append(".align_corners = true")
    tail = f", {{{', '.join(options)}}}" if options else ""
    w.set(n.outputs[0], op(f"grid_sample({w.made(x)}, {w.made(grid)}{tail})"))


# Boxes


@shape("NonMaxSuppression")
def non_max_suppression_shape(n):
    return [(np.int64, [None, 3])]


@row("NonMaxSuppression")
def non_max_suppression(w, n):
    limit, overlap, lowest = ([0, 0.0, None][i - 2] if n.input(i) is None else w.scalar(n.input(i)) for i in (2, 3, 4))
    if limit is None or overlap is None or (lowest is None and n.input(4) is not None):
        raise Refused("NonMaxSuppression with limits that are computed")
    boxes, scores = w.made(n.inputs[0]), w.made(n.inputs[1])
    a, b = f"{boxes}.slice(2, 0, 2)", f"{boxes}.slice(2, 2, 4)"
    low, high = (f"{a} - {b} / 2", f"{a} + {b} / 2") if n.attr("center_point_box", 0) else (f"minimum({a}, {b})", f"maximum({a}, {b})")
    corners, found, picture, kind, score, best = (w.local(x) for x in ("corners", "found", "picture", "kind", "score", "best"))
    w.statement(f"const auto {corners} = concat(2, eval({low}), eval({high}));")
    w.statement(f"std::vector<sinter::tensor<std::int64_t, 2, D>> {found};")
    w.statement(f"for (index_t {picture} = 0; {picture} < {scores}.size(0); ++{picture})")
    w.statement(f"  for (index_t {kind} = 0; {kind} < {scores}.size(1); ++{kind}) {{")
    w.statement(f"    const auto {score} = {scores}.select(0, {picture}).select(0, {kind});")
    w.statement(f"    auto {best} = nms({corners}.select(0, {picture}), {score}, {number(overlap)});")
    if lowest is not None:
        w.statement(f"    {best} = masked_select({best}, 0, eval(index_select({score}, 0, {best}) > {number(lowest)}));")
    if limit < 1 << 31:
        w.statement(f"    {best} = {best}.slice(0, 0, std::min<index_t>({best}.size(0), {max(0, int(limit))}));")
    w.statement(f"    {found}.push_back(stack(1, full<std::int64_t, D>({{{best}.size(0)}}, {picture}), full<std::int64_t, D>({{{best}.size(0)}}, {kind}), {best}));")
    w.statement("  }")
    w.set(n.outputs[0], tensor(f"concat(0, {found})"))


@row("RoiAlign")
def roi_align(w, n):
    x, boxes, pictures = n.inputs
    if n.attr("mode", "avg") != "avg":
        raise Refused("RoiAlign with mode max")
    # Before opset 16 elements lay at whole numbers plus a half.
    places = n.attr("coordinate_transformation_mode", "half_pixel" if n.opset >= 16 else "output_half_pixel")
    options = [f".spatial_scale = {number(np.float32(n.attr('spatial_scale', 1.0)))}"]
    options += [f".sampling_ratio = {n.attr('sampling_ratio')}"] * (n.attr("sampling_ratio", 0) > 0) + [".aligned = true"] * (places == "half_pixel")
    numbers = f"eval(cast<{ELEMENTS[x.dtype]}>({w.expr(pictures)})).unsqueeze(1)"
    size = listed([n.attr("output_height", 1), n.attr("output_width", 1)])
    w.set(n.outputs[0], op(f"roi_align({w.made(x)}, concat(1, {numbers}, {w.made(boxes)}), {size}, {listed(options, str)})"))


@shape("Attention")
def attention_shape(n):
    q, k, v = n.inputs[:3]
    if q.rank == 3:
        width = sizes.mul(sizes.div(v.shape[2], n.attr("kv_num_heads")), n.attr("q_num_heads"))
        return [(q.dtype, (q.shape[0], q.shape[1], width))]
    return [(q.dtype, q.shape[:3] + (v.shape[3],))]


@row("Attention")
def attention(w, n):
    if n.proto.domain == "com.microsoft":
        raise Refused("Attention of com.microsoft")
    q, k, v, mask = n.inputs[0], n.inputs[1], n.inputs[2], n.input(3)
    if any(n.input(i) is not None for i in (4, 5, 6)) or any(y.users for y in n.outputs[1:]) or n.attr("softcap", 0.0):
        raise Refused("Attention with past keys, lengths, soft cap or more results")
    options = []
    if n.attr("is_causal", 0):
        if q.shape[-2] != k.shape[-2]:
            raise Refused("causal Attention with another number of queries than of keys")
        options.append(".causal = true")
    if "scale" in n.attrs:
        options.append(f".scale = {number(np.float32(n.attr('scale')))}")
    heads = (n.attr("q_num_heads"), n.attr("kv_num_heads"), n.attr("kv_num_heads"))
    operands = [w.made(x) if x.rank == 4 else f"nn::split_heads({w.made(x)}, {h})" for x, h in zip((q, k, v), heads)]
    if mask is not None:
        operands.append(w.made(mask))
    w.includes.add("sinter/sequences.hpp")
    text = f"attention({', '.join(operands)}{', {' + ', '.join(options) + '}' if options else ''})"
    w.set(n.outputs[0], op(text) if q.rank == 4 else tensor(f"nn::merge_heads(eval({text}))"))


@row("RotaryEmbedding")
def rotary_embedding(w, n):
    x, cos, sin = n.inputs[:3]
    if n.input(3) is not None or x.rank != 4 or cos.rank != 3:
        raise Refused("RotaryEmbedding with positions, or of 3 axes")
    d = sizes.div(x.shape[3], 2)
    if n.attr("rotary_embedding_dim", 0) not in (0, x.shape[3]):
        raise Refused("RotaryEmbedding of a part of the features")
    name, c, s = w.made(x), f"{w.made(cos)}.unsqueeze(1)", f"{w.made(sin)}.unsqueeze(1)"
    step = n.attr("interleaved", 0)
    a, b = w.local("first"), w.local("second")
    t = sizes.text
    w.statement(f"const auto {a} = {name}.slice(3, 0, {t(x.shape[3])}, 2);" if step else f"const auto {a} = {name}.slice(3, 0, {t(d)});")
    w.statement(f"const auto {b} = {name}.slice(3, 1, {t(x.shape[3])}, 2);" if step else f"const auto {b} = {name}.slice(3, {t(d)}, {t(x.shape[3])});")
    parts = f"eval({a} * {c} - {b} * {s}), eval({a} * {s} + {b} * {c})"
    w.set(n.outputs[0], tensor(f"stack(4, {parts}).reshape({listed(x.shape)})" if step else f"concat(3, {parts})"))


def scaled(w, n, i):
    """Operand i as text of floats, along its axis."""
    value = n.input(i)
    if value is None:
        return None
    axis = axis_of(n.attr("axis", 1), n.inputs[0].rank)
    one = w.scalar(value)
    if one is not None:
        return number(np.float32(one))
    if value.rank != 1 or n.attr("block_size", 0):
        raise Refused(f"{n.op} by blocks")
    text = f"{w.made(value)}.reshape({listed([-1 if k == axis else 1 for k in range(n.inputs[0].rank)])})"
    return text if value.dtype.kind == "f" else f"cast<float>({text})"


@shape("QuantizeLinear")
def quantize_shape(n):
    zero = n.input(2)
    return [(zero.dtype if zero is not None else np.uint8, n.inputs[0].shape)]


@row("QuantizeLinear")
def quantize_linear(w, n):
    to = n.outputs[0].dtype
    if to not in (np.dtype(np.int8), np.dtype(np.uint8)):
        raise Refused(f"QuantizeLinear to {to}")
    low, high = np.iinfo(to).min, np.iinfo(to).max
    zero = scaled(w, n, 2)
    text = f"round({w.expr(n.inputs[0], PRODUCT)} / {scaled(w, n, 1)})" + (f" + {zero}" if zero not in (None, "0") else "")
    w.set(n.outputs[0], Code(f"cast<{ELEMENTS[to]}>(clamp({text}, {low}, {high}))"))


@shape("DequantizeLinear")
def dequantize_shape(n):
    return [(n.inputs[1].dtype, n.inputs[0].shape)]


@row("DequantizeLinear")
def dequantize_linear(w, n):
    zero = scaled(w, n, 2)
    x = f"cast<float>({w.expr(n.inputs[0])})"
    w.set(n.outputs[0], Code(f"{f'({x} - {zero})' if zero not in (None, '0') else x} * {scaled(w, n, 1)}", strength=PRODUCT))
