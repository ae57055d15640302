"""Regions between DequantizeLinear and QuantizeLinear, one operator each.

Where results are rounded as floats they are at most one step from onnxruntime's. Where they are
rounded as LiteRT does, a region is read into the record of an operator whose numpy reference is
computed bit by bit; ``tests/conformance/test_references.py`` compares that reference with LiteRT.
"""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import only_exhaustive
from tests.conformance.test_references import cases, read
from tests.conformance.writer import Array
from tests.quantize.qdq import Q, Region, network
from tests.quantize.running import Machine
from tests.quantize.runtime import session
from tvm_serenity.errors import SerenityError
from tvm_serenity.frontends.relax import to_relax
from tvm_serenity.operators import operator as known
from tvm_serenity.operators.add import SumOfPowers
from tvm_serenity.operators.fully_connected import FullyConnected
from tvm_serenity.relax import quantize_records
from tvm_serenity.relax.attributes import OPERATORS
from tvm_serenity.relax.quantize import kept_float, quantized_module

X = Q((1, 4, 7, 6), "int8", 0.05, 3)
Y = Q((1, 4, 7, 6), "int8", 0.02, -6)
ROW = Q((4, 1, 1), "int8", 0.02, -6)
TURNED = Q((4, 6, 3, 3), "int8", [0.01 + 0.001 * i for i in range(6)], axis=1)
WEIGHTS, FEW = Q((6, 4, 3, 3), "int8", 0.01), Q((4, 1, 3, 3), "int8", 0.01)
PADS = {"pads": [1, 1, 1, 1]}
WINDOW = {"kernel_shape": [3, 3], "strides": [2, 2]}
AROUND = np.asarray([0, 0, 1, 1, 0, 0, 1, 2])
TWICE = (np.asarray([], np.float32), np.asarray([1, 1, 2, 2], np.float32))
SIZES = (*TWICE[:1], TWICE[0], np.asarray([1, 4, 11, 5]))
LINEAR = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
FLOATS = np.linspace(-0.8, 0.7, 4, dtype=np.float32).reshape(4, 1, 1)
WANTED = np.arange(42).reshape(7, 6) % 3 == 1
NEAREST = {
    "mode": "nearest",
    "coordinate_transformation_mode": "asymmetric",
    "nearest_mode": "floor",
}


def drawn(tensor: Q) -> Q:
    """The tensor as a constant of seeded values."""
    info = np.iinfo(tensor.dtype)
    rng = np.random.default_rng(sum(tensor.shape))
    return replace(tensor, data=rng.integers(info.min + 1, info.max, tensor.shape, tensor.dtype))


def made(*shape: int, scale: float = 0.1, zero: int = -2) -> Q:
    return Q(shape, "int8", scale, zero)


def bias(tensor: Q) -> Q:
    count = tensor.shape[tensor.axis]
    scale = np.multiply(0.05, tensor.scale).tolist()
    return Q((count,), "int32", scale, 0, np.arange(count) * 100 - 200)


SCALES = replace(WEIGHTS, scale=[0.01 + 0.002 * i for i in range(6)])
SAME = made(1, 4, 7, 6)
FORMS: dict[str, tuple[Any, ...]] = {
    "conv": ("Conv", [X, drawn(WEIGHTS), bias(WEIGHTS)], made(1, 6, 7, 6, scale=0.3), PADS),
    "conv, a scale per channel": (
        *("Conv", [X, drawn(SCALES), bias(SCALES)], made(1, 6, 4, 3, scale=0.3)),
        *({**PADS, "strides": [2, 2]}, ("Relu",)),
    ),
    "conv, bias of floats": (
        *("Conv", [X, drawn(WEIGHTS), np.linspace(-1, 1, 6).astype(np.float32)]),
        *(made(1, 6, 5, 4, scale=0.2), {}, ("Clip", 0.0, 6.0)),
    ),
    "conv transpose": (
        *("ConvTranspose", [X, drawn(TURNED), bias(TURNED)], made(1, 6, 14, 12, scale=0.3)),
        *({"strides": [2, 2], "pads": [1, 0, 0, 1]}, ("Relu",)),
    ),
    "depthwise": ("Conv", [X, drawn(FEW)], SAME, {**PADS, "group": 4}),
    "dense": (
        "MatMul",
        [Q((2, 3, 24), "int8", 0.05, 3), drawn(Q((24, 10), "int8", 0.01))],
        made(2, 3, 10, scale=0.3),
    ),
    "matmul": (
        "MatMul",
        [Q((2, 3, 5), "int8", 0.1, 9), Q((2, 5, 4), "int8", 0.07, -3)],
        made(2, 3, 4, scale=0.2),
    ),
    "matmul, weights of a batch": (
        *(
            "MatMul",
            [Q((2, 3, 5), "int8", 0.1, 9), drawn(Q((2, 5, 4), "int8", 0.07))],
        ),
        made(2, 3, 4, scale=0.2),
    ),
    "add": ("Add", [X, Y], SAME),
    "sub from floats": ("Sub", [FLOATS, X], SAME),
    "mul, floats": ("Mul", [X, FLOATS], SAME),
    "where": ("Where", [WANTED, X, Y], SAME),
    "add, relu": ("Add", [X, Y], SAME, {}, ("Relu",)),
    "sub, broadcast": ("Sub", [X, drawn(ROW)], SAME),
    "mul": ("Mul", [X, Y], SAME),
    "mul, clip": ("Mul", [X, Y], SAME, {}, ("Clip", -1.0, 1.0)),
    "max": ("Max", [X, ROW], SAME),
    "min, constant": ("Min", [X, drawn(ROW)], SAME),
    "max, number": ("Max", [X, np.float32(0.7)], SAME),
    "prelu": ("PRelu", [X, drawn(replace(ROW, zero=0))], SAME),
    "prelu, floats": ("PRelu", [X, FLOATS], SAME),
    "leaky relu": ("LeakyRelu", [X], SAME, {"alpha": 0.2}),
    "sigmoid": ("Sigmoid", [X], made(1, 4, 7, 6, scale=1 / 256, zero=-128)),
    "tanh": ("Tanh", [X], made(1, 4, 7, 6, scale=1 / 128, zero=0)),
    "tanh, relu": ("Tanh", [X], made(1, 4, 7, 6, scale=1 / 128, zero=0), {}, ("Relu",)),
    "erf": ("Erf", [X], made(1, 4, 7, 6, scale=1 / 128, zero=0)),
    "hard swish": ("HardSwish", [X], SAME),
    "clip": ("Clip", [X, np.float32(0), np.float32(6)], SAME),
    "average pool": ("AveragePool", [X], made(1, 4, 3, 2, scale=0.05, zero=3), WINDOW),
    "average pool, to another scale": ("AveragePool", [X], made(1, 4, 3, 2), WINDOW),
    "average pool, border counted": (
        *("AveragePool", [X], made(1, 4, 4, 3, scale=0.05, zero=3)),
        {**WINDOW, **PADS, "count_include_pad": 1},
    ),
    "average pool, border not counted": (
        *("AveragePool", [X], made(1, 4, 4, 3), {**WINDOW, **PADS}),
    ),
    "max pool": ("MaxPool", [X], made(1, 4, 4, 3), {**WINDOW, **PADS}),
    "global average": ("GlobalAveragePool", [X], made(1, 4, 1, 1)),
    "mean": ("ReduceMean", [X, np.asarray([2, 3])], made(1, 4, 1, 1)),
    "sum": ("ReduceSum", [X, np.asarray([3])], made(1, 4, 7, 1)),
    "reduce max": ("ReduceMax", [X, np.asarray([2])], made(1, 4, 1, 6)),
    "concat": ("Concat", [X, Q((1, 3, 7, 6), "int8", 0.03, 1)], made(1, 7, 7, 6), {"axis": 1}),
    "transpose": ("Transpose", [X], made(1, 7, 6, 4), {"perm": [0, 2, 3, 1]}),
    "pad": ("Pad", [X, AROUND], made(1, 4, 9, 9)),
    "pad, by a stored number": ("Pad", [X, AROUND, np.float32(0.1)], made(1, 4, 9, 9)),
    "resize nearest": ("Resize", [X, *TWICE], made(1, 4, 14, 12), NEAREST),
    "resize": ("Resize", [X, *TWICE], made(1, 4, 14, 12, scale=0.05, zero=3), LINEAR),
    "resize, odd sizes": (
        *("Resize", [X, *SIZES], made(1, 4, 11, 5)),
        {**LINEAR, "coordinate_transformation_mode": "align_corners"},
    ),
    "slice": ("Slice", [X, *(np.asarray([n]) for n in (1, 5, 2))], made(1, 4, 4, 6)),
    "softmax": ("Softmax", [X], made(1, 4, 7, 6, scale=1 / 256, zero=-128), {"axis": -1}),
    "softmax, channels": (
        *("Softmax", [X], made(1, 4, 7, 6, scale=1 / 256, zero=-128)),
        {"axis": 1},
    ),
    "round": ("Round", [X], SAME),
}


REGIONS = {name: Region(*form) for name, form in FORMS.items()}
PLAIN = {"kind": "llvm", "opt-level": 0}
"""Without LLVM's optimiser, which takes most of the time and is not what is tested."""
RECORDS = {
    "max": 3,
    "min, constant": 3,
    "where": 2,
    "average pool, border not counted": 2,
    "resize, odd sizes": 2,
}
"""Records of one region, where it is not one or an expression: operands or result are rescaled."""
TURNED_ROUND = (
    *("conv transpose", "resize", "softmax, channels"),
    *("sub from floats", "mul, floats", "prelu, floats"),
)
"""Regions whose operands are turned or stored before the record reads them."""
MOVED = (
    "max pool",
    "pad, by a stored number",
    "reduce max",
    "transpose",
    "pad",
    "resize nearest",
    "slice",
)
"""Regions that move or choose elements, then rescale them."""
EXPRESSIONS = ("max, number", "erf", "hard swish", "round")
"""Functions of one value that are evaluated as they are."""


def of(name: str, dtype: str) -> Region:
    """The region with its activations in a type; uint8 is int8 128 steps up."""
    region = REGIONS[name]

    def turned(tensor: Any) -> Any:
        if not isinstance(tensor, Q) or tensor.dtype != "int8" or dtype == "int8":
            return tensor
        if tensor.data is not None and region.kind in ("Conv", "MatMul"):
            return tensor
        data = None if tensor.data is None else tensor.data.astype(np.int16) + 128
        return replace(tensor, dtype="uint8", zero=tensor.zero + 128, data=data)

    operands = [turned(operand) for operand in region.operands]
    return replace(region, operands=operands, result=turned(region.result))


def drawn_inputs(dtype: str, seed: int) -> dict[str, list[Array]]:
    """The inputs of each region."""
    rng, info = np.random.default_rng(seed), np.iinfo(dtype)
    return {
        name: [
            rng.integers(info.min, info.max, x.shape, dtype, endpoint=True)
            for x in region.operands
            if isinstance(x, Q) and x.data is None
        ]
        for name, region in REGIONS.items()
    }


def converted(data: bytes, folder: Path, rounding: str) -> Any:
    path = folder / "model.onnx"
    path.write_bytes(data)
    module = quantized_module(to_relax(path), rounding)
    assert kept_float(module) == ()
    return module


def computed(dtype: str, rounding: str, folder: Path) -> Iterator[tuple[Any, Any]]:
    """Inputs and results of all regions, by their names, of some seeds."""
    data = network([of(name, dtype) for name in REGIONS])
    machine = Machine(converted(data, folder, rounding), PLAIN)
    for seed in range(4):
        inputs = drawn_inputs(dtype, seed)
        results = machine.run([x for arrays in inputs.values() for x in arrays])
        yield inputs, dict(zip(REGIONS, results, strict=True))


@pytest.mark.parametrize("dtype", [only_exhaustive("int8"), "uint8"])
def test_regions_are_at_most_a_step_from_onnxruntime(dtype: str, tmp_path: Path) -> None:
    runtime = session(network([of(name, dtype) for name in REGIONS]))
    names = [entry.name for entry in runtime.get_inputs()]
    for inputs, results in computed(dtype, "float", tmp_path):
        arrays = [x for given in inputs.values() for x in given]
        made = runtime.run(None, dict(zip(names, arrays, strict=True)))
        wanted = dict(zip(REGIONS, made, strict=True))
        steps = {n: int(np.abs(results[n].astype(int) - wanted[n]).max()) for n in REGIONS}
        assert {name: found for name, found in steps.items() if found > 1} == {}
        assert all(results[name].dtype == wanted[name].dtype for name in REGIONS)
        assert [name for name, found in wanted.items() if len(np.unique(found)) < 2] == []


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """The kinds and records that regions are read into, while the test runs."""
    found: list[tuple[str, Any]] = []

    def spying(kind: str) -> Any:
        record = known(kind)

        def compute(op: Any, values: Any, calls: Any) -> Any:
            assert record.integers.compute is not None
            found.append((kind, op))
            return record.integers.compute(op, values, calls)

        return replace(record, integers=replace(record.integers, compute=compute))

    monkeypatch.setattr(quantize_records, "operator", spying)
    return found


@pytest.mark.parametrize("dtype", ["int8", only_exhaustive("uint8")])
def test_regions_compute_the_references_of_their_records(
    dtype: str, tmp_path: Path, records: list[tuple[str, Any]]
) -> None:
    read_as = {}
    for name in REGIONS:
        converted(network([of(name, dtype)]), tmp_path, "tflite")
        read_as[name] = records.copy()
        records.clear()
    assert {n: len(r) for n, r in read_as.items() if len(r) != 1} == {
        **RECORDS,
        **dict.fromkeys(EXPRESSIONS, 0),
    }
    for inputs, results in computed(dtype, "tflite", tmp_path):
        for name, found in read_as.items():
            if len(found) != 1 or name in (*MOVED, *TURNED_ROUND):
                continue
            ((kind, record),) = found
            reference = known(kind).integers.reference
            assert reference is not None
            given = constants(of(name, dtype), inputs[name])
            wanted = reference(record, *given)
            assert np.array_equal(results[name], wanted), (name, kind)


def constants(region: Region, inputs: list[Array]) -> list[Array]:
    """The stored operands of a region."""
    left = iter(inputs)
    operands = [x for x in region.operands if isinstance(x, Q)]
    return [next(left) if x.data is None else np.asarray(x.data, x.dtype) for x in operands]


SHARED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "ADD", "SUB", "MUL", "MEAN", "SUM")


@pytest.mark.parametrize("kind", [*SHARED, "CONCATENATION"])
def test_a_region_is_read_as_the_operator_of_a_file(
    kind: str, tmp_path: Path, records: list[tuple[str, Any]]
) -> None:
    compared = 0
    for case in cases(kind, 8, 5):
        straight = read(case, tmp_path)
        if straight is None or isinstance(straight[0].record, SumOfPowers):  # an option of files
            continue
        try:  # TVM's importer has a few of them in another form, or not at all
            module = to_relax(tmp_path / "model.tflite", integers="off")
        except SerenityError:
            continue
        module["main"] = module["main"].without_attr(OPERATORS)
        records.clear()
        quantized_module(module)
        for _, record in records:
            assert same(record, straight[0].record), case.note
            compared += 1
    assert compared >= 2


def same(left: Any, right: Any) -> bool:
    """Whether two records are of one type and hold the same."""
    if is_dataclass(left):
        views = ("source", "made") if isinstance(left, FullyConnected) else ()
        names = [field.name for field in fields(left) if field.name not in views]
        alike = all(same(getattr(left, n), getattr(right, n)) for n in names)
        return type(left) is type(right) and alike
    if isinstance(left, np.ndarray):
        return bool(left.dtype == right.dtype and np.array_equal(left, right))
    return bool(left == right)
