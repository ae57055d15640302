"""SwiftNet against the file it was taken from."""

from pathlib import Path

import numpy as np
import pytest

from tests.zoo.reading import Layer, constants, layers
from tvm_serenity import zoo

FILE = Path(__file__).parents[3] / "shared/data/models/swiftnet/swiftnet_vww_224_uint8.tflite"

KINDS = {
    "ADD": "add",
    "AVERAGE_POOL_2D": "nn.avg_pool2d",
    "CONCATENATION": "concat",
    "CONV_2D": "nn.conv2d",
    "DEPTHWISE_CONV_2D": "nn.depthwise",
    "FULLY_CONNECTED": "matmul",
    "MAX_POOL_2D": "nn.max_pool2d",
    "SOFTMAX": "nn.softmax",
    "SPLIT": "split",
}


@pytest.fixture(scope="module")
def file() -> list[Layer]:
    """The operators of the file, in its order."""
    if not FILE.exists():
        pytest.skip(f"the model {FILE.name} is not there")
    tflite = pytest.importorskip("tflite")
    model = tflite.Model.GetRootAsModel(FILE.read_bytes(), 0)
    graph = model.Subgraphs(0)
    names = {v: k for k, v in vars(tflite.BuiltinOperator).items() if isinstance(v, int)}
    made = {graph.Inputs(0): -1}
    found = []
    for i in range(graph.OperatorsLength()):
        op = graph.Operators(i)
        inputs = tuple(made[t] for t in op.InputsAsNumpy() if t in made)
        made[op.Outputs(0)] = i
        code = model.OperatorCodes(op.OpcodeIndex())
        kind = KINDS[names[max(code.BuiltinCode(), code.DeprecatedBuiltinCode())]]
        elements = int(np.prod(graph.Tensors(op.Outputs(0)).ShapeAsNumpy()))
        found.append(Layer(kind, inputs, elements))
    return found


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_the_network_is_the_files_operator_by_operator(file: list[Layer], layout: str) -> None:
    assert layers(zoo.build(f"swiftnet?layout={layout}")) == file


def test_without_the_split_the_rest_is_the_same(file: list[Layer]) -> None:
    rest = [
        Layer(x.kind, tuple(i - 1 if i else -1 for i in x.inputs), x.elements) for x in file[1:]
    ]
    assert layers(zoo.build("swiftnet?split=0")) == rest


@pytest.mark.parametrize(("cell", "first", "last"), [("a", 5, 32), ("b", 34, 56), ("c", 58, 81)])
@pytest.mark.parametrize("pool", [0, 1])
def test_a_cell_is_a_range_of_the_files_operators(
    file: list[Layer], cell: str, first: int, last: int, pool: int
) -> None:
    part = [
        Layer(x.kind, tuple(max(i - first, -1) for i in x.inputs), x.elements)
        for x in file[first : last + 1 + pool]
    ]
    assert layers(zoo.build(f"swiftnet-cell-{cell}?pool={pool}")) == part


def test_it_has_as_many_weights_as_the_file() -> None:
    # The file's two linear convolutions of a cell share one bias: 48, 80 and 76 elements.
    count = sum(c.size for c in constants(zoo.build("swiftnet")))
    assert count == 216_518 + 48 + 80 + 76


def test_nodes_with_concats_folded_are_serenitys() -> None:
    # MLSys 2020, table 2: 62 = {21, 19, 22}, each cell with the pooling behind it.
    cells = [layers(zoo.build(f"swiftnet-cell-{cell}?pool=1")) for cell in "abc"]
    assert [sum(x.kind != "concat" for x in cell) for cell in cells] == [21, 19, 22]
