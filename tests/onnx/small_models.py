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
        model.ir_version, model.producer_name = 9, "pytorch"
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


def chains(g):
    """Values that the next statement alone reads, of which some come from nothing that is trained but by way of a condition."""
    h = g.input("x", weights(2, 3, 4, 4), ("n", 3, 4, 4))
    h = g.Resize(h, "", np.array([1, 1, 2, 2], np.float32), mode="nearest", coordinate_transformation_mode="asymmetric")
    h = g.Relu(g.Conv(h, g.constant(weights(5, 3, 3, 3), "conv1.weight"), pads=[1, 1, 1, 1]))
    h = g.MaxPool(h, kernel_shape=[2, 2], strides=[2, 2])
    h = g.Conv(h, g.constant(weights(5, 5, 3, 3), "conv2.weight"), pads=[1, 1, 1, 1])
    h = g.MaxPool(g.Cast(g.Greater(h, np.float32(0)), to=TensorProto.FLOAT), kernel_shape=[2, 2], strides=[2, 2])
    return g.model((g.Conv(h, g.constant(weights(4, 5, 1, 1), "conv3.weight")), TensorProto.FLOAT, 4))


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


def lengths(g):
    """Recurrent layers over sequences of different lengths, and from the last element to the first."""
    x = g.input("x", weights(4, 3, 5), ("t", "n", 5))
    of = g.input("lengths", np.array([2, 4, 0], np.int32), ("n",))
    y, h, c = g.LSTM(x, weights(2, 24, 5), weights(2, 24, 6), weights(2, 48), of, results=3, hidden_size=6, direction="bidirectional")
    z, last = g.GRU(x, weights(1, 9, 5), weights(1, 9, 3), weights(1, 18), of, results=2, hidden_size=3, linear_before_reset=1)
    back = g.RNN(x, weights(1, 3, 5), weights(1, 3, 3), weights(1, 6), results=2, hidden_size=3, direction="reverse", activations=["Relu"])
    return g.model(*[(name, TensorProto.FLOAT, rank) for name, rank in ((y, 4), (h, 3), (c, 3), (z, 4), (last, 3), (back[0], 4), (back[1], 3))])


def boxes(g):
    """Boxes that overlap, of two pictures and kinds, and their regions of a picture."""
    x = g.input("x", weights(2, 3, 9, 8), ("n", 3, 9, 8))
    corners = RNG.random((2, 12, 4)).astype(np.float32) * 8
    b = g.input("boxes", corners, ("n", "k", 4))
    scores = g.input("scores", RNG.random((2, 2, 12)).astype(np.float32), ("n", 2, "k"))
    kept = g.NonMaxSuppression(b, scores, ints(3), np.array([0.2], np.float32), np.array([0.3], np.float32))
    centred = g.NonMaxSuppression(b, scores, ints(2**40), np.array([0.4], np.float32), center_point_box=1)
    first = g.Slice(g.Squeeze(g.Gather(b, ints(1), axis=0), ints(0)), ints(0), ints(4), ints(0))
    regions = g.Concat(g.Slice(first, ints(0), ints(2), ints(1)), g.Add(g.Slice(first, ints(0), ints(2), ints(1)), np.float32(3.5)), axis=1)
    of = ints(0, 1, 1, 0)
    parts = g.RoiAlign(x, regions, of, output_height=3, output_width=2, sampling_ratio=2, spatial_scale=0.5)
    whole = g.RoiAlign(x, regions, of, output_height=2, output_width=2, coordinate_transformation_mode="output_half_pixel")
    return g.model((kept, TensorProto.INT64, 2), (centred, TensorProto.INT64, 2), (parts, TensorProto.FLOAT, 4), (whole, TensorProto.FLOAT, 4))


def masked_attention(g):
    """Attention as scaled_dot_product_attention is exported: a mask of bool at coordinates, a guard against rows that see nothing."""
    q, k, v = (g.input(name, weights(2, 3, 5, 4), ("n", 3, 5, 4)) for name in "qkv")
    seen = g.input("seen", np.array([[1, 1, 1, 0, 1], [0, 0, 0, 0, 0]], np.bool_), ("n", 5))
    column, row = np.meshgrid(np.arange(5), np.arange(2))
    at = np.stack([row, column], -1).reshape(2, 1, 1, 5, 2)
    mask = g.Where(g.GatherND(seen, at), np.float32(0), np.float32(-np.inf))
    keys = g.Reshape(g.Transpose(g.Reshape(k, ints(-1, 5, 4)), perm=[0, 2, 1]), ints(-1, 3, 4, 5))
    half = np.float32(0.7)
    weights_ = g.Softmax(g.Add(g.MatMul(g.Mul(q, half), g.Mul(keys, half)), mask), axis=-1)
    y = g.MatMul(g.Where(g.IsNaN(weights_), np.float32(0), weights_), v)
    rows = g.GatherND(y, RNG.integers(-2, 2, (2, 6, 1)), batch_dims=1)
    return g.model((y, TensorProto.FLOAT, 4), (rows, TensorProto.FLOAT, 4))


def trained(g):
    """What PyTorch trains of one element stays a parameter, dropout in training mode a layer; a row of an embedding at a known place; limits that are inputs."""
    x = g.input("x", weights(3, 4), ("n", 4))
    low = g.input("low", np.array(-0.2, np.float32), ())
    h = g.Mul(x, g.constant(np.array([0.7], np.float32), "block.scale"))
    h = g.Pow(g.Clip(h, low, np.float32(1)), g.constant(np.array(3, np.float32), "exponent"))
    h = g.Add(h, g.Gather(g.constant(weights(6, 4), "places.weight"), ints(1, 2, 5), axis=0))
    h = g.Dropout(h, np.array(0, np.float32), np.array(True))
    head = g.MatMul(h, g.constant(small_table().T.copy(), "onnx::MatMul_7"))
    return g.model((g.Add(head, g.Gather(g.constant(small_table(), "words.weight"), g.ArgMax(h, axis=1, keepdims=0))), TensorProto.FLOAT, 2))


def small_table():
    return np.random.default_rng(2).standard_normal((4, 4)).astype(np.float32)


def sequences(g):
    """Sequences whose members are known by their places."""
    x = g.input("x", weights(2, 7), ("n", 7))
    parts = g.SplitToSequence(x, ints(3).reshape(()), axis=1)
    rows = g.SplitToSequence(g.constant(weights(3, 4), "rows.weight"), axis=0, keepdims=0)
    pair = g.SequenceConstruct(g.SequenceAt(parts, ints(1).reshape(())), g.SequenceAt(parts, ints(0).reshape(())))
    stacked = g.ConcatFromSequence(pair, axis=0, new_axis=1)
    last = g.Add(g.SequenceAt(parts, ints(-1).reshape(())), g.SequenceAt(rows, ints(2).reshape(())))
    return g.model((stacked, TensorProto.FLOAT, 3), (last, TensorProto.FLOAT, 2))


def taken_names(g):
    """Names that are words and functions of C++, or no names at all."""
    x = g.input("relu", weights(2, 3), ("class", 3))
    y = g.input("*/ int main() {", weights(2, 3), ("class", 3))
    sum_ = g.Add(g.Relu(x), g.constant(weights(3), 'a"); system("true'))
    return g.model((g.Mul(sum_, g.Relu(y)), TensorProto.FLOAT, 2))


MODELS = [flatten_by_shape, halves, positions, condition, perceptron, norms, attention_in_parts, pictures, chains, recurrent, picking, quantised, lengths, boxes, masked_attention,
          trained, sequences, taken_names]
BY_RUNTIME = [lengths, boxes]  # ONNX's reference knows no lengths; it orders boxes, and lets them be empty, in a way of its own
TRACKED = [chains]  # forward() is compiled for training as well
