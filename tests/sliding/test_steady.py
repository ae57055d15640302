"""Steps of a sliding window: every row that is said to stay does, and every window is exact."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import scaled, some
from tests.cli.run import answer, serenity
from tests.rows.nets import model, random_module
from tvm_serenity.errors import CheckError, InputError
from tvm_serenity.rows.limits import Limits
from tvm_serenity.sliding import SlidingStep, sliding_step, steady
from tvm_serenity.sliding.check import check_windows

SEEDS = range(60)


def read(module: Any) -> tuple[Any, Any]:
    from tvm_serenity.relax.pipeline import prepared
    from tvm_serenity.relax.rows_read import read_rows
    from tvm_serenity.relax.rows_reads import row_reads

    rows = read_rows(prepared(module).plain, "net")
    return rows, row_reads(rows)


def steps(rows: Any, reads: Any) -> list[SlidingStep]:
    """A step of every size that lets something stay."""
    found = []
    for step in range(1, rows.network.rows(rows.network.inputs[0])):
        try:
            made = steady(rows.network, step, reads)
        except InputError:
            continue
        found.append(sliding_step(made, Limits(1.0, effort=0.1)))
    return found


@pytest.fixture(scope="module")
def drawn() -> list[tuple[Any, Any, list[SlidingStep]]]:
    nets = [read(random_module(seed, quantised=bool(seed % 3))) for seed in SEEDS]
    return [(rows, reads, steps(rows, reads)) for rows, reads in nets]


def test_steps_make_what_whole_windows_do(drawn: list[tuple[Any, Any, list[SlidingStep]]]) -> None:
    for _, reads, found in drawn:
        for one in found:
            one.streaming.check()
            check_windows(one, reads)
    assert sum(len(found) for _, _, found in drawn) >= 30


def windows(rows: Any, step: int, count: int) -> list[dict[int, Any]]:
    """The array of every feature in windows that follow each other, by TVM's kernels."""
    from tvm_serenity.firmware.validate.reference import made_by_tvm
    from tvm_serenity.validation.network_inputs import random_inputs

    (first,) = random_inputs(rows.lowered, 1)
    (more,) = random_inputs(rows.lowered, 2)
    stream = np.concatenate([first, more], 1)
    found = []
    for w in range(count):
        window = np.ascontiguousarray(stream[:, w * step : w * step + first.shape[1]])
        made, _ = made_by_tvm(rows.library, rows.lowered, rows.region, [window])
        number = {t: f for f, t in enumerate(rows.tensor_of) if t is not None}
        arrays = {number[t]: array for t, array in made.items() if t in number}
        found.append({**arrays, rows.network.inputs[0]: window})
    return found


def test_rows_that_stay_are_the_same_numbers(
    drawn: list[tuple[Any, Any, list[SlidingStep]]],
) -> None:
    compared = differ = 0
    for rows, _, found in some(drawn, 20):
        for one in found[: scaled(1, 2)]:
            moved = one.steady
            *early, after = windows(rows, moved.step, 1 + max(moved.periods))
            for f, shift in enumerate(moved.shifts):
                if not shift or f not in after:
                    continue
                before = early[-moved.periods[f]]
                for y in moved.kept[f]:
                    assert np.array_equal(after[f][:, y], before[f][:, y + shift])
                    compared += 1
                height = moved.network.rows(f)
                edges = (y for y in moved.made[f] if y + shift < height and f != moved.source)
                differ += sum(
                    not np.array_equal(after[f][:, y], before[f][:, y + shift]) for y in edges
                )
    assert compared > 50
    assert differ > scaled(8, 20)  # rows that see padding are others: to keep them would be wrong


def test_a_step_that_leaves_something_out_is_found(
    drawn: list[tuple[Any, Any, list[SlidingStep]]],
) -> None:
    """Seeded faults: a row that is not made, rows that move too little, an order that is wrong."""
    found_faults = 0
    for _, reads, found in drawn:
        for one in found[:1]:
            banded, schedule = one.streaming.banded, one.streaming.schedule
            rows = [i for i, call in enumerate(schedule.order) if banded.calls[call].end > 0]
            late = rows[len(rows) // 2]
            order = (*schedule.order[:late], *schedule.order[late + 1 :])
            short = replace(one.streaming, schedule=replace(schedule, order=order))
            moved = [max(0, s - 1) if s else 0 for s in one.steady.shifts]
            slow = replace(one.steady, shifts=tuple(moved))
            for fault in (replace(one, streaming=short), replace(one, steady=slow)):
                with pytest.raises(CheckError):
                    check_windows(fault, reads)
                found_faults += 1
    assert found_faults > 20


@pytest.mark.parametrize(
    ("name", "step", "work", "kept", "fill"),
    [
        ("mlperf_tiny/kws_dscnn_int8.tflite", 2, 0.417, 26_090, 25),
        ("mlperf_tiny/sww_streaming_int8.tflite", 1, 0.056, 3_960, 30),
        ("tflm/micro_speech_quantized.tflite", 2, 0.274, 5_960, 25),
    ],
)
def test_figures(name: str, step: int, work: float, kept: int, fill: int) -> None:
    said = answer("rows", str(model(name)), "--sliding", str(step), "--check")
    assert said["work"] == pytest.approx(work, abs=0.001)
    assert (said["kept_bytes"], said["steps_to_fill"]) == (kept, fill)
    assert kept <= said["lower_bound_bytes"] <= said["arena_bytes"]
    assert said["outcome"] == "optimal"


def test_a_constant_that_differs_by_row_lets_nothing_stay(tmp_path: Path) -> None:
    """As positions that are added: rows of the same sound are others at another place."""
    from tests.conformance.builder import Net
    from tests.conformance.quantise import integer_file, ranges
    from tests.quantize.running import REFERENCE

    net = Net(0)
    x = net.conv(net.input(1, 24, 6, 2), 4, 3, activation="RELU")
    x = net.conv(net.add(x, net.drawn(1, 24, 6, 4)), 4, 3)
    net.output(net.dense(net.mean(x), 3))
    (tmp_path / "placed.tflite").write_bytes(integer_file(net, ranges(net, REFERENCE)))
    said = answer("rows", str(tmp_path / "placed.tflite"), "--sliding", "1", "--check")
    (first, *_) = said["anew"]
    assert "computes each row by a different kernel variant" in first
    shifts = [f["shift"] for f in said["features"]]
    assert shifts[:2] == [1, 1]
    assert not any(shifts[2:])


def test_networks_that_keep_states_see_rows_once() -> None:
    svdf = str(model("tflm/keyword_scrambled_8bit.tflite"))
    said = answer("rows", svdf, "--sliding", "1", "--check", "--curve")
    assert (said["states"], said["work"], said["steps_to_fill"]) == (7, 1.0, 1)
    assert said["kept_bytes"] == 5_312
    assert len(said["curve"]) == 1


def test_states_that_do_not_follow_are_found() -> None:
    """Seeded faults: a state that stays as it was, or becomes what another is to be."""
    from tvm_serenity.frontends.relax import to_relax
    from tvm_serenity.sliding import moved_window

    rows, reads = read(to_relax(str(model("tflm/keyword_scrambled_8bit.tflite"))))
    found = sliding_step(moved_window(rows.network, 1, reads, 7).steady())
    check_windows(found, reads)
    (one, made), (two, other), *rest = found.steady.states
    for states in (((one, one), (two, other), *rest), ((one, other), (two, made), *rest)):
        whole = replace(found.steady, states=states)
        with pytest.raises(CheckError):
            check_windows(replace(found, steady=whole), reads)


def refused(*arguments: str) -> str:
    found = serenity(*arguments)
    assert found.returncode == 2
    assert found.stderr.count("\n") == 1
    return found.stderr


def pooled(rows: int, path: Path) -> str:
    """A network whose first layer makes a row for each so many rows of 6 values."""
    from tests.conformance.builder import Net, float_file

    net = Net(0)
    x = net.pool("MAX", net.input(1, 96, 6, 2), (rows, 1), (rows, 1))
    net.output(net.dense(net.mean(net.conv(x, 4, (2, 1), padding="VALID")), 3))
    path.write_bytes(float_file(net))
    return str(path)


def test_steps_that_strides_do_not_divide(tmp_path: Path) -> None:
    """Rows behind a stride are there again after some steps: as many sets of them are kept."""
    once = answer("rows", pooled(6, tmp_path / "six.tflite"), "--sliding", "6", "--check")
    for step, phases in some(((2, 3), (3, 2), (4, 3), (1, 6), (5, 6)), 3):
        said = answer("rows", str(tmp_path / "six.tflite"), "--sliding", str(step), "--check")
        assert said["phases"] == phases
        shifts = {f["shift"] for f in said["features"] if f["period"] > 1}
        assert shifts == {step * phases // 6}
        assert said["kept_bytes"] > once["kept_bytes"]
    nine = pooled(9, tmp_path / "nine.tflite")
    assert "so rows recur after 9 steps; at most 8 are supported" in refused(
        "rows", nine, "--sliding", "1"
    )


def test_refusals() -> None:
    kws = str(model("mlperf_tiny/kws_dscnn_int8.tflite"))
    assert "use a step of 1 to 48" in refused("rows", kws, "--sliding", "49")
    assert "--sliding 2 does not take --graph" in refused("rows", kws, "--sliding", "2", "--graph")
    svdf = str(model("tflm/keyword_scrambled_8bit.tflite"))
    assert "keeps 7 states itself" in refused("rows", svdf, "--sliding", "2")
    flat = str(model("mlperf_tiny/ad01_int8.tflite"))
    assert "1x640 has no rows along which a window could move" in refused(
        "rows", flat, "--sliding", "1"
    )
