"""Groups of nodes that are one view, layer or function: products with known weights, activations, norms, attention."""
import numpy as np

from .graph import FLOATS, Node, Value
from .shapes import axis_of


def number(x):
    """The one element of a known value, else None."""
    return None if x is None or x.const is None or x.const.size != 1 or x.is_trained else float(x.const.reshape(-1)[0])


def is_near(x, expected):
    found = number(x)
    return found is not None and abs(found - expected) <= 2e-3 * abs(expected)


def maker(value, *ops):
    """The node that makes a value, if it is one of these ops."""
    node = value.maker if value is not None else None
    return node if node is not None and (not ops or node.op in ops) else None


def operand_and_number(node):
    """(x, number) of a node that takes a value and a number, in either order, else (None, None)."""
    a, b = node.inputs
    if number(b) is not None:
        return a, number(b)
    if number(a) is not None and node.op in ("Add", "Mul"):
        return b, number(a)
    return None, None


def other(node, value):
    """The operand of a node of two that is not the value."""
    a, b = node.inputs
    return b if a is value else a if b is value else None


class Patterns:
    def __init__(self, builder):
        self.builder = builder
        self.results = {id(v) for _, v in builder.outputs}
        for rule in (self.reshape, self.linear, self.linear_bias, self.conv_bias, self.silu, self.hardswish, self.gelu, self.gelu_tanh, self.layer_norm, self.attention):
            self.users()
            for node in list(builder.nodes):
                rule(node)
            self.sweep()

    def users(self):
        for node in self.builder.nodes:
            for x in node.inputs:
                if x is not None:
                    x.users = []
        for node in self.builder.nodes:
            for x in node.inputs:
                if x is not None:
                    x.users.append(node)

    def sweep(self):
        """Drops nodes whose results nobody needs."""
        live, kept = set(self.results), []
        for node in reversed(self.builder.nodes):
            if any(id(v) in live or v.is_made for v in node.outputs):
                live.update(id(x) for x in node.inputs if x is not None)
                kept.append(node)
        self.builder.nodes = kept[::-1]
        self.users()

    def only_user(self, value, *ops):
        if len(value.users) != 1 or id(value) in self.results or value.users[0].op not in ops:
            return None
        return value.users[0]

    def is_inner(self, value, count=1):
        return len(value.users) == count and id(value) not in self.results

    def replace(self, node, op, inputs, attrs=None, name=None):
        """The node becomes another one that gives the same value."""
        node.op, node.inputs, node.attrs = op, list(inputs), dict(attrs or {})  # its results stay
        if name:
            node.name = name

    # Views

    def reshape(self, node):
        """A reshape of a reshape."""
        before = maker(node.inputs[0], "Reshape") if node.op == "Reshape" else None
        if before is not None and self.is_inner(node.inputs[0]):
            node.inputs[0] = before.inputs[0]

    # Products

    def weight(self, x, transposed=True):
        """A known matrix as the weight (out, in) of a linear layer."""
        values = x.const if not transposed else np.ascontiguousarray(x.const.T)
        if not hasattr(x, "turned"):
            x.turned = {}
        if transposed not in x.turned:
            x.turned[transposed] = Value(x.name, x.dtype, values.shape, values, is_parameter=True)
        return x.turned[transposed]

    def is_matrix(self, x):
        return x.const is not None and x.rank == 2 and x.dtype in FLOATS and x.const.size > 1

    def linear(self, node):
        if node.op == "MatMul" and self.is_matrix(node.inputs[1]) and node.inputs[0].known is None and node.inputs[0].rank >= 1:
            self.replace(node, "Linear", [node.inputs[0], self.weight(node.inputs[1]), None])
        elif node.op == "Gemm" and self.is_matrix(node.inputs[1]) and not node.attr("transA", 0) and node.attr("alpha", 1.0) == 1.0:
            c = node.input(2)
            weight = self.weight(node.inputs[1], not node.attr("transB", 0))
            if c is None or (c.const is not None and node.attr("beta", 1.0) == 1.0 and c.const.size == weight.shape[0]):
                bias = None if c is None else Value(c.name, c.dtype, (c.const.size,), c.const.reshape(-1), is_parameter=True)
                self.replace(node, "Linear", [node.inputs[0], weight, bias])

    def linear_bias(self, node):
        if node.op != "Add":
            return
        for x, b in (node.inputs, node.inputs[::-1]):
            made = maker(x, "Linear")
            if made is not None and made.input(2) is None and self.is_inner(x) and b.const is not None and b.dtype in FLOATS \
                    and b.const.ndim and b.const.shape[-1] == made.inputs[1].shape[0] == b.const.size:
                bias = Value(b.name, b.dtype, (b.const.size,), b.const.reshape(-1), is_parameter=True)
                return self.replace(node, "Linear", [made.inputs[0], made.inputs[1], bias], name=made.name)

    def conv_bias(self, node):
        """A convolution and a number for each channel."""
        if node.op != "Add":
            return
        for x, b in (node.inputs, node.inputs[::-1]):
            made = maker(x, "Conv", "ConvTranspose")
            if made is None or made.input(2) is not None or not self.is_inner(x) or b.const is None or b.dtype not in FLOATS:
                continue
            channels = x.shape[1]
            if b.rank == x.rank - 1 and b.const.size == channels == b.shape[0] or b.rank == x.rank and b.const.size == channels == b.shape[1]:
                bias = Value(b.name, b.dtype, (channels,), b.const.reshape(-1), is_parameter=True)
                return self.replace(node, made.op, made.inputs[:2] + [bias], made.attrs, made.name)

    # Activations

    def silu(self, node):
        if node.op != "Mul":
            return
        for x, s in (node.inputs, node.inputs[::-1]):
            made = maker(s, "Sigmoid")
            if made is not None and made.inputs[0] is x and self.is_inner(s):
                return self.replace(node, "Silu", [x])

    def hardswish(self, node):
        if node.op == "Mul":
            for x, s in (node.inputs, node.inputs[::-1]):
                made = maker(s, "HardSigmoid")
                if made is not None and made.inputs[0] is x and self.is_inner(s) and abs(made.attr("alpha", 0.2) - 1 / 6) < 1e-6 \
                        and made.attr("beta", 0.5) == 0.5:
                    return self.replace(node, "HardSwish", [x])
                scaled = maker(s, "Div", "Mul")
                if scaled is not None and self.is_inner(s):
                    inner, factor = operand_and_number(scaled)
                    if inner is not None and abs((1 / factor if scaled.op == "Div" else factor) - 1 / 6) < 1e-6 and self.is_relu6_of_3(inner, x):
                        return self.replace(node, "HardSwish", [x])
        elif node.op == "Div":
            product, six = maker(node.inputs[0], "Mul"), number(node.inputs[1])
            if product is not None and six == 6 and self.is_inner(node.inputs[0]):
                for x, c in (product.inputs, product.inputs[::-1]):
                    if self.is_relu6_of_3(c, x):
                        return self.replace(node, "HardSwish", [x])

    def is_relu6_of_3(self, value, x):
        clip = maker(value, "Clip")
        if clip is None or number(clip.input(1)) != 0 or number(clip.input(2)) != 6 or not self.is_inner(value):
            return False
        add = maker(clip.inputs[0], "Add")
        return add is not None and operand_and_number(add) == (x, 3.0) and self.is_inner(clip.inputs[0])

    def gelu(self, node):
        """x (1 + erf(x / sqrt 2)) / 2, whichever factor stands first."""
        if node.op != "Mul":
            return
        factors, half = self.factors(node)
        if half is None or len(factors) != 2:
            return
        for x, sum_ in (factors, factors[::-1]):
            add = maker(sum_, "Add")
            if add is None or not self.is_inner(sum_):
                continue
            inner, one = operand_and_number(add)
            erf = maker(inner, "Erf") if one == 1 else None
            if erf is None or not self.is_inner(inner):
                continue
            arg = maker(erf.inputs[0], "Div", "Mul")
            if arg is None:
                continue
            y, scale = operand_and_number(arg)
            if y is x and abs((1 / scale if arg.op == "Div" else scale) - 0.5 ** 0.5) < 1e-4 and abs(half - 0.5) < 1e-6:
                return self.replace(node, "PlainGelu", [x])

    def factors(self, node):
        """The factors of a product of products that nobody else needs, and the number among them."""
        found, constant = [], 1.0
        for x in node.inputs:
            made = maker(x, "Mul")
            if number(x) is not None:
                constant *= number(x)
            elif made is not None and self.is_inner(x):
                more, c = self.factors(made)
                if more is None:
                    return None, None
                found += more
                constant *= c if c is not None else 1.0
            else:
                found.append(x)
        return (found, constant) if len(found) <= 4 else (None, None)

    def gelu_tanh(self, node):
        """x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2."""
        if node.op != "Mul":
            return
        factors, half = self.factors(node)
        if half is None or len(factors) != 2 or abs(half - 0.5) > 1e-6:
            return
        for x, sum_ in (factors, factors[::-1]):
            add = maker(sum_, "Add")
            inner, one = operand_and_number(add) if add is not None else (None, None)
            tanh = maker(inner, "Tanh") if one == 1 else None
            scaled = maker(tanh.inputs[0], "Mul") if tanh is not None else None
            if scaled is None:
                continue
            poly, scale = operand_and_number(scaled)
            sum_of_two = maker(poly, "Add")
            if sum_of_two is None or abs(scale - (2 / np.pi) ** 0.5) > 1e-4:
                continue
            cubic = other(sum_of_two, x)
            terms, factor = self.factors(maker(cubic, "Mul")) if maker(cubic, "Mul") else (None, None)
            if terms is None or abs(factor - 0.044715) > 1e-5:
                continue
            power = maker(terms[0], "Pow") if len(terms) == 1 else None
            if (power is not None and power.inputs[0] is x and number(power.inputs[1]) == 3) or (len(terms) == 3 and all(t is x for t in terms)):
                return self.replace(node, "TanhGelu", [x])

    # Norms

    def layer_norm(self, node):
        """(x - mean) / sqrt(mean((x - mean)^2) + eps) weight + bias along the last axis."""
        if node.op != "Add":
            return
        for product, bias in (node.inputs, node.inputs[::-1]):
            mul = maker(product, "Mul")
            if mul is None or not self.is_inner(product) or bias.const is None or bias.rank != 1:
                continue
            for ratio, weight in (mul.inputs, mul.inputs[::-1]):
                div = maker(ratio, "Div")
                if div is None or weight.const is None or weight.shape != bias.shape or not self.is_inner(ratio):
                    continue
                root = maker(div.inputs[1], "Sqrt")
                add = maker(root.inputs[0], "Add") if root is not None else None
                variance, eps = operand_and_number(add) if add is not None else (None, None)
                mean_of = maker(variance, "ReduceMean")
                square = maker(mean_of.inputs[0], "Pow", "Mul") if mean_of is not None else None
                if square is None or square.inputs[0] is not div.inputs[0]:
                    continue
                if square.op == "Pow" and number(square.inputs[1]) != 2 or square.op == "Mul" and square.inputs[1] is not div.inputs[0]:
                    continue
                sub = maker(div.inputs[0], "Sub")
                centre = maker(sub.inputs[1], "ReduceMean") if sub is not None else None
                if centre is None or centre.inputs[0] is not sub.inputs[0]:
                    continue
                x = sub.inputs[0]
                if all(self.along_last(m, x) for m in (mean_of, centre)) and weight.shape[0] == x.shape[-1]:
                    return self.replace(node, "LayerNormalization", [x, weight, bias], {"epsilon": eps, "axis": -1})

    def along_last(self, mean, x):
        axes = mean.input(1)
        return axes is not None and axes.const is not None and [axis_of(int(a), x.rank) for a in axes.const.reshape(-1)] == [x.rank - 1]

    # Attention

    def attention(self, node):
        """softmax(scale q k^T + mask) v."""
        if node.op != "MatMul":
            return
        weights, v = node.inputs
        soft = self.softmax_of(weights)
        if soft is None or axis_of(soft.attr("axis", -1), weights.rank) != weights.rank - 1 or v.rank not in (3, 4):
            return
        scores, mask, scale = soft.inputs[0], None, 1.0
        add = maker(scores, "Add")
        if add is not None and self.is_inner(scores):
            for s, m in (add.inputs, add.inputs[::-1]):
                if maker(s, "MatMul", "Mul", "Div") is not None and m.rank <= v.rank and m.rank >= 2 and m.dtype == v.dtype and self.leads_to_product(s):
                    scores, mask = s, m
                    break
            else:
                return
        while (made := maker(scores, "Mul", "Div")) is not None and self.is_inner(scores):
            x, factor = operand_and_number(made)
            if x is None:
                return
            scale *= 1 / factor if made.op == "Div" else factor
            scores = x
        product = maker(scores, "MatMul")
        if product is None or not self.is_inner(scores):
            return
        q, k = product.inputs
        sides = []
        for side in (q, k):
            made = maker(side, "Mul", "Div")
            if made is not None and self.is_inner(side):
                x, factor = operand_and_number(made)
                if x is not None:
                    scale *= 1 / factor if made.op == "Div" else factor
                    side = x
            sides.append(side)
        q, k = sides
        if q.rank != v.rank or k.rank != v.rank:
            return
        keys = self.keys_of(k)
        if keys is None:
            return
        self.replace(node, "Attention_", [q, keys, v, mask], {"scale": np.float32(scale)})

    def softmax_of(self, weights):
        """The Softmax that gives the weights, or gives them where they are not NaN: attention() gives 0 where no key is seen, too."""
        soft = maker(weights, "Softmax")
        if soft is not None:
            return soft if self.is_inner(weights) else None
        chosen = maker(weights, "Where")
        if chosen is None or not self.is_inner(weights) or number(chosen.inputs[1]) != 0:
            return None
        soft, test = maker(chosen.inputs[2], "Softmax"), maker(chosen.inputs[0], "IsNaN")
        is_guard = soft is not None and test is not None and test.inputs[0] is chosen.inputs[2] and self.is_inner(test.inputs[0], 2)
        return soft if is_guard and self.is_inner(chosen.inputs[0]) else None

    def keys_of(self, k):
        """The keys (..., S, d) of k (..., d, S), which is them with the last two axes exchanged; else None."""
        turned = maker(k, "Transpose")
        if turned is not None:
            source, order = turned.inputs[0], list(turned.attr("perm"))
            order[-2:] = order[:-3:-1]
            if order == sorted(order):
                return source
            return self.before(turned, "Transpose", source, [source.shape[a] for a in order], {"perm": order})
        # As (b h,d,S) and unfolded again.
        unfold = maker(k, "Reshape")
        swap = maker(unfold.inputs[0], "Transpose") if unfold is not None else None
        if swap is None or k.rank != 4 or list(swap.attr("perm") or []) != [0, 2, 1] or tuple(swap.inputs[0].shape[1:]) != (k.shape[3], k.shape[2]):
            return None
        return self.before(unfold, "Reshape", swap.inputs[0], [*k.shape[:2], k.shape[3], k.shape[2]], {})

    def before(self, node, op, source, shape, attrs):
        """What a new node in front of another one gives."""
        keys = Value(node.name + "_keys", source.dtype, tuple(shape))
        keys.maker = extra = Node(op, [source], [keys], attrs, node.name)
        keys.is_made, keys.ident = False, f"{len(self.builder.idents)}"
        self.builder.idents[keys.ident] = "keys"
        self.builder.nodes.insert(self.builder.nodes.index(node), extra)
        return keys

    def leads_to_product(self, value):
        while (made := maker(value, "Mul", "Div")) is not None:
            value, _ = operand_and_number(made)
            if value is None:
                return False
        return maker(value, "MatMul") is not None
