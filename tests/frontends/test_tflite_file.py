from pathlib import Path

import numpy as np
import pytest

from tests.frontends.models import (
    ADD,
    ASSIGN,
    CALL_ONCE,
    READ,
    RELU,
    SWIFTNET,
    VAR_HANDLE,
    Array,
    TfliteOp,
    TfliteTensor,
    latest_first,
    random_input,
    shared,
    small_tflite,
    tflite_model,
)
from tvm_serenity.errors import GraphError, InputError, UnsupportedError
from tvm_serenity.frontends import load
from tvm_serenity.graph import Graph, Role, is_order, text
from tvm_serenity.memory import peak_bytes
from tvm_serenity.schedule import schedule

GIVEN = [
    (SWIFTNET, 85, 351_232),
    ("mltk/mltk_keyword_spotting_on_off_v3.tflite", 107, 21_560),
    ("misc/style_transfer_quantized_384.tflite", 295, 18_972_950),
    ("mcunet/mcunet_vww_int8.tflite", 63, 161_472),
    ("tflm/person_detect.tflite", 31, 55_296),
    ("tflm/micro_speech_quantized.tflite", 4, 5_960),
    ("tflm/keyword_scrambled_8bit.tflite", 15, 288),
]
REORDERED = [
    SWIFTNET,
    "mltk/mltk_keyword_spotting_on_off_v3.tflite",
    *(f"mlperf_tiny/{name}_int8.tflite" for name in ("ad01", "kws_dscnn", "sww_streaming")),
    *(f"mlperf_tiny/{name}_fp32.tflite" for name in ("ad01", "kws_dscnn", "ic_resnet8")),
    *(f"mlperf_tiny/{name}_int8.tflite" for name in ("ic_resnet8", "ic_resnet_large")),
    *(f"mlperf_tiny/vww_mobilenetv1_96_{width}.tflite" for width in ("fp32", "int8")),
]


def graph_of(tmp_path: Path, data: bytes) -> Graph:
    path = tmp_path / "made.tflite"
    path.write_bytes(data)
    return load(path).graph


def litert_outputs(data: bytes) -> list[Array]:
    interpreter = pytest.importorskip("ai_edge_litert.interpreter").Interpreter(model_content=data)
    interpreter.allocate_tensors()
    for seed, entry in enumerate(interpreter.get_input_details()):
        value = random_input(entry["shape"], np.dtype(entry["dtype"]).name, seed)
        interpreter.set_tensor(entry["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(entry["index"]) for entry in interpreter.get_output_details()]


def test_small_file_reads_as_its_text_form(tmp_path: Path) -> None:
    assert text.dump(graph_of(tmp_path, small_tflite())) == text.dump(
        text.parse("""
            graph made.tflite
            input x[1,4]f32
            const w[1,4]f32
            "relu_0:a" RELU: x -> a[1,4]f32
            "logistic_1:b" LOGISTIC: x -> b[1,4]f32
            "add_2:c" ADD: b w -> c[1,4]f32
            "add_3:y" ADD: a c -> y[1,4]f32
            output y
        """)
    )


def test_reordering_moves_the_operator_offsets_and_nothing_else(tmp_path: Path) -> None:
    data = small_tflite()
    path = tmp_path / "made.tflite"
    path.write_bytes(data)
    model = load(path)
    moved = model.reordered([1, 2, 0, 3])
    differing = [i for i, (a, b) in enumerate(zip(data, moved, strict=True)) if a != b]
    assert differing
    assert differing[-1] - differing[0] < 4 * 4
    path.write_bytes(moved)
    again = load(path)
    assert [op.kind for op in again.graph.ops] == ["LOGISTIC", "ADD", "RELU", "ADD"]
    assert again.reordered([2, 0, 1, 3]) == data
    with pytest.raises(InputError, match="not a topological order"):
        model.reordered([3, 2, 1, 0])
    for before, after in zip(litert_outputs(data), litert_outputs(moved), strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("name", ["model_control_dependencies", "OfflineMemoryAllocation"])
def test_metadata_that_depends_on_the_order_pins_it(tmp_path: Path, name: str) -> None:
    data = small_tflite(metadata=name)
    path = tmp_path / "made.tflite"
    path.write_bytes(data)
    model = load(path)
    assert model.reordered([0, 1, 2, 3]) == data
    with pytest.raises(UnsupportedError, match=name):
        model.reordered([1, 0, 2, 3])


def test_variables_are_state_and_keep_their_order(tmp_path: Path) -> None:
    resource = 13
    tensors = [
        TfliteTensor("x"),
        TfliteTensor("handle", (1,), resource),
        TfliteTensor("old"),
        TfliteTensor("new"),
        TfliteTensor("again", (1,), resource),
        TfliteTensor("h", variable=True),
        TfliteTensor("y"),
    ]
    ops = [
        TfliteOp(CALL_ONCE, (), ()),
        TfliteOp(VAR_HANDLE, (), (1,), handle="v"),
        TfliteOp(READ, (1,), (2,)),
        TfliteOp(ADD, (0, 2), (3,)),
        TfliteOp(VAR_HANDLE, (), (4,), handle="v"),
        TfliteOp(ASSIGN, (4, 3), ()),
        TfliteOp(ADD, (3, 5), (6,)),
    ]
    graph = graph_of(tmp_path, tflite_model(tensors, ops, (0,), (6,)))
    assert [t.name for t in graph.tensors if t.role is Role.STATE] == ["handle", "again", "h"]
    assert graph.state_bytes == 16 + 16
    assert graph.predecessors[0] == ()  # the initialisation comes first, before the handles
    assert graph.predecessors[1] == (0,)
    assert all(op < i for i, before in enumerate(graph.predecessors) for op in before)
    assert is_order(graph, schedule(graph).order)
    assert not is_order(graph, (0, 1, 3, 2, 4, 5, 6))  # reads what was assigned
    assert graph.predecessors[5] == (3, 4)  # both handles are the same variable
    assert graph.ops[1].outputs == graph.ops[4].outputs


@pytest.mark.parametrize(
    ("tensor", "error", "message"),
    [
        (TfliteTensor("y", (1, -1)), UnsupportedError, "'y': unknown dimension"),
        (TfliteTensor("y", (1, 4), 5), UnsupportedError, "'y': string"),
        (TfliteTensor("y", (1, 4), 99), UnsupportedError, "'y': unknown element type 99"),
        (TfliteTensor("y", (2**31 - 1,) * 3), UnsupportedError, "'y': shape .* takes more than"),
    ],
)
def test_sizes_that_are_not_known_are_refused(
    tmp_path: Path, tensor: TfliteTensor, error: type[Exception], message: str
) -> None:
    data = tflite_model([TfliteTensor("x"), tensor], [TfliteOp(RELU, (0,), (1,))], (0,), (1,))
    with pytest.raises(error, match=message) as caught:
        graph_of(tmp_path, data)
    assert "made.tflite: " in str(caught.value)


def test_types_narrower_than_a_byte_are_packed_and_unused_tensors_ignored(tmp_path: Path) -> None:
    int4 = 17
    tensors = [TfliteTensor("x", (3, 5), int4), TfliteTensor("y", (3, 5), int4)]
    tensors += [TfliteTensor("y", (2,)), TfliteTensor("scratch", (-1,))]
    ops = [TfliteOp(RELU, (0, -1), (1,)), TfliteOp(RELU, (0,), (2,))]
    graph = graph_of(tmp_path, tflite_model(tensors, ops, (0,), (1, 2)))
    assert [(t.name, t.size_bytes) for t in graph.tensors] == [
        *(("x", 8), ("y", 8), ("y_2", 8), ("scratch", 0)),
    ]
    assert graph.ops[0].inputs == (0,)


def test_operators_in_no_valid_order_are_named(tmp_path: Path) -> None:
    tensors = [TfliteTensor(name) for name in "xab"]
    ops = [TfliteOp(RELU, (2,), (1,)), TfliteOp(RELU, (1,), (2,))]
    with pytest.raises(GraphError, match=r"made.tflite: .*relu_0:a.*relu_1:b"):
        graph_of(tmp_path, tflite_model(tensors, ops, (0,), (1,)))


@pytest.mark.parametrize(("name", "ops", "peak"), GIVEN, ids=lambda v: str(v).split("/")[-1])
def test_given_peaks(name: str, ops: int, peak: int) -> None:
    graph = load(shared(name)).graph
    assert (len(graph.ops), peak_bytes(graph)) == (ops, peak)


@pytest.mark.parametrize("name", REORDERED, ids=lambda name: name.split("/")[-1])
def test_litert_gives_the_same_bits(name: str) -> None:
    path = shared(name)
    model = load(path)
    order = latest_first(model.graph)
    moved = model.reordered(order)
    original = path.read_bytes()
    assert (moved == original) == (order == sorted(order))
    for before, after in zip(litert_outputs(original), litert_outputs(moved), strict=True):
        np.testing.assert_array_equal(before, after)


def test_names_cannot_drive_the_terminal(tmp_path: Path) -> None:
    tensors = [TfliteTensor("\x1b[2Jx"), TfliteTensor("a\r\u202eb"), TfliteTensor("naïve")]
    graph = graph_of(tmp_path, tflite_model(tensors, [TfliteOp(ADD, (0, 1), (2,))], (0, 1), (2,)))
    assert [t.name for t in graph.tensors] == ["\\x1b[2Jx", "a\\r\\u202eb", "naïve"]
