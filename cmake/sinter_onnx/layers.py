"""Rows of OPS for what has weights, and for products, pooling and pictures."""
import re

import numpy as np

from . import names, sizes
from .graph import FLOATS, Refused
from .ops import OPS, row
from .shapes import axis_of, explicit_pads
from .writer import PRODUCT, SUM, Code, listed, number, one_or_all, op, path_of, tensor


def is_weight(x):
    return x is not None and x.const is not None and x.dtype in FLOATS


def float_type(x):
    return FLOATS[x.dtype]


def window_options(n, k, pads, more=()):
    """Options of a convolution or pooling with pads that are alike at both ends, in the order of the library's structs."""
    parts = []
    strides, dilations = n.attr("strides", [1] * k), n.attr("dilations", [1] * k)
    if any(s != 1 for s in strides):
        parts.append(f".stride = {one_or_all(strides)}")
    if any(pads):
        parts.append(f".padding = {one_or_all(pads[:k])}")
    dilation = [f".dilation = {one_or_all(dilations)}"] if any(d != 1 for d in dilations) else []
    return parts + (list(more) + dilation if n.op == "AveragePool" else dilation + list(more))


def padded_first(w, n, k, pads, text, fill=""):
    """The operand, padded beforehand where the pads at both ends differ, and the pads that remain."""
    if pads[:k] == pads[k:]:
        return text, pads
    amounts = [v for i in reversed(range(k)) for v in (pads[i], pads[k + i])]
    return f"eval(pad({text}, {listed(amounts)}{fill}))", [0] * 2 * k


@row("Conv", "ConvTranspose")
def conv(w, n):
    x, weight, bias = n.inputs[0], n.inputs[1], n.input(2)
    k = weight.rank - 2
    if k not in (1, 2, 3):
        raise Refused(f"{n.op} of {k} axes")
    if bias is not None and bias.const is not None and not bias.is_parameter and not bias.const.any():
        bias = None  # an exporter writes zeros for a layer without
    kernel = weight.shape[2:]
    pads = n.attr("pads", [0] * 2 * k) if n.op == "ConvTranspose" else explicit_pads(n, kernel)
    text = w.made(x)
    crop = None
    if n.op == "ConvTranspose" and pads[:k] != pads[k:]:
        crop, pads = pads, [0] * 2 * k
    text, pads = padded_first(w, n, k, pads, text)
    options = window_options(n, k, pads)
    groups = n.attr("group", 1)
    if groups != 1:
        options.append(f".groups = {groups}")
    if n.op == "ConvTranspose" and any(n.attr("output_padding", [])):
        options.append(f".output_padding = {one_or_all(n.attr('output_padding'))}")
    name = f"conv{'_transpose' if n.op == 'ConvTranspose' else ''}{k}d"
    given = f"{{{', '.join(options)}}}" if options else ""
    if is_weight(weight) and (bias is None or is_weight(bias)):
        inputs, outputs = (weight.shape[0], weight.shape[1] * groups) if n.op == "ConvTranspose" else (weight.shape[1] * groups, weight.shape[0])
        arguments = f"{inputs}, {outputs}, {one_or_all(kernel)}, gen" + (f", {given}" if given else "") + (
            "" if bias is not None else ", nn::no_bias" if given else ", {}, nn::no_bias")
        arrays = {"weight": weight.const, **({"bias": bias.const} if bias is not None else {})}
        type_ = f"nn::{name}<{float_type(x)}, D, Kind{'' if bias is not None else ', false'}>"
        text = f"{w.layer(path_of(n, weight), type_, arguments, arrays)}({text})"
    else:
        operands = [text, w.made(weight)] + ([w.made(bias)] if bias is not None else [])
        text = f"{name}({', '.join(operands)}{', ' + given if given else ''})"
    if crop is None:
        return w.set(n.outputs[0], op(text))
    cut = "".join(f".slice({2 + i}, {crop[i]}, {sizes.text(sizes.add(n.outputs[0].shape[2 + i], crop[i]))})" for i in range(k))
    w.set(n.outputs[0], tensor(f"eval({text}){cut}"))


@row("BatchNormalization")
def batch_norm(w, n):
    x, scale, bias, mean, var = n.inputs[:5]
    if not all(is_weight(v) for v in n.inputs[1:5]) or x.rank not in (2, 3, 4, 5):
        if n.attr("training_mode", 0):
            raise Refused("BatchNormalization in training mode")
        each = [f"{w.made(v)}.reshape({listed([1, -1] + [1] * (x.rank - 2))})" for v in (scale, bias, mean, var)]
        eps = number(np.float32(n.attr("epsilon", 1e-5)))
        return w.set(n.outputs[0], Code(f"({w.expr(x)} - {each[2]}) / sqrt({each[3]} + {eps}) * {each[0]} + {each[1]}", strength=SUM))
    d = {2: 1, 3: 1, 4: 2, 5: 3}[x.rank]
    settings = [f".eps = {number(np.float32(n.attr('epsilon', 1e-5)))}"] if abs(n.attr("epsilon", 1e-5) - 1e-5) > 1e-12 else []
    momentum = 1 - n.attr("momentum", 0.9)
    if abs(momentum - 0.1) > 1e-6:
        settings.append(f".momentum = {number(round(momentum, 6))}")
    layer = w.layer(path_of(n, scale), f"nn::batch_norm{d}d<{float_type(x)}, D, Kind>",
                    f"{scale.shape[0]}" + (f", {{{', '.join(settings)}}}" if settings else ""),
                    {"weight": scale.const, "bias": bias.const, "running_mean": mean.const, "running_var": var.const,
                     "num_batches_tracked": np.array(0, np.int64)})
    w.set(n.outputs[0], op(f"{layer}({w.expr(x)})"))


@row("LayerNormalization")
def layer_norm(w, n):
    x, scale, bias = n.inputs[0], n.inputs[1], n.input(2)
    axis = axis_of(n.attr("axis", -1), x.rank)
    eps = number(np.float32(n.attr("epsilon", 1e-5)))
    if any(y.users for y in n.outputs[1:]):
        raise Refused("LayerNormalization with its moments as results")
    shape = scale.shape
    if is_weight(scale) and is_weight(bias) and len(shape) == x.rank - axis:
        features = str(shape[0]) if len(shape) == 1 else listed(shape)
        layer = w.layer(path_of(n, scale), f"nn::layer_norm<{float_type(x)}, D, Kind>" if len(shape) == 1 else
                        f"nn::layer_norm<{float_type(x)}, D, Kind, true, true, {len(shape)}>", f"{features}" + ("" if eps == "1e-05" else f", {eps}"),
                        {"weight": scale.const, "bias": bias.const})
        return w.set(n.outputs[0], op(f"{layer}({w.expr(x)})"))
    operands = [w.expr(x), w.made(scale)] + ([w.made(bias)] if bias is not None else [])
    w.set(n.outputs[0], op(f"layer_norm({', '.join(operands)}, {eps})"))


@row("RMSNormalization", "SimplifiedLayerNormalization")
def rms_norm(w, n):
    w.set(n.outputs[0], op(f"rms_norm({w.expr(n.inputs[0])}, {w.made(n.inputs[1])}, {number(np.float32(n.attr('epsilon', 1e-5)))})"))


@row("InstanceNormalization")
def instance_norm(w, n):
    x, scale, bias = n.inputs
    w.set(n.outputs[0], op(f"instance_norm({w.made(x)}, {w.made(scale)}, {w.made(bias)}, {number(np.float32(n.attr('epsilon', 1e-5)))})"))


@row("GroupNormalization")
def group_norm(w, n):
    x, scale, bias = n.inputs
    if scale.shape[0] != x.shape[1]:
        raise Refused("GroupNormalization with a weight for each group")
    w.set(n.outputs[0], op(f"group_norm({w.made(x)}, {n.attr('num_groups')}, {w.made(scale)}, {w.made(bias)}, {number(np.float32(n.attr('epsilon', 1e-5)))})"))


@row("LRN")
def lrn(w, n):
    w.set(n.outputs[0], op(f"local_response_norm({w.made(n.inputs[0])}, {n.attr('size')}, {{.alpha = {number(np.float32(n.attr('alpha', 1e-4)))}, "
                           f".beta = {number(np.float32(n.attr('beta', 0.75)))}, .k = {number(np.float32(n.attr('bias', 1.0)))}}})"))


# Products


@row("Linear")
def linear(w, n):
    """x W + b, which the patterns make of MatMul and Gemm with known weights; the weight is (out, in)."""
    x, weight, bias = n.inputs[0], n.inputs[1], n.input(2)
    outputs, inputs = weight.shape
    type_ = f"nn::linear<{float_type(x)}, D, Kind{'' if bias is not None else ', false'}>"
    arguments = f"{inputs}, {outputs}, gen" + ("" if bias is not None else ", nn::no_bias")
    arrays = {"weight": weight.const, **({"bias": bias.const} if bias is not None else {})}
    layer = w.layer(path_of(n, weight, bias), type_, arguments, arrays)
    w.heads.append((weight.const, layer))
    w.set(n.outputs[0], op(f"{layer}({w.made(x)})"))


@row("MatMul")
def matmul(w, n):
    a, b = n.inputs
    w.set(n.outputs[0], op(f"matmul({w.made(a)}, {w.made(b)})"))


@row("Gemm")
def gemm(w, n):
    a, b, c = n.inputs[0], n.inputs[1], n.input(2)
    left = w.made(a) + (".transpose(0, 1)" if n.attr("transA", 0) else "")
    right = w.made(b) + (".transpose(0, 1)" if n.attr("transB", 0) else "")
    alpha, beta = np.float32(n.attr("alpha", 1.0)), np.float32(n.attr("beta", 1.0))
    text = f"matmul({left}, {right})" + (f" * {number(alpha)}" if alpha != 1 else "")
    if c is not None and beta != 0:
        w.rank = 2
        term = w.expr(c, PRODUCT)
        text += f" + {term}" + (f" * {number(beta)}" if beta != 1 else "")
    w.set(n.outputs[0], Code(text, "op", SUM))


@row("Einsum")
def einsum(w, n):
    equation = n.attr("equation").replace(" ", "")
    if not re.fullmatch(r"[a-zA-Z]+(,[a-zA-Z]+)*(->[a-zA-Z]*)?", equation):
        raise Refused(f"Einsum by {names.comment(equation)}")
    w.set(n.outputs[0], tensor(f'einsum<"{equation}">({", ".join(w.made(x) for x in n.inputs)})'))


@row("Attention_")
def attention(w, n):
    """softmax(scale q k^T + mask) v, which the patterns make; k is (..., S, d)."""
    q, k, v, mask = n.inputs[0], n.inputs[1], n.inputs[2], n.input(3)
    w.includes.add("sinter/sequences.hpp")
    operands = [w.made(q), w.made(k), w.made(v)] + ([w.made(mask)] if mask is not None else [])
    w.set(n.outputs[0], op(f"attention({', '.join(operands)}, {{.scale = {number(n.attr('scale'))}}})"))


# Pooling and pictures


@row("MaxPool", "AveragePool", "LpPool")
def pool(w, n):
    kernel = n.attr("kernel_shape")
    k = len(kernel)
    if len(n.outputs) > 1 and n.outputs[1].users:
        raise Refused("MaxPool with indices")
    pads = explicit_pads(n, kernel)
    average = n.op == "AveragePool"
    if pads[:k] != pads[k:] and average and not n.attr("count_include_pad", 0):
        raise Refused("AveragePool with other padding at one end than at the other")
    text, pads = padded_first(w, n, k, pads, w.made(n.inputs[0]), ", pad_mode::constant, -INFINITY" if n.op == "MaxPool" else "")
    if any(2 * p > e for p, e in zip(pads, kernel)):
        if average and not n.attr("count_include_pad", 0):
            raise Refused("AveragePool with padding above half of the window")
        amounts = [v for p in reversed(pads[:k]) for v in (p, p)]
        text, pads = f"eval(pad({text}, {listed(amounts)}{'' if n.op != 'MaxPool' else ', pad_mode::constant, -INFINITY'}))", [0] * 2 * k
    more = [".ceil_mode = true"] if n.attr("ceil_mode", 0) else []
    if average and any(pads) and not n.attr("count_include_pad", 0):
        more.append(".count_include_pad = false")
    options = window_options(n, k, pads, more)
    if not any(o.startswith(".stride") for o in options):
        if any(e != 1 for e in kernel):
            options.insert(0, ".stride = 1")
    elif list(n.attr("strides")) == list(kernel):
        options = options[1:]
    given = f", {{{', '.join(options)}}}" if options else ""
    if n.op == "LpPool":
        return w.set(n.outputs[0], op(f"lp_pool{k}d(eval(abs({text})), {n.attr('p', 2)}, {one_or_all(kernel)}{given})"))
    w.set(n.outputs[0], op(f"{'avg' if average else 'max'}_pool{k}d({text}, {one_or_all(kernel)}{given})"))


@row("GlobalAveragePool", "GlobalMaxPool")
def global_pool(w, n):
    x = n.inputs[0]
    kind = "avg" if n.op == "GlobalAveragePool" else "max"
    if x.rank in (3, 4, 5):
        return w.set(n.outputs[0], op(f"adaptive_{kind}_pool{x.rank - 2}d({w.made(x)}, 1)"))
    raise Refused(f"{n.op} of {x.rank} axes")


@row("DepthToSpace", "SpaceToDepth")
def depth_to_space(w, n):
    if n.op == "DepthToSpace" and n.attr("mode", "DCR") == "CRD":
        return w.set(n.outputs[0], tensor(f"pixel_shuffle({w.made(n.inputs[0])}, {n.attr('blocksize')})"))
    b, (batch, c, h, wide) = n.attr("blocksize"), n.inputs[0].shape
    t = sizes.text
    if n.op == "DepthToSpace":
        text = (f"{w.made(n.inputs[0])}.reshape({{{t(batch)}, {b}, {b}, {t(sizes.div(c, b * b))}, {t(h)}, {t(wide)}}})"
                f".permute({{0, 3, 4, 1, 5, 2}})")
    else:
        text = (f"{w.made(n.inputs[0])}.reshape({{{t(batch)}, {t(c)}, {t(sizes.div(h, b))}, {b}, {t(sizes.div(wide, b))}, {b}}})"
                f".permute({{0, 3, 5, 1, 2, 4}})")
    w.set(n.outputs[0], tensor(f"{text}.reshape({listed(n.outputs[0].shape)})"))


@row("Resize", "Upsample")
def resize(w, n):
    x, y = n.inputs[0], n.outputs[0]
    k = x.rank - 2
    if k not in (1, 2, 3) or y.shape[:2] != x.shape[:2]:
        raise Refused(f"{n.op} of the first two axes, or of {x.rank} axes")
    mode = n.attr("mode", "nearest")
    places = n.attr("coordinate_transformation_mode", "asymmetric" if n.op == "Upsample" else "half_pixel")
    if n.attr("antialias", 0) or n.attr("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise Refused(f"{n.op} with antialias or keep_aspect_ratio_policy")
    if places not in ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric", "asymmetric", "align_corners"):
        raise Refused(f"{n.op} with coordinate_transformation_mode {places}")
    name = {"nearest": "nearest", "linear": {1: "linear", 2: "bilinear", 3: "trilinear"}[k], "cubic": "bicubic"}.get(mode)
    if name is None or (name == "bicubic" and k != 2):
        raise Refused(f"{n.op} with mode {mode} of {k} axes")
    by_size = n.input(3) is not None
    scales = None if by_size else n.inputs[1 if n.op == "Upsample" else 2].const[2:]
    target = f".size = {listed(y.shape[2:])}" if by_size else f".scale_factor = {one_or_all([number_of(s) for s in scales])}"
    options = [target, f".mode = interpolation::{name}"]
    if mode == "nearest":
        rounding = n.attr("nearest_mode", "floor" if n.op == "Upsample" else "round_prefer_floor")
        if (places, rounding) != ("asymmetric", "floor"):
            how = {"round_prefer_floor": "prefer_floor", "round_prefer_ceil": "prefer_ceil", "floor": "floor", "ceil": "ceil"}[rounding]
            options += [f".places = pixel_places::{places}", f".nearest_mode = pixel_rounding::{how}"]
    elif places == "align_corners" and (by_size or all(float(f) == int(f) for f in scales)):
        options.append(".align_corners = true")
    elif places != "half_pixel" and not (places == "pytorch_half_pixel" and all(e != 1 for e in y.shape[2:])):
        options.append(f".places = pixel_places::{places}")
    if mode == "cubic" and abs(n.attr("cubic_coeff_a", -0.75) + 0.75) > 1e-9:
        options.append(f".cubic_coeff_a = {number(np.float32(n.attr('cubic_coeff_a')))}")
    if n.attr("exclude_outside", 0):
        options.append(".exclude_outside = true")
    w.set(y, op(f"interpolate({w.made(x)}, {{{', '.join(options)}}})"))


def number_of(s):
    return int(s) if float(s) == int(s) else np.float32(s)


# Recurrent layers


def _gates(array, order, hidden):
    return np.concatenate([array[i * hidden:(i + 1) * hidden] for i in order])


@row("LSTM", "GRU", "RNN")
def recurrent(w, n):
    x, weight, recurrence, bias, lengths = n.inputs[0], n.inputs[1], n.inputs[2], n.input(3), n.input(4)
    hidden = n.attr("hidden_size", recurrence.shape[2])
    directions = weight.shape[0]
    order = {"LSTM": [0, 2, 3, 1], "GRU": [1, 0, 2], "RNN": [0]}[n.op]  # ONNX: iofc, zrh; here: ifgo, rzn
    if not (is_weight(weight) and is_weight(recurrence) and (bias is None or is_weight(bias))):
        raise Refused(f"{n.op} with weights that are computed")
    usual = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}[n.op] * directions
    functions = n.attr("activations") or usual
    is_relu = n.op == "RNN" and functions == ["Relu"] * directions
    if not is_relu and functions != usual:
        raise Refused(f"{n.op} with the activations {names.comment(', '.join(functions))}")
    if n.input(7) is not None:
        raise Refused(f"{n.op} with peepholes")
    for name in ("clip", "input_forget", "layout"):
        if n.attr(name, 0):
            raise Refused(f"{n.op} with {name}")
    reverse = n.attr("direction", "forward") == "reverse"
    if reverse and lengths is not None:
        raise Refused(f"{n.op} with lengths in the direction reverse")
    if n.op == "GRU" and not n.attr("linear_before_reset", 0):
        raise Refused("GRU with linear_before_reset = 0, which is another formula than PyTorch's")
    arrays = {}
    for d in range(directions):
        end = "_reverse" if d else ""
        arrays[f"weight_ih_l0{end}"] = _gates(weight.const[d], order, hidden)
        arrays[f"weight_hh_l0{end}"] = _gates(recurrence.const[d], order, hidden)
        both = bias.const[d] if bias is not None else np.zeros(2 * len(order) * hidden, weight.dtype)
        arrays[f"bias_ih_l0{end}"] = _gates(both[:len(order) * hidden], order, hidden)
        arrays[f"bias_hh_l0{end}"] = _gates(both[len(order) * hidden:], order, hidden)
    w.includes.add("sinter/sequences.hpp")
    options = [".bidirectional = true"] * (directions == 2) + [".nonlinearity = sinter::nonlinearity::relu"] * is_relu
    layer = w.layer(path_of(n), f"nn::{n.op.lower()}<{float_type(x)}, D, Kind>",
                    f"{x.shape[2]}, {hidden}, gen" + (f", {listed(options, str)}" if options else ""), arrays)
    h, c = n.input(5), n.input(6)
    zero = lambda v: v is None or (v.const is not None and not v.const.any())
    state = "nn::zero_state"
    if not (zero(h) and zero(c)):
        state = f"nn::lstm_state{{{w.made(h)}, {w.made(c)}}}" if n.op == "LSTM" else w.made(h)
    result = w.local("run")
    t, b = x.shape[:2]
    if lengths is None:
        turned = ".flip(0)" if reverse else ""
        w.statement(f"const auto {result} = {layer}({w.made(x)}{turned}, {state});")
        output = f"{result}.output{turned}"
    else:
        packed = w.local("packed")
        w.statement(f"const auto {packed} = pack_padded_sequence({w.made(x)}, {w.made(lengths)}, {{.enforce_sorted = false}});")
        w.statement(f"const auto {result} = {layer}({packed}, {state});")
        output = f"pad_packed_sequence({result}.output, {{.total_length = {sizes.text(t)}}}).values"
    split = f".reshape({listed([t, b, directions, hidden])}).transpose(1, 2)" if directions == 2 else ".unsqueeze(1)"
    w.set(n.outputs[0], tensor(f"{output}{split}"))
    for i, y in enumerate(n.outputs[1:]):
        part = f"{result}.state" + ("" if n.op != "LSTM" else ".h" if i == 0 else ".c")
        w.set(y, tensor(part))
