"""Integer tensors whose elements are sizes, computed while a model is converted."""
import math

import numpy as np

from . import sizes
from .graph import ELEMENTS
from onnx import helper


MOST = 1 << 16  # sizes in a tensor


def array(values):
    if isinstance(values, (int, sizes.Size)):
        out = np.empty((), object)
        out[()] = values
        return out
    out = np.empty(len(values), object)
    for i, v in enumerate(values):
        out[i] = v
    return out


def product(values):
    total = 1
    for v in np.asarray(values, object).reshape(-1):
        total = sizes.mul(total, v)
    return total


def elementwise(f, *operands):
    operands = np.broadcast_arrays(*[np.asarray(x, object) for x in operands])
    out = np.empty(operands[0].shape, object)
    for i in np.ndindex(out.shape):
        out[i] = f(*[x[i] for x in operands])
        if out[i] is None:
            return None
    return out


def number(x):
    """The elements of a Value as numbers where they all are, else None."""
    if x is None or x.const is None:
        return None
    return x.const


def ints(x, default=None):
    return default if x is None else [int(v) for v in np.asarray(number(x)).reshape(-1)]


def _binary(f):
    return lambda n, a, b: elementwise(f, a, b)


def _compare(f):
    return lambda n, a, b: elementwise(f, a, b)


def _not(x):
    return None if x is None else not x


def _divide(a, b):
    if isinstance(a, float) or isinstance(b, float):
        return None
    return sizes.div(a, b)


def _reduce(start, f):
    def run(n, x, axes=None):
        axes = None if axes is None else tuple(int(a) for a in np.asarray(axes).reshape(-1))
        if x.ndim > 1 and axes is not None and len(axes) < x.ndim:
            return None
        total = start
        for v in x.reshape(-1):
            total = v if total is None else f(total, v)
        return array([total]).reshape((1,) * x.ndim) if n.attr("keepdims", 1) else array(total)
    return run


def _slice(n, x, starts, ends, axes=None, steps=None):
    numbers = [np.asarray(a, object).reshape(-1) for a in (starts, ends)]
    axes = range(len(numbers[0])) if axes is None else np.asarray(axes).reshape(-1)
    steps = [1] * len(numbers[0]) if steps is None else np.asarray(steps).reshape(-1)
    cut = [slice(None)] * x.ndim
    for begin, end, axis, step in zip(*numbers, axes, steps):
        if any(isinstance(v, sizes.Size) for v in (begin, end, step)):
            return None
        limit = 1 << 40
        cut[int(axis)] = slice(int(begin), None if abs(int(end)) > limit or (step < 0 and end < -x.shape[int(axis)]) else int(end), int(step))
    return x[tuple(cut)]


def _reshape(n, x, shape):
    return None if any(isinstance(v, sizes.Size) for v in shape) else x.reshape([int(v) for v in shape])


def _where(n, c, a, b):
    return elementwise(lambda p, q, r: q if p else r, c, a, b) if c is not None else None


def _range(n, start, limit, step):
    if any(isinstance(v.reshape(-1)[0], sizes.Size) for v in (start, limit, step)):
        return None
    return array(list(range(int(start), int(limit), int(step))))


def _expand(n, x, shape):
    if any(isinstance(v, sizes.Size) for v in shape):
        return None
    shape = np.broadcast_shapes(x.shape, [int(v) for v in shape])
    return np.broadcast_to(x, shape) if product(shape) <= MOST else None


COMPUTE = {
    "Gather": lambda n, x, i: np.take(x, np.asarray(i, np.int64), axis=n.attr("axis", 0)),
    "Concat": lambda n, *xs: np.concatenate(xs, axis=n.attr("axis", 0)),
    "Unsqueeze": lambda n, x, axes: np.expand_dims(x, tuple(int(a) for a in axes)),
    "Squeeze": lambda n, x, axes=None: np.squeeze(x, None if axes is None else tuple(int(a) for a in axes)),
    "Slice": _slice,
    "Reshape": _reshape,
    "Transpose": lambda n, x: x.transpose(n.attr("perm")),
    "Identity": lambda n, x: x,
    "Add": _binary(sizes.add),
    "Sub": _binary(lambda a, b: sizes.add(a, sizes.mul(b, -1))),
    "Mul": _binary(sizes.mul),
    "Div": _binary(_divide),
    "Mod": _binary(sizes.mod),
    "Neg": lambda n, x: elementwise(lambda a: sizes.mul(a, -1), x),
    "Min": lambda n, *xs: _fold(sizes.smaller, xs),
    "Max": lambda n, *xs: _fold(sizes.larger, xs),
    "Equal": _compare(sizes.is_equal),
    "Less": _compare(sizes.is_less),
    "Greater": _compare(lambda a, b: sizes.is_less(b, a)),
    "LessOrEqual": _compare(lambda a, b: _not(sizes.is_less(b, a))),
    "GreaterOrEqual": _compare(lambda a, b: _not(sizes.is_less(a, b))),
    "Where": _where,
    "ReduceProd": _reduce(1, sizes.mul),
    "ReduceSum": _reduce(0, sizes.add),
    "ReduceMin": _reduce(None, sizes.smaller),
    "ReduceMax": _reduce(None, sizes.larger),
    "Range": _range,
    "Expand": _expand,
    "Floor": lambda n, x: x,
    "Ceil": lambda n, x: x,
}
LOGICAL = {"Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"}


def _fold(f, xs):
    total = xs[0]
    for x in xs[1:]:
        total = elementwise(f, total, x)
    return total


def compute(node):
    """(elements, element type) of the result of a node whose operands are known, or None."""
    operands = [None if x is None else np.asarray(x.known, object) for x in node.inputs]
    if node.op == "Cast":
        to = np.dtype(helper.tensor_dtype_to_np_dtype(node.attr("to")))
        # A size stays one as a floating-point number: exporters cast to float, multiply by a whole number and cast back.
        return None if to == np.bool_ else (operands[0], to)
    rule = COMPUTE.get(node.op)
    if rule is None:
        return None
    while operands and operands[-1] is None:
        operands.pop()
    for x in operands:
        if x is not None and any(isinstance(v, float) and (not math.isfinite(v) or v != int(v)) for v in x.reshape(-1)):
            return None
    operands = [None if x is None else elementwise(lambda v: int(v) if isinstance(v, (float, np.generic)) else v, x) for x in operands]
    try:
        result = rule(node, *operands)
    except (ValueError, IndexError, TypeError):
        return None
    if result is None:
        return None
    dtype = np.dtype(np.bool_) if node.op in LOGICAL else node.inputs[1 if node.op == "Where" else 0].dtype
    return np.asarray(result, object), dtype
