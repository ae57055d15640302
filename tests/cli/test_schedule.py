"""The figures of published networks, through the command line."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.run import answer, serenity
from tests.random_graphs import windowed_graph
from tvm_serenity.graph import text

SWIFTNET = "models/swiftnet/swiftnet_vww_224_uint8.tflite"
SHUFFLENET = "models/onnx_light/light_shufflenet.onnx"
FOLD = ["--alias-copies", "--fold-concat"]

PEAKS = [
    (SWIFTNET, [], 85, 351232, 301056),
    (SWIFTNET, ["--alias-copies"], 84, 351232, 275968),
    (SWIFTNET, FOLD, 68, 275968, 200704),
    (SWIFTNET, ["--slice", "5:32"], 28, 351232, 275968),
    (SWIFTNET, ["--slice", "34:56"], 23, 147392, 122304),
    (SWIFTNET, ["--slice", "58:81"], 24, 53900, 53900),
    (SWIFTNET, ["--slice", "5:33", "--fold-concat"], 21, 275968, 200704),
    (SWIFTNET, ["--slice", "34:57", "--fold-concat"], 19, 119168, 81536),
    (SWIFTNET, ["--slice", "58:82", "--fold-concat"], 22, 35084, 32536),
    ("models/mltk/mltk_keyword_spotting_on_off_v3.tflite", [], 107, 21560, 19600),
    (SHUFFLENET, [], 446, 3110912, 2885120),
]


@pytest.mark.parametrize(("model", "options", "ops", "given", "best"), PEAKS)
def test_published_peaks(
    shared: Path, model: str, options: list[str], ops: int, given: int, best: int
) -> None:
    found = answer("schedule", shared / model, *options, "--check")
    assert found["ops"] == ops
    assert found["given"]["peak_bytes"] == given
    schedule = found["schedule"]
    assert schedule["peak_bytes"] == schedule["lower_bound_bytes"] == best
    assert schedule["outcome"] == "optimal"
    assert schedule["arena_bytes"] >= best
    first = int(options[1].partition(":")[0]) if "--slice" in options else 0
    assert sorted(schedule["order"]) == list(range(first, first + len(schedule["order"])))


@pytest.mark.parametrize(
    ("cell", "best"), [(None, 200704), ("5:32", 200704), ("34:56", 81536), ("58:81", 32536)]
)
def test_the_papers_dynamic_program_finds_the_same(
    shared: Path, cell: str | None, best: int
) -> None:
    options = ["--alias-copies"] if cell is None else ["--slice", cell]
    found = answer("schedule", shared / SWIFTNET, "--method", "dp", "--fold-concat", *options)
    rows: dict[str, Any] = found["schedule"]["statistics"]
    assert list(rows) == [
        "dp",
        "dp_divide_and_conquer",
        "dp_divide_and_conquer_adaptive_soft_budgeting",
    ]
    assert {row["peak_bytes"] for row in rows.values() if row["finished"]} == {best}
    assert found["schedule"]["peak_bytes"] == best
    assert found["schedule"]["outcome"] == "optimal"


def test_liberis_and_lanes_example() -> None:
    found = answer("schedule", "zoo:liberis-lane")
    assert found["given"]["peak_bytes"] == 4 * 5216
    assert found["schedule"]["peak_bytes"] == 4 * 4960
    assert found["schedule"]["outcome"] == "optimal"


def test_liberis_and_lanes_example_in_text_form(tmp_path: Path) -> None:
    net = tmp_path / "example.txt"
    net.write_text(
        """
        input t0[1568]
        op1 CONV_2D: t0 -> t1[3136]
        op2 CONV_2D: t1 -> t2[1568]
        op3 DEPTHWISE_CONV_2D: t2 -> t3[512]
        op4 CONV_2D: t1 -> t4[512]
        op5 CONV_2D: t3 -> t5[256]
        op6 DEPTHWISE_CONV_2D: t4 -> t6[256]
        op7 CONCATENATION: t5 t6 -> t7[512]
        output t7
        """
    )
    found = answer("schedule", net, "-o", tmp_path / "better.txt")
    assert (found["given"]["peak_bytes"], found["schedule"]["peak_bytes"]) == (5216, 4960)
    again = answer("schedule", tmp_path / "better.txt", "--method", "given")
    assert again["given"]["peak_bytes"] == 4960


def test_the_reordered_tflite_file_computes_the_same(shared: Path, tmp_path: Path) -> None:
    interpreter = pytest.importorskip("ai_edge_litert.interpreter").Interpreter
    out = tmp_path / "out.tflite"
    assert answer("schedule", shared / SWIFTNET, "-o", out)["output"] == str(out)
    assert answer("schedule", out)["given"]["peak_bytes"] == 301056
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (1, 224, 224, 3), np.uint8)
    results = []
    for path in (shared / SWIFTNET, out):
        machine = interpreter(str(path), num_threads=1)
        machine.allocate_tensors()
        machine.set_tensor(machine.get_input_details()[0]["index"], image)
        machine.invoke()
        results.append(machine.get_tensor(machine.get_output_details()[0]["index"]))
    assert results[0].tobytes() == results[1].tobytes()


def test_the_reordered_onnx_file_computes_the_same(shared: Path, tmp_path: Path) -> None:
    session_of = pytest.importorskip("onnxruntime").InferenceSession
    out = tmp_path / "out.onnx"
    answer("schedule", shared / SHUFFLENET, "-o", out)
    assert answer("schedule", out)["given"]["peak_bytes"] == 2885120
    results = []
    for path in (shared / SHUFFLENET, out):
        session = session_of(str(path), providers=["CPUExecutionProvider"])
        feed = session.get_inputs()[0]
        image = np.random.default_rng(0).standard_normal([int(d) for d in feed.shape])
        results.append(session.run(None, {feed.name: image.astype(np.float32)})[0])
    assert results[0].tobytes() == results[1].tobytes()


def test_a_slice_is_reordered_where_it_stands(shared: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.tflite"
    found = answer("schedule", shared / SWIFTNET, "--slice", "5:32", "-o", out)
    assert len(found["schedule"]["order"]) == 28
    assert answer("schedule", out, "--slice", "5:32")["given"]["peak_bytes"] == 275968


def test_the_table_for_people_says_it_all(shared: Path) -> None:
    found = serenity("schedule", shared / SWIFTNET)
    assert found.returncode == 0
    for part in ("351,232", "301,056", "14.3% less", "optimal", "split_0"):
        assert part in found.stdout


@pytest.mark.parametrize("method", ["greedy", "kahn", "dfs", "exact"])
@pytest.mark.parametrize("seed", range(3, 6))
def test_what_is_said_of_an_order_is_true(tmp_path: Path, method: str, seed: int) -> None:
    graph = windowed_graph(random.Random(seed), 12, 6)
    file = tmp_path / "graph.txt"
    file.write_text(text.dump(graph))
    best = answer("schedule", file, "--method", "exact")["schedule"]["peak_bytes"]
    found = answer("schedule", file, "--method", method)
    peak, given = found["schedule"]["peak_bytes"], found["given"]["peak_bytes"]
    said = serenity("schedule", file, "--method", method).stdout
    assert ("best order" in said) == (peak <= given)
    assert (f"{method} order" in said) == (peak > given)
    if "no other order is better" in said:
        assert best == min(peak, given)
    if "one may exist" in said:
        assert method != "exact"
        assert peak >= given
