from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.frontends.models import SHUFFLENET, Array, latest_first, random_input, shared
from tvm_serenity.errors import CycleError, GraphError, InputError, UnsupportedError
from tvm_serenity.frontends import load
from tvm_serenity.frontends.model_file import ModelFile
from tvm_serenity.graph import Role, text
from tvm_serenity.memory import peak_bytes

onnx = pytest.importorskip("onnx")
helper = onnx.helper
F32, I64, BOOL = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL

GIVEN = [
    (SHUFFLENET, 446, 3_110_912),
    ("onnx_light/light_squeezenet.onnx", 105, 6_308_352),
    ("mlperf_tiny/ic_resnet8_fp32.onnx", 24, 196_608),
    ("mlperf_tiny/vww_mobilenetv1_96_fp32.onnx", 59, 294_912),
    ("detection/yunet_n_320_320.onnx", 115, 3_276_800),
]


def make(path: Path, nodes: list[Any], **options: Any) -> ModelFile:
    """A model of ``nodes`` from x to y, saved and loaded again."""
    shape = options.get("shape", ["N", 4])
    graph = helper.make_graph(
        nodes,
        "made",
        [helper.make_tensor_value_info("x", F32, shape)],
        [helper.make_tensor_value_info("y", F32, options.get("out"))],
        options.get("initializers", []),
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, producer_name="test"), path)
    return load(path, options.get("dims", {"N": 1}))


def vector(name: str, *values: float) -> Any:
    return helper.make_tensor(name, F32, [len(values)], list(values))


def node(kind: str, reads: str, makes: str, **attributes: Any) -> Any:
    return helper.make_node(kind, reads.split(","), makes.split(","), **attributes)


def run(data: bytes, optimise: bool) -> list[Array]:
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    levels = runtime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimise else levels.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    feeds = {
        entry.name: random_input([d if isinstance(d, int) else 1 for d in entry.shape], "float32")
        for entry in session.get_inputs()
    }
    return [np.asarray(value) for value in session.run(None, feeds)]


def test_small_model_reads_as_its_text_form(tmp_path: Path) -> None:
    nodes = [
        node("Constant", "", "half", value=vector("v", 0.5)),
        node("Clip", "x,,w", "a", name="cut"),
        node("Mul", "a,half", "b"),
        node("Add", "a,b", "y"),
    ]
    nodes[0].ClearField("input")
    top = helper.make_tensor("w", F32, [], [6.0])
    graph = make(tmp_path / "made.onnx", nodes, initializers=[top]).graph
    assert text.dump(graph) == text.dump(
        text.parse("""
            graph made.onnx
            input x[1,4]f32
            const w[]f32
            const "constant_0:half:value"[1]f32
            "constant_0:half" Constant: "constant_0:half:value" -> half[1]f32
            cut Clip: x w -> a[1,4]f32
            "mul_2:b" Mul: a half -> b[1,4]f32
            "add_3:y" Add: a b -> y[1,4]f32
            output y
        """)
    )
    assert graph.constant_ops == {0}
    assert peak_bytes(graph) == 48


def test_reordering_permutes_the_nodes_and_nothing_else(tmp_path: Path) -> None:
    nodes = [node("Relu", "x", "a"), node("Sigmoid", "x", "b"), node("Add", "a,b", "y")]
    model = make(tmp_path / "made.onnx", nodes)
    before = onnx.load(tmp_path / "made.onnx")
    after = onnx.ModelProto.FromString(model.reordered([1, 0, 2]))
    assert [n.op_type for n in after.graph.node] == ["Sigmoid", "Relu", "Add"]
    assert before.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "N"
    for proto in (before, after):
        del proto.graph.node[:]
    assert before == after
    with pytest.raises(InputError, match="not a topological order"):
        model.reordered([2, 0, 1])


def test_nodes_with_subgraphs_read_what_their_subgraphs_name(tmp_path: Path) -> None:
    y = helper.make_tensor_value_info("inner", F32, [1, 4])
    then = helper.make_graph([node("Add", "a,x", "inner")], "then", [], [y])
    other = helper.make_graph([node("Mul", "b,b", "inner")], "else", [], [y])
    nodes = [
        node("Relu", "x", "a"),
        node("Sigmoid", "x", "b"),
        node("If", "flag", "y", then_branch=then, else_branch=other),
    ]
    flag = helper.make_tensor("flag", BOOL, [], [True])
    graph = make(tmp_path / "made.onnx", nodes, initializers=[flag], out=[1, 4]).graph
    names = [graph.tensors[t].name for t in graph.ops[2].inputs]
    assert sorted(names) == ["a", "b", "flag", "x"]


def test_sizes_follow_the_branch_that_the_shape_of_a_value_takes(tmp_path: Path) -> None:
    """As torch.onnx writes what squeezes an axis of one element; an If states no size itself."""
    kept = helper.make_graph(
        [node("Identity", "x", "k")], "else", [], [helper.make_tensor_value_info("k", F32, None)]
    )
    cut = helper.make_graph(
        [node("Squeeze", "x,first", "s")],
        "then",
        [],
        [helper.make_tensor_value_info("s", F32, None)],
    )
    nodes = [
        node("Shape", "x", "shape"),
        node("Gather", "shape,zero", "rows"),
        node("Equal", "rows,one", "single"),
        node("If", "single", "c", then_branch=cut, else_branch=kept),
        node("Relu", "c", "y"),
    ]
    stored = [
        helper.make_tensor("first", onnx.TensorProto.INT64, [1], [0]),
        helper.make_tensor("zero", onnx.TensorProto.INT64, [], [0]),
        helper.make_tensor("one", onnx.TensorProto.INT64, [], [1]),
    ]
    for rows, shape in ((1, (4,)), (3, (3, 4))):
        path = tmp_path / f"{rows}.onnx"
        graph = make(path, nodes, initializers=stored, dims={"N": rows}, out=None).graph
        found = {t.name: t.shape for t in graph.tensors}
        assert found["c"] == found["y"] == shape
        assert [op.kind for op in graph.ops].count("If") == 1  # an op of the file, as it is


def test_initializers_are_constants_even_when_listed_as_inputs(tmp_path: Path) -> None:
    graph = make(tmp_path / "made.onnx", [node("Add", "x,w", "y")], initializers=[vector("w", 1)])
    assert [t.role for t in graph.graph.tensors] == [Role.CONSTANT, *[Role.ACTIVATION] * 2]
    proto = onnx.load(tmp_path / "made.onnx")
    proto.graph.input.append(helper.make_tensor_value_info("w", F32, [1]))
    onnx.save(proto, tmp_path / "old.onnx")
    again = load(tmp_path / "old.onnx", {"N": 1})
    assert again.graph.replace(name="") == graph.graph.replace(name="")


def test_named_dimensions_must_be_set(tmp_path: Path) -> None:
    nodes = [node("Relu", "x", "y")]
    with pytest.raises(UnsupportedError, match=r"'x': unknown size in \(N, 4\); set --dim N=1$"):
        make(tmp_path / "made.onnx", nodes, dims={})
    assert make(tmp_path / "made.onnx", nodes, dims={"N": 3}).graph.tensors[1].shape == (3, 4)
    with pytest.raises(
        InputError, match="no dimension is named 'M'; the dimensions of the model's inputs are: N"
    ):
        make(tmp_path / "made.onnx", nodes, dims={"M": 1})
    with pytest.raises(InputError, match="at least 1"):
        make(tmp_path / "made.onnx", nodes, dims={"N": 0})


def test_what_cannot_be_sized_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "made.onnx"
    foreign = node("Mystery", "x", "y", domain="com.example")
    with pytest.raises(UnsupportedError, match=r"made\.onnx: tensor 'y'"):
        make(path, [foreign])
    known = make(path, [foreign], out=[1, 2]).graph
    assert known.ops[0].kind == "com.example.Mystery"
    with pytest.raises(UnsupportedError, match="'s': is a sequence_type, not a tensor"):
        make(path, [node("SequenceConstruct", "x", "s"), node("SequenceLength", "s", "y")])


def test_sizes_that_stay_unknown_are_not_asked_for_again(tmp_path: Path) -> None:
    path = tmp_path / "made.onnx"
    nodes = [node("NonZero", "x", "a"), node("Cast", "a", "y", to=F32)]
    with pytest.raises(
        UnsupportedError, match=r"'x': unknown size in \(N, M\); set --dim N=1 --dim M=1$"
    ):
        make(path, nodes, shape=["N", "M"], out=["K", "L"], dims={})
    with pytest.raises(UnsupportedError, match=r"\(2, M\); set --dim M=1$"):
        make(path, nodes, shape=["N", "M"], out=["K", "L"], dims={"N": 2})
    said = r"'a': unknown size in \(2, .*\) although all inputs have sizes: operator NonZero comp"
    with pytest.raises(UnsupportedError, match=said):
        make(path, nodes, shape=["N", "M"], out=["K", "L"], dims={"N": 2, "M": 4})


def test_sizes_that_small_constants_decide_are_known(tmp_path: Path) -> None:
    reads = [
        node("Shape", "x", "s"),
        node("Gather", "s,last", "n"),
        node("Mul", "n,n", "nn"),
        node("Concat", "one,nn", "target", axis=0),
        node("Expand", "v,target", "wide"),
        node("ReduceSum", "wide", "y", keepdims=1),
    ]
    stored = [
        helper.make_tensor("last", I64, [1], [1]),
        helper.make_tensor("one", I64, [1], [1]),
        vector("v", 1.0),
    ]
    graph = make(tmp_path / "made.onnx", reads, initializers=stored).graph
    assert next(t.shape for t in graph.tensors if t.name == "wide") == (1, 16)


def test_a_custom_operators_scalar_is_no_size(tmp_path: Path) -> None:
    foreign = node("Mystery", "x", "y", domain="com.example")
    with pytest.raises(
        UnsupportedError, match=r"'y': computed by the custom .* com\.example\.Mystery"
    ):
        make(tmp_path / "made.onnx", [foreign], out=[])


def test_cycles_and_unsorted_nodes_are_named(tmp_path: Path) -> None:
    one, two = node("Add", "x,b", "a", name="one"), node("Relu", "a", "b", name="two")
    with pytest.raises(CycleError, match=r"made\.onnx: .*'one' -> 'two' -> 'one'"):
        make(tmp_path / "made.onnx", [one, two, node("Relu", "b", "y")])
    late = [node("Relu", "a", "y", name="late"), node("Relu", "x", "a", name="early")]
    with pytest.raises(GraphError, match=r"'late' reads tensor 'a' before op 'early'"):
        make(tmp_path / "made.onnx", late, out=[1, 4])


@pytest.mark.parametrize(("name", "ops", "peak"), GIVEN, ids=lambda v: str(v).split("/")[-1])
def test_given_peaks(name: str, ops: int, peak: int) -> None:
    graph = load(shared(name)).graph
    assert (len(graph.ops), peak_bytes(graph)) == (ops, peak)


@pytest.mark.parametrize("optimise", [False, True])
@pytest.mark.parametrize("name", [SHUFFLENET, "mlperf_tiny/ic_resnet8_fp32.onnx"])
def test_onnxruntime_gives_the_same_bits(name: str, optimise: bool) -> None:
    path = shared(name)
    model = load(path)
    order = latest_first(model.graph)
    assert order != sorted(order)
    moved = run(model.reordered(order), optimise)
    for before, after in zip(run(path.read_bytes(), optimise), moved, strict=True):
        np.testing.assert_array_equal(before, after)
