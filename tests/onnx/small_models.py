"""Small models that use what the converter does: sizes that are known late, constants, patterns, layers. Each is a function of Graph."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(1)


def weights(*shape):
    return (RNG.standard_normal(shape) / 2).astype(np.float32)


class Graph:
    """Builds a model of opset 17: `g.Relu(x)` adds a node and gives the name of its result; arrays become initializers."""

    def __init__(self):
        self.nodes, self.initializers, self.inputs, self.feeds = [], [], [], {}

    def input(self, name, values, shape=None):
        """An input with an example; shape names what stays open, such as ("n", 3)."""
        values = np.asarray(values)
        self.inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(values.dtype), shape or values.shape))
        self.feeds[name] = values
        return name

    def constant(self, values, name=None):
        values = np.asarray(values)
        name = name or f"constant_{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(values, name))
        return name

    def __getattr__(self, op):
        def add(*operands, results=1, **attributes):
            names = [x if isinstance(x, str) else self.constant(x) for x in operands]
            outputs = [f"{op.lower()}_{len(self.nodes)}" + (f"_{i}" if results > 1 else "") for i in range(results)]
            self.nodes.append(helper.make_node(op, names, outputs, name=f"/{op}_{len(self.nodes)}", **attributes))
            return outputs[0] if results == 1 else outputs
        return add

    def model(self, *outputs, opset=17):
        infos = [helper.make_tensor_value_info(name, kind, [None] * rank) for name, kind, rank in outputs]
        graph = helper.make_graph(self.nodes, "small", self.inputs, infos, self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        model.ir_version = 9
        return model


def ints(*values):
    return np.array(values, np.int64)


def flatten_by_shape(g):
    x = g.input("x", weights(2, 3, 4, 5), ("n", 3, "h", "w"))
    n = g.Gather(g.Shape(x), ints(0).reshape(()), axis=0)
    flat = g.Reshape(x, g.Concat(g.Unsqueeze(n, ints(0)), ints(-1), axis=0))
    return g.model((g.Relu(flat), TensorProto.FLOAT, 2))


def halves(g):
    """Slices at half of a length that is known late, joined the other way round."""
    x = g.input("x", weights(2, 6), ("n", "length"))
    half = g.Div(g.Gather(g.Shape(x), ints(1), axis=0), ints(2))
    a, b = g.Slice(x, ints(0), half, ints(1)), g.Slice(x, half, ints(2**63 - 1), ints(1))
    return g.model((g.Concat(b, a, axis=1), TensorProto.FLOAT, 2))


def positions(g):
    """Range, Expand and Gather, as models of text make positions."""
    ids = g.input("ids", RNG.integers(0, 7, (2, 5)), ("batch", "length"))
    shape = g.Shape(ids)
    length = g.Gather(shape, ints(1).reshape(()), axis=0)
    place = g.Range(ints(0).reshape(()), length, ints(1).reshape(()))
    table = g.constant(weights(16, 4), "wpe.weight")
    words = g.constant(weights(7, 4), "wte.weight")
    return g.model((g.Add(g.Gather(words, ids), g.Gather(table, g.Expand(g.Unsqueeze(place, ints(0)), shape))), TensorProto.FLOAT, 3))


def condition(g):
    """An If on the number of axes, which is known."""
    x = g.input("x", weights(2, 3), ("n", 3))
    then = helper.make_graph([helper.make_node("Neg", [x], ["then"])], "then", [], [helper.make_tensor_value_info("then", 1, [None, None])])
    otherwise = helper.make_graph([helper.make_node("Abs", [x], ["else"])], "else", [], [helper.make_tensor_value_info("else", 1, [None, None])])
    is_matrix = g.Equal(g.Size(g.Shape(x)), ints(2).reshape(()))
    return g.model((g.If(is_matrix, then_branch=then, else_branch=otherwise), TensorProto.FLOAT, 2))


def perceptron(g):
    """Linear layers in both forms, gelu in both forms, silu."""
    x = g.input("x", weights(3, 5, 8), ("n", 5, 8))
    h = g.Add(g.MatMul(x, g.constant(weights(8, 6), "fc1.weight")), g.constant(weights(6), "fc1.bias"))
    h = g.Mul(g.Mul(h, g.Add(g.Erf(g.Div(h, np.float32(2**0.5))), np.float32(1))), np.float32(0.5))
    h = g.Add(g.MatMul(h, g.constant(weights(6, 6), "fc2.weight")), g.constant(weights(6), "fc2.bias"))
    cubic = g.Mul(np.float32(0.044715), g.Pow(h, np.float32(3)))
    inner = g.Mul(np.float32((2 / np.pi)**0.5), g.Add(h, cubic))
    h = g.Mul(g.Mul(np.float32(0.5), h), g.Add(np.float32(1), g.Tanh(inner)))
    flat = g.Reshape(h, ints(-1, 6))
    h = g.Gemm(flat, g.constant(weights(4, 6), "fc3.weight"), g.constant(weights(4), "fc3.bias"), transB=1)
    return g.model((g.Mul(h, g.Sigmoid(h)), TensorProto.FLOAT, 2))


def norms(g):
    """A layer norm in its parts, and as one op."""
    x = g.input("x", weights(2, 3, 8), ("n", "t", 8))
    centred = g.Sub(x, g.ReduceMean(x, axes=[-1]))
    variance = g.ReduceMean(g.Pow(centred, np.float32(2)), axes=[-1])
    y = g.Div(centred, g.Sqrt(g.Add(variance, np.float32(1e-5))))
    y = g.Add(g.Mul(y, g.constant(1 + weights(8), "ln.weight")), g.constant(weights(8), "ln.bias"))
    y = g.LayerNormalization(y, 1 + weights(8), weights(8), epsilon=1e-6)
    return g.model((y, TensorProto.FLOAT, 3))


def attention_in_parts(g):
    """Attention in its parts, with a mask that is added."""
    q, k, v = (g.input(name, weights(2, 2, t, 4), ("n", 2, open_, 4)) for name, t, open_ in (("q", 3, "t"), ("k", 5, "s"), ("v", 5, "s")))
    mask = g.input("mask", np.where(RNG.random((2, 1, 3, 5)) < 0.3, -1e4, 0).astype(np.float32), ("n", 1, "t", "s"))
    scores = g.Add(g.Div(g.MatMul(q, g.Transpose(k, perm=[0, 1, 3, 2])), np.float32(2)), mask)
    return g.model((g.MatMul(g.Softmax(scores, axis=-1), v), TensorProto.FLOAT, 4))


def pictures(g):
    """Convolutions with a bias that is added, uneven padding, groups and batch norm; pooling; hardswish in its parts; resizing."""
    x = g.input("x", weights(2, 3, 11, 9), ("n", 3, "h", "w"))
    h = g.Add(g.Conv(x, g.constant(weights(4, 3, 3, 3), "stem.weight"), pads=[0, 0, 1, 1]), weights(1, 4, 1, 1))
    h = g.BatchNormalization(h, 1 + weights(4), weights(4), weights(4), weights(4)**2 + 1)
    h = g.Div(g.Mul(h, g.Clip(g.Add(h, np.float32(3)), np.float32(0), np.float32(6))), np.float32(6))
    h = g.Conv(h, weights(4, 1, 3, 3), weights(4), group=4, pads=[1, 1, 1, 1], strides=[2, 1])
    h = g.MaxPool(h, kernel_shape=[3, 2], strides=[1, 2], pads=[1, 0, 1, 0])
    squeeze = g.Conv(g.Relu(g.Conv(g.GlobalAveragePool(h), weights(2, 4, 1, 1), weights(2))), weights(4, 2, 1, 1), weights(4))
    h = g.Mul(g.HardSigmoid(squeeze), h)
    return g.model((g.Resize(h, "", np.array([1, 1, 2, 2], np.float32), mode="nearest", coordinate_transformation_mode="asymmetric",
                             nearest_mode="floor"), TensorProto.FLOAT, 4))


def recurrent(g):
    """An LSTM in both directions, and a GRU behind it."""
    x = g.input("x", weights(4, 2, 3), ("t", "n", 3))
    y, h, c = g.LSTM(x, weights(2, 20, 3), weights(2, 20, 5), weights(2, 40), results=3, hidden_size=5, direction="bidirectional")
    y = g.Reshape(g.Transpose(y, perm=[0, 2, 1, 3]), ints(0, 0, -1))
    z, last = g.GRU(y, weights(1, 9, 10), weights(1, 9, 3), weights(1, 18), results=2, hidden_size=3, linear_before_reset=1)
    return g.model((z, TensorProto.FLOAT, 4), (last, TensorProto.FLOAT, 3), (h, TensorProto.FLOAT, 3), (c, TensorProto.FLOAT, 3))


def picking(g):
    """Indices: the largest, where they are, one-hot, and elements written at places."""
    x = g.input("x", weights(3, 6), ("n", 6))
    best, places = g.TopK(x, ints(2), results=2, axis=1)
    hot = g.OneHot(g.ArgMax(x, axis=1, keepdims=0), ints(6).reshape(()), np.array([0, 1], np.float32))
    written = g.ScatterElements(hot, places, best, axis=1)
    negative = g.Gather(written, ints(-1, 0), axis=1)
    return g.model((g.Concat(negative, g.Where(g.Less(best, np.float32(0)), best, g.Sqrt(g.Abs(best))), axis=1), TensorProto.FLOAT, 2),
                   (places, TensorProto.INT64, 2))


def quantised(g):
    """Numbers of 8 bits between a product of known weights of 8 bits and what is around it."""
    x = g.input("x", weights(4, 6), ("n", 6))
    scale, zero = np.float32(0.02), np.uint8(128)
    h = g.DequantizeLinear(g.QuantizeLinear(x, scale, zero), scale, zero)
    table = RNG.integers(-127, 127, (6, 3)).astype(np.int8)
    w = g.DequantizeLinear(table, np.array([0.01, 0.02, 0.03], np.float32), np.zeros(3, np.int8), axis=1)
    y = g.MatMul(h, w)
    scales = np.array([0.1, 0.2, 0.3], np.float32)
    return g.model((g.DequantizeLinear(g.QuantizeLinear(y, scales, np.zeros(3, np.int8), axis=1), scales, axis=1), TensorProto.FLOAT, 2), opset=21)


def taken_names(g):
    """Names that are words and functions of C++, or no names at all."""
    x = g.input("relu", weights(2, 3), ("class", 3))
    y = g.input("*/ int main() {", weights(2, 3), ("class", 3))
    sum_ = g.Add(g.Relu(x), g.constant(weights(3), 'a"); system("true'))
    return g.model((g.Mul(sum_, g.Relu(y)), TensorProto.FLOAT, 2))


MODELS = [flatten_by_shape, halves, positions, condition, perceptron, norms, attention_in_parts, pictures, recurrent, picking, quantised, taken_names]
