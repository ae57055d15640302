"""Published networks by rows on this machine: every row of every layer, and broken plans."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.rows.nets import Host, build, model, needs_host, program, streaming, unchecked
from tests.rows.test_property import differing
from tvm_serenity.errors import CheckError
from tvm_serenity.firmware.check.calls import check
from tvm_serenity.firmware.compile.slots import slot_of
from tvm_serenity.firmware.emit.table import slot_runs, tables, width
from tvm_serenity.firmware.program import Row
from tvm_serenity.frontends.relax import to_relax
from tvm_serenity.rows.split import heights_of
from tvm_serenity.rows.stream import Streaming

KWS = "mlperf_tiny/kws_dscnn_int8.tflite"


@needs_host
def test_keyword_spotting_in_a_quarter_of_its_memory(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    path = model(KWS)
    built = build(to_relax(str(path)))
    found = streaming(built, heights_of(built.kernels.network, 1))
    assert found.arena_bytes <= 4096  # whole: 16,000
    rows = program(built, found)
    run = Host(tmp_path).run(rows, built.inputs)
    assert not differing(built, rows, run)
    assert run.outputs == tuple(np.asarray(o).tobytes() for o in built.outputs)
    assert tables(rows).size_bytes < 1536


@needs_host
def test_an_overlapping_offset_is_found_by_the_check_and_seen_in_the_rows(tmp_path: Path) -> None:
    built = build(to_relax(str(model(KWS))))
    found = streaming(built, heights_of(built.kernels.network, 1))
    good = program(built, found)
    bands = [f for f, bands in enumerate(good.bands) if len(bands.places) == 25]
    feature = bands[len(bands) // 2]
    moved = _overlapping(found, feature)
    rows = unchecked(built, replace(found, plan=replace(found.plan, offsets=moved)))
    with pytest.raises(CheckError, match=r"row \d+ of tensor '\w+' is overwritten by"):
        check(rows)
    run = Host(tmp_path).run(rows, built.inputs)
    assert differing(built, rows, run)


def _overlapping(found: Streaming, feature: int) -> tuple[int, ...]:
    """Offsets with one band of a feature on another that lives at the same time."""
    offsets = list(found.plan.offsets)
    of = [found.banded.bands[r.tensors[0]].feature for r in found.ranges]
    mine = [i for i, f in enumerate(of) if f == feature]
    for i in mine:
        for j in mine:
            a, b = found.ranges[i], found.ranges[j]
            if i != j and a.start < b.start < a.stop:
                offsets[j] = offsets[i]
                return tuple(offsets)
    raise AssertionError("no two bands live together")


def test_slots_are_straight_lines() -> None:
    assert (slot_of(0, (0, 2, 4), 5).step, slot_of(0, (0, 2, 4), 5).first) == (2, 0)
    assert slot_of(0, (None, 0, 1), 4).first == -1
    assert slot_of(0, (None, 1), 4).step == 2
    assert slot_of(0, (0, 0, 1, 1), 2).divisor == 2
    assert slot_of(0, (0, 3, None, 2), 4).listed == (0, 3, 4, 2)


def test_widths_of_tables() -> None:
    assert [width([v]) for v in (0, 255, 256, 65536)] == [8, 8, 16, 32]


def test_rows_that_follow_each_other_are_one_slot() -> None:
    window = [Row(0, 2, first) for first in (-1, 0, 1)]
    other, halves = Row(1, 2, 2), [Row(1, 1, first, 2) for first in (0, 1)]
    expected = [(window[0], 3), (other, 1), (halves[0], 1), (halves[1], 1)]
    assert slot_runs([*window, other, *halves]) == expected
    assert slot_runs([window[0], window[2]]) == [(window[0], 1), (window[2], 1)]
