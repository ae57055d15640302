"""Truncated and bit-flipped files: read, or refused in one line, quickly."""

import contextlib
import random
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cases import only_exhaustive
from tests.conformance.writer import Node, Subgraph, T, tflite
from tests.frontends.models import shared, small_tflite
from tvm_serenity.errors import SerenityError
from tvm_serenity.frontends import load

CASES = 300
FILES = [
    "tflm/hello_world_int8.tflite",
    "misc/split_concat.tflite",
    only_exhaustive("onnx_light/light_squeezenet.onnx"),
    "onnx_light/light_zfnet512.onnx",
]


def small_onnx() -> bytes:
    onnx = pytest.importorskip("onnx")
    value = onnx.helper.make_tensor_value_info
    nodes = [
        onnx.helper.make_node(kind, [a], [b], name=f"{kind} {a}")
        for kind, a, b in (("Relu", "x", "a"), ("Sigmoid", "a", "b"), ("Softmax", "b", "y"))
    ]
    x, y = (value(name, onnx.TensorProto.FLOAT, [1, 3, 4]) for name in "xy")
    graph = onnx.helper.make_graph(nodes, "made", [x], [y])
    return bytes(onnx.helper.make_model(graph, producer_name="test").SerializeToString())


def damage(rng: random.Random, data: bytes) -> bytes:
    if rng.random() < 0.3:
        return data[: rng.randrange(1, len(data))]
    damaged = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8, 40))):
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def unmeant(path: Path) -> None:
    """Ask for operators that cannot be computed, as commands do before TVM is imported."""
    with contextlib.suppress(SerenityError):
        load(path).check_operators()


def refusal(path: Path, **how: Any) -> str:
    """What the loader says about the file, or nothing if it can be read."""
    try:
        load(path, **how)
    except SerenityError as error:
        return str(error)
    return ""


def attack(path: Path, data: bytes, **how: Any) -> None:
    rng = random.Random(path.name)
    for case in range(CASES):
        path.write_bytes(damage(rng, data))
        start = time.process_time()
        message = refusal(path, **how)
        assert time.process_time() - start < 1, case
        assert message.startswith(f"{path}: ") or not message, case
        assert "\n" not in message, case
        assert len(message) < 600, case
        if not message:
            unmeant(path)


def test_made_files(tmp_path: Path) -> None:
    attack(tmp_path / "made.tflite", small_tflite())
    attack(tmp_path / "made.onnx", small_onnx())


@pytest.mark.parametrize("name", FILES)
def test_shared_files(tmp_path: Path, name: str) -> None:
    path = shared(name)
    attack(tmp_path / path.name, path.read_bytes())


def test_a_signature_and_sizes_of_a_damaged_file(tmp_path: Path) -> None:
    ends = [T((1, 4), "float32", name=name, signature=(-1, -1)) for name in "xy"]
    other = Subgraph(ends, [Node("ABS", [0], [1])], [0], [1], "other")
    data = tflite(ends, [Node("RELU", [0], [1])], [0], [1], [other], "one")
    how = {"signature": "other", "dims": {"x:0": 3, "x:1": 5}}
    path = tmp_path / "signed.tflite"
    path.write_bytes(data)
    assert refusal(path, **how) == ""
    attack(path, data, **how)


@pytest.mark.parametrize("name", FILES[:2])
def test_every_truncation_of_a_tflite_file_is_refused(tmp_path: Path, name: str) -> None:
    data = shared(name).read_bytes()
    for size in range(0, len(data), 3):
        (tmp_path / "cut.tflite").write_bytes(data[:size])
        assert refusal(tmp_path / "cut.tflite"), size


def test_parts_shared_without_end_are_refused(tmp_path: Path) -> None:
    """100,000 operators are one table whose 100,000 inputs would be read for each of them."""
    flatbuffers = pytest.importorskip("flatbuffers")
    builder = flatbuffers.Builder(1 << 20)
    count = 100_000

    def vector(offset: int | None) -> int:
        builder.StartVector(4, count if offset is None else 1, 4)
        if offset is None:
            for _ in range(count):
                builder.PrependInt32(0)
        else:
            builder.PrependUOffsetTRelative(offset)
        return int(builder.EndVector())

    def table(**offsets: int) -> int:
        builder.StartObject(6)
        for slot, offset in offsets.items():
            builder.PrependUOffsetTRelativeSlot(int(slot[1:]), offset, 0)
        return int(builder.EndObject())

    codes = vector(table())
    op = table(f1=vector(None))
    builder.StartVector(4, count, 4)
    for _ in range(count):
        builder.PrependUOffsetTRelative(op)
    operators = int(builder.EndVector())
    subgraphs = vector(table(f3=operators))
    builder.Finish(table(f1=codes, f2=subgraphs), b"TFL3")
    path = tmp_path / "shared.tflite"
    path.write_bytes(bytes(builder.Output()))
    start = time.process_time()
    assert "refers to the same parts too often" in refusal(path)
    assert time.process_time() - start < 4
