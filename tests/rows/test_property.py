"""Random networks: every band height computes the same, row by row, as unsplit kernels."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import sampled, some
from tests.rows.nets import (
    BOARD,
    Built,
    Host,
    build,
    needs_board,
    needs_host,
    program,
    random_module,
    row_project,
    streaming,
)
from tvm_serenity.firmware.board.execute import Execution, qemu
from tvm_serenity.firmware.emit.project import write_project
from tvm_serenity.firmware.program import Program
from tvm_serenity.firmware.trace import expected as reference_rows
from tvm_serenity.rows import Limits
from tvm_serenity.rows.split import heights_of
from tvm_serenity.rows.stream import arriving


def differing(built: Built, rows: Program, found: Execution) -> list[str]:
    """The features of which a row differs from what unsplit kernels make."""
    expected = reference_rows(rows, built.arrays)
    assert len(found.trace) == len(expected)
    wrong = []
    for index, (feature, data) in enumerate(found.trace):
        want = expected[f"step{index}"].reshape(-1)
        got = np.frombuffer(data, want.dtype)
        same = np.array_equal(got, want) if want.dtype.kind in "iu" else _close(got, want)
        if not same:
            wrong.append(rows.tensors[feature].name)
    return wrong


def _close(got: Any, want: Any) -> bool:
    return bool(np.allclose(got, want, rtol=1e-5, atol=1e-5))


@needs_host
@pytest.mark.parametrize("seed", sampled(range(4), 2))
def test_integers_are_the_same_at_every_band_height(seed: int, tmp_path: Path) -> None:
    built = build(random_module(seed, True), tuned=seed % 2 == 0)
    host = Host(tmp_path)
    for height in some(range(1, built.height + 1), 4):
        heights = heights_of(built.kernels.network, height)
        rows = program(built, streaming(built, heights))
        found = host.run(rows, built.inputs)
        assert not differing(built, rows, found), height
        assert [np.frombuffer(o, np.int8).tobytes() for o in found.outputs] == [
            np.asarray(o).tobytes() for o in built.outputs
        ]


@needs_host
@pytest.mark.parametrize(
    "seed", sampled([100, 101, 332760], 2)
)  # the last: constants before tensors
def test_floats_are_the_same_bits_at_every_band_height(seed: int, tmp_path: Path) -> None:
    built = build(random_module(seed, False))
    host = Host(tmp_path)
    outputs = set()
    for height in some(range(1, built.height + 1), 4):
        rows = program(built, streaming(built, heights_of(built.kernels.network, height)))
        found = host.run(rows, built.inputs)
        assert not differing(built, rows, found), height
        outputs.add(found.outputs)
    assert len(outputs) == 1


@needs_host
@pytest.mark.parametrize("seed", [1])
def test_rows_that_arrive_compute_the_same(seed: int, tmp_path: Path) -> None:
    built = build(random_module(seed, True))
    heights = heights_of(built.kernels.network, 2)
    rows = program(built, streaming(built, heights, streamed=True))
    found = Host(tmp_path).run(rows, built.inputs)
    assert not differing(built, rows, found)
    assert found.outputs == tuple(np.asarray(o).tobytes() for o in built.outputs)


@needs_host
@pytest.mark.parametrize("seed", [1, 3])
def test_a_plan_for_an_input_in_memory_serves_one_that_arrives(seed: int, tmp_path: Path) -> None:
    built = build(random_module(seed, True))
    memory = streaming(built, heights_of(built.kernels.network, 1))
    made = arriving(memory, Limits(0.1))
    made.check()
    assert made.arena_bytes == memory.arena_bytes
    rows = program(built, made)
    assert rows.fed is not None
    found = Host(tmp_path).run(rows, built.inputs)
    assert not differing(built, rows, found)
    assert found.outputs == tuple(np.asarray(o).tobytes() for o in built.outputs)


@needs_board
@pytest.mark.parametrize(("seed", "quantised", "streamed"), [(2, True, False), (3, True, True)])
def test_a_sample_on_an_emulated_board(
    seed: int, quantised: bool, streamed: bool, tmp_path: Path
) -> None:
    built = build(random_module(seed, quantised))
    heights = heights_of(built.kernels.network, 1)
    rows = program(built, streaming(built, heights, streamed=streamed))
    write_project(row_project(rows), tmp_path / "made")
    data = [np.ascontiguousarray(a).tobytes() for a in built.inputs]
    found = qemu(tmp_path / "made", BOARD, data, len(built.outputs), traced=True)
    assert not differing(built, rows, found)
