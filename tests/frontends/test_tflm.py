"""TFLM's offline plan: in the file, read back, checked; LiteRT computes the same."""

import contextlib
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import flatbuffers
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.run import answer, serenity
from tests.frontends.int8_twin import int8_twin
from tvm_serenity.errors import CheckError, InputError
from tvm_serenity.frontends import load
from tvm_serenity.frontends.tflite_file import OFFLINE_PLAN
from tvm_serenity.frontends.tflite_metadata import read_metadata, write_metadata
from tvm_serenity.graph.reduced import unreduced
from tvm_serenity.memory import peak_bytes
from tvm_serenity.schedule import schedule
from tvm_serenity.tflm.offline import ALIGNMENT, check_offline, decode, encode, lifetimes

interpreter = pytest.importorskip("ai_edge_litert.interpreter")
schema = pytest.importorskip("ai_edge_litert.schema_py_generated")

VWW = "models/mlperf_tiny/vww_mobilenetv1_96_int8.tflite"
MLTK = "models/mltk/mltk_keyword_spotting_on_off_v3.tflite"
SWIFTNET = "models/swiftnet/swiftnet_vww_224_uint8.tflite"


def outputs(path: Path) -> list[np.ndarray]:
    runner = interpreter.Interpreter(
        model_path=str(path),
        experimental_op_resolver_type=interpreter.OpResolverType.BUILTIN_REF,
    )
    runner.allocate_tensors()
    random = np.random.default_rng(7)
    for entry in runner.get_input_details():
        range_ = np.iinfo(entry["dtype"])
        values = random.integers(range_.min, range_.max + 1, entry["shape"])
        runner.set_tensor(entry["index"], values.astype(entry["dtype"]))
    runner.invoke()
    return [runner.get_tensor(entry["index"]) for entry in runner.get_output_details()]


MICRO = """
import sys, numpy as np
from tflite_micro.python.tflite_micro import runtime
model = runtime.Interpreter.from_file(sys.argv[1], arena_size=1 << 20)
shape = model.get_input_details(0)["shape"]
model.set_input(np.random.default_rng(3).integers(-128, 128, shape).astype(np.int8), 0)
model.invoke()
print("output", model.get_output(0).tolist(), flush=True)
model.print_allocations()
"""


def micro(path: Path) -> tuple[str, int]:
    """What TFLM itself computes, and the bytes of its arena's head."""
    found = subprocess.run(
        [sys.executable, "-c", MICRO, str(path)], capture_output=True, text=True, check=True
    )
    text = found.stdout + found.stderr
    head = re.search(r"Arena allocation head (\d+) bytes", text)
    output = re.search(r"output .*", text)
    assert head is not None
    assert output is not None
    return output[0], int(head[1])


def planned_end(path: Path) -> int:
    """Where TFLM's tensors end, by the reader and the naive checker."""
    graph = load(path).graph
    content = read_metadata(path.read_bytes(), OFFLINE_PLAN)
    assert content is not None
    return check_offline(graph, range(len(graph.ops)), decode(content))


@pytest.fixture(scope="module")
def twin(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("twin") / "swiftnet_int8.tflite"
    path.write_bytes(int8_twin((shared / SWIFTNET).read_bytes()))
    return path


@pytest.mark.parametrize(
    ("name", "peak", "end"),
    [(VWW, 55_296, 55_296), (MLTK, 19_600, 19_616), ("twin", 301_056, 301_056)],
)
def test_order_and_offsets_in_the_file(
    name: str, peak: int, end: int, shared: Path, twin: Path, tmp_path: Path
) -> None:
    source, out = twin if name == "twin" else shared / name, tmp_path / "out.tflite"
    found = answer("schedule", source, "-o", out, "--plan", "tflm", "--check")
    assert found["schedule"]["peak_bytes"] == peak
    assert found["plan"]["arena_bytes"] == planned_end(out) == end
    assert found["plan"]["arena_outcome"] == "optimal"
    assert found["plan"]["scratch"]["arena_bytes"] >= end
    for a, b in zip(outputs(source), outputs(out), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("name", "before", "after"), [(VWW, 73_728, 55_296), (MLTK, 21_568, 19_616)]
)
def test_tflm_itself_honours_the_plan(
    name: str, before: int, after: int, shared: Path, tmp_path: Path
) -> None:
    pytest.importorskip("tflite_micro")
    out = tmp_path / "out.tflite"
    answer("schedule", shared / name, "-o", out, "--plan", "tflm")
    given, planned = micro(shared / name), micro(out)
    assert (given[1], planned[1]) == (before, after)
    assert given[0] == planned[0]


def test_no_order_is_lower_with_tensors_rounded_as_tflm_does(shared: Path) -> None:
    graph = load(shared / MLTK).graph
    rounded = graph.replace(
        tensors=tuple(
            replace(t, size_bytes=-(-t.size_bytes // ALIGNMENT) * ALIGNMENT, shape=None)
            for t in graph.tensors
        )
    )
    assert schedule(unreduced(rounded).graph).lower_bound_bytes == 19_616


def test_everything_else_stays(shared: Path) -> None:
    data = (shared / MLTK).read_bytes()
    graph = load(shared / MLTK).graph
    content = encode([-1] * len(graph.tensors))
    once = write_metadata(data, OFFLINE_PLAN, content)
    before, after = (schema.ModelT.InitFromObj(schema.Model.GetRootAs(d, 0)) for d in (data, once))
    assert [m.name for m in after.metadata] == [
        *(m.name for m in before.metadata),
        OFFLINE_PLAN.encode(),
    ]
    assert after.signatureDefs[0].signatureKey == before.signatureDefs[0].signatureKey
    assert (after.version, after.description) == (before.version, before.description)
    for a, b in zip(before.buffers, after.buffers, strict=False):
        np.testing.assert_array_equal(a.data, b.data)
    added = schema.Model.GetRootAs(once, 0).Buffers(len(before.buffers))
    assert added.DataAsNumpy().tobytes() == content
    assert once.find(content) % 16 == 0
    assert once.endswith(data)


def test_a_plan_is_replaced(shared: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.tflite", tmp_path / "second.tflite"
    answer("schedule", shared / MLTK, "-o", first, "--plan", "tflm", "--method", "given")
    refused = serenity("schedule", first, "-o", second)
    assert refused.returncode == 2
    assert OFFLINE_PLAN in refused.stderr
    answer("schedule", first, "-o", second, "--plan", "tflm")
    assert first.stat().st_size == second.stat().st_size
    assert (planned_end(first), planned_end(second)) == (21_568, 19_616)


def test_other_lengths_take_a_new_entry(shared: Path) -> None:
    data = (shared / MLTK).read_bytes()
    data = write_metadata(write_metadata(data, "note", b"four"), "note", b"five!")
    assert read_metadata(data, "note") == b"five!"
    assert read_metadata(write_metadata(data, "note", b"5ive!"), "note") == b"5ive!"
    assert read_metadata(data, "other") is None


def test_lifetimes_hold_the_live_profile(shared: Path) -> None:
    graph = load(shared / VWW).graph
    _, buffers = lifetimes(graph, range(len(graph.ops)))
    live = [sum(b.size_bytes for b in buffers if b.lower <= t < b.upper) for t in range(33)]
    assert max(live) == peak_bytes(graph)


def test_a_wrong_plan_is_found(shared: Path) -> None:
    graph = load(shared / VWW).graph
    tensors, _ = lifetimes(graph, range(len(graph.ops)))
    offsets = [0 if t in tensors else -1 for t in range(len(graph.tensors))]
    with pytest.raises(CheckError, match="share bytes"):
        check_offline(graph, range(len(graph.ops)), offsets)
    with pytest.raises(CheckError, match="has no offset"):
        check_offline(graph, range(len(graph.ops)), [-1] * len(graph.tensors))
    with pytest.raises(CheckError, match="offsets for"):
        check_offline(graph, range(len(graph.ops)), offsets[1:])


@pytest.mark.parametrize("content", [b"", b"\1\0\0\0" * 2, encode([1, 2])[:-1]])
def test_a_damaged_plan_is_refused(content: bytes) -> None:
    with pytest.raises(InputError, match="metadata"):
        decode(content)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--plan", "vela"), "there is tflm"),
        (("--plan", "tflm", "--alias-copies"), "every operator"),
        (("--plan", "tflm", "-o", "x.onnx"), "name a .tflite file"),
    ],
)
def test_refusals(arguments: tuple[str, ...], says: str, shared: Path, tmp_path: Path) -> None:
    found = serenity("schedule", shared / VWW, *arguments)
    assert found.returncode == 2
    assert says in found.stderr
    assert found.stderr.count("\n") == 1


def test_several_subgraphs_are_refused(shared: Path, tmp_path: Path) -> None:
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs((shared / VWW).read_bytes(), 0))
    model.subgraphs *= 2
    builder = flatbuffers.Builder(1 << 20)
    builder.Finish(model.Pack(builder), b"TFL3")
    source, out = tmp_path / "two.tflite", tmp_path / "out.tflite"
    source.write_bytes(bytes(builder.Output()))
    found = serenity("schedule", source, "-o", out, "--plan", "tflm")
    assert found.returncode == 2
    assert "has 2 subgraphs" in found.stderr
    assert not out.exists()


@given(st.lists(st.integers(-1, 2**31 - 1)))
def test_offsets_round_trip(offsets: list[int]) -> None:
    assert decode(encode(offsets)) == tuple(offsets)


def test_damaged_files_raise_one_kind_of_error(shared: Path) -> None:
    intact = write_metadata((shared / MLTK).read_bytes(), OFFLINE_PLAN, encode([1, 2]))
    random = np.random.default_rng(11)
    for _ in range(150):
        data = bytearray(
            intact[: random.integers(8, len(intact))] if random.random() < 0.3 else intact
        )
        for at in random.integers(8, min(len(data), 4096), 4):
            data[at] ^= 1 << int(random.integers(8))
        with contextlib.suppress(InputError):
            read_metadata(bytes(data), OFFLINE_PLAN)
            write_metadata(bytes(data), OFFLINE_PLAN, encode([3]))
