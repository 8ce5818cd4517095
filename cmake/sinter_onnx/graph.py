"""A model of ONNX as it is read: checked, with all attributes that later versions made operands as operands."""
import os
import warnings
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LARGEST_FILE = 8 << 30
LARGEST_TENSOR = 8 << 30  # bytes
FLOATS = {np.dtype(np.float32): "float", np.dtype(np.float64): "double", np.dtype(np.float16): "half"}
ELEMENTS = {
    **FLOATS,
    np.dtype(np.int8): "std::int8_t", np.dtype(np.int16): "std::int16_t", np.dtype(np.int32): "std::int32_t",
    np.dtype(np.int64): "std::int64_t", np.dtype(np.uint8): "std::uint8_t", np.dtype(np.bool_): "bool",
}


class Refused(Exception):
    """The model cannot be converted; the text says what, where and what to do."""


# What a node whose operands, attributes or element types do not fit raises somewhere.
MISFIT = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def element_type(number, of):
    """NumPy's type of a number of TensorProto. Errors: Refused for one that is none."""
    try:
        return np.dtype(helper.tensor_dtype_to_np_dtype(number))
    except Exception:
        raise Refused(f"{of} of the unknown element type {number}") from None


@dataclass(eq=False)
class Value:
    """What an edge of the graph holds. `sizes` are the elements of an integer tensor, as far as they are sizes."""
    name: str
    dtype: object = None
    shape: tuple = None
    const: np.ndarray = None
    sizes: np.ndarray = None
    is_parameter: bool = False
    is_trained: bool = False  # one element that is no setting of an op: it stays a parameter
    users: list = field(default_factory=list)
    maker: object = None

    @property
    def rank(self):
        return len(self.shape)

    @property
    def known(self):
        """The elements, as numbers and sizes, or None."""
        return self.const if self.const is not None else self.sizes


@dataclass(eq=False)
class Node:
    op: str
    inputs: list
    outputs: list
    attrs: dict
    name: str
    proto: object = None
    place: int = 0

    def input(self, i):
        return self.inputs[i] if i < len(self.inputs) else None

    def attr(self, name, default=None):
        return self.attrs.get(name, default)


def named(node):
    return f'{node.op} "{node.name}"' if node.name else f'{node.op} that gives "{node.proto.output[0]}"'


def read_model(path):
    """The model, complete. Errors: Refused for a file that is no model, and for one that claims what it does not hold."""
    path = os.fspath(path)
    try:
        size = os.path.getsize(path)
    except OSError as e:
        raise Refused(f"{path}: {e.strerror}") from None
    if size > LARGEST_FILE:
        raise Refused(f"{path}: {size} bytes; models of more than {LARGEST_FILE} are not read")
    try:
        model = onnx.load(path, load_external_data=False)
    except Exception as e:
        raise Refused(f"{path}: no model of ONNX ({type(e).__name__}: {e})") from None
    if not model.graph.node and not model.graph.output:
        raise Refused(f"{path}: no model of ONNX: its graph is empty")
    _read_outside(model, os.path.dirname(os.path.abspath(path)), path)
    check_tensors(model.graph, path)
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    try:
        onnx.checker.check_model(model)
    except Exception as e:
        raise Refused(f"{path}: {str(e).strip().splitlines()[0]}") from None
    return model


def _read_outside(model, folder, path):
    """Data that stands in other files of the model's folder, and nowhere else."""
    from onnx.external_data_helper import ExternalDataInfo, uses_external_data
    home = os.path.realpath(folder)
    for tensor in _tensors(model.graph):
        if not uses_external_data(tensor):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of keys that ONNX does not know
                info = ExternalDataInfo(tensor)
            begin, length = int(info.offset or 0), int(info.length or 0)
            file = os.path.realpath(os.path.join(home, info.location))
            is_there = not os.path.isabs(info.location) and os.path.commonpath([home, file]) == home and os.path.isfile(file)
        except (ValueError, TypeError, AttributeError, OSError) as e:
            raise Refused(f'{path}: the data of "{tensor.name}" is said to be in another file, but not where ({str(e)[:100]})') from None
        if not is_there:
            raise Refused(f'{path}: the data of "{tensor.name}" would be in {info.location!r}, '
                          f"which is no file in the folder of the model")
        length = length or os.path.getsize(file) - begin
        if begin < 0 or length < 0 or begin + length > os.path.getsize(file):
            raise Refused(f'{path}: the data of "{tensor.name}" would be bytes {begin} to {begin + length} of {info.location}, '
                          f"which has {os.path.getsize(file)}")
        with open(file, "rb") as data:
            data.seek(begin)
            tensor.raw_data = data.read(length)
        del tensor.external_data[:]
        tensor.data_location = TensorProto.DEFAULT


def _graphs(graph):
    yield graph
    for node in graph.node:
        for a in node.attribute:
            for inner in ([a.g] if a.type == onnx.AttributeProto.GRAPH else a.graphs):
                yield from _graphs(inner)


def _tensors(graph):
    for g in _graphs(graph):
        yield from g.initializer
        for node in g.node:
            for a in node.attribute:
                if a.type == onnx.AttributeProto.TENSOR:
                    yield a.t


def check_tensors(graph, path):
    """Errors: Refused for a tensor whose shape is not that of its data."""
    for tensor in _tensors(graph):
        count = 1
        for extent in tensor.dims:
            if extent < 0:
                raise Refused(f'{path}: the tensor "{tensor.name}" has the extent {extent}')
            count *= extent
        if count > LARGEST_TENSOR:
            raise Refused(f'{path}: the tensor "{tensor.name}" would have {count} elements')
        try:
            bits = 8 * np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type)).itemsize
        except Exception:
            raise Refused(f'{path}: the tensor "{tensor.name}" has the unknown element type {tensor.data_type}') from None
        if tensor.HasField("raw_data") and tensor.data_type not in (TensorProto.INT4, TensorProto.UINT4):
            if len(tensor.raw_data) * 8 != count * bits:
                raise Refused(f'{path}: the tensor "{tensor.name}" of shape {list(tensor.dims)} has {len(tensor.raw_data)} bytes '
                              f"of data in place of {count * bits // 8}")


def array(tensor):
    """The elements of a TensorProto; those of bfloat16 as float."""
    values = numpy_helper.to_array(tensor)
    if values.dtype not in ELEMENTS and values.dtype.kind not in "USO" and values.dtype not in (
            np.uint16, np.uint32, np.uint64):
        values = values.astype(np.float32)
    return values


def attributes(proto):
    out = {}
    for a in proto.attribute:
        value = helper.get_attribute_value(a)
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        elif isinstance(value, (list, tuple)) or type(value).__name__.startswith("Repeated"):
            value = [v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in value]
        out[a.name] = value
    return out


# Operands that were attributes once: op -> (attribute, operand, element type).
ONCE = {
    "Squeeze": [("axes", 1)], "Unsqueeze": [("axes", 1)], "Slice": [("starts", 1), ("ends", 2), ("axes", 3)],
    "Pad": [("pads", 1), ("value", 2)], "Clip": [("min", 1), ("max", 2)], "Split": [("split", 1)], "TopK": [("k", 1)],
    "Upsample": [("scales", 1)], "Dropout": [("ratio", 1)],
    **{f"Reduce{kind}": [("axes", 1)]
       for kind in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")},
}


def modern(op, attrs, inputs, dtype):
    """Attributes become operands; `inputs` are Values, `dtype` is that of the first."""
    for attribute, place in ONCE.get(op, []):
        if attribute not in attrs:
            continue
        given = attrs.pop(attribute)
        while len(inputs) <= place:
            inputs.append(None)
        if inputs[place] is None:
            is_float = isinstance(given, float) or (isinstance(given, list) and given and isinstance(given[0], float))
            values = np.array(given, dtype=(dtype if attribute in ("value", "min", "max") else np.float32) if is_float else np.int64)
            if op == "TopK":
                values = values.reshape(1)
            inputs[place] = Value(f"{op}_{attribute}", values.dtype, values.shape, values)
    return op, attrs, inputs
