"""Workspace of kernels of rows that lies elsewhere in each band: placed, replayed, run, mutants."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cases import only_exhaustive, scaled
from tests.firmware.projects import needs_board
from tvm_serenity import firmware
from tvm_serenity.boards import board
from tvm_serenity.errors import CheckError
from tvm_serenity.firmware import Settings
from tvm_serenity.firmware.check.calls import check
from tvm_serenity.firmware.check.verify import difference, run_host, run_qemu
from tvm_serenity.firmware.compile import fallback
from tvm_serenity.firmware.emit.table import tables
from tvm_serenity.firmware.program import Program, Scratch, Step

BOARD = "mps2-an386"


def module() -> Any:
    """Residual convolutions of 16 channels, whose widened inputs are more than the stack holds."""
    from tvm_serenity.zoo.net import module as written
    from tvm_serenity.zoo.quantised import QuantisedNet
    from tvm_serenity.zoo.window import same

    def write(net: Any) -> Any:
        x = net.relu6(net.conv(net.input("x", 3, 16), 16, same(3)))
        y = net.relu6(net.conv(net.conv(x, 16, same(3)), 16, same(3)))
        z = net.relu6(net.conv(net.add(x, y), 16, same(3, 2)))
        return net.stored(net.conv(z, 16, same(3, 2)))

    return written(write, "NHWC", 1, QuantisedNet)


def compiled(rows: int, **options: Any) -> Any:
    return fallback.make(
        module(), "net", board(BOARD), Settings(rows=rows, time_limit_s=2, **options)
    )


def moving(program: Program) -> list[int]:
    return [i for i, step in enumerate(program.steps) if step.moving is not None]


def with_scratch(program: Program, index: int, scratch: Scratch) -> Program:
    """The same with another scratch of a step."""

    def changed(step: Step) -> Step:
        kept = [scratch if isinstance(a, Scratch) else a for a in step.arguments]
        return replace(step, arguments=tuple(kept))

    steps = list(program.steps)
    steps[index] = changed(steps[index])
    return replace(program, steps=tuple(steps))


def test_it_takes_no_more_arena() -> None:
    found = 0
    for rows in (2, 4):
        made = compiled(rows)
        check(made.program)
        found += len(moving(made.program))
        plain = compiled(rows, tuned=False)
        assert made.placed.arena_bytes == plain.placed.arena_bytes
        for index in moving(made.program):
            step = made.program.steps[index]
            bands = -(-step.height // step.together)
            assert step.moving is not None
            assert len(step.moving.bands) == bands
            assert len(set(step.moving.bands)) > 1
    assert found


def test_a_wrong_place_is_seen() -> None:
    made = next(m for m in map(compiled, (2, 4)) if moving(m.program))
    program = made.program
    index = moving(program)[0]
    scratch = program.steps[index].moving
    assert scratch is not None
    turned = (*scratch.bands[1:], scratch.bands[0])
    refused = 0
    for places in (turned, scratch.bands[::-1], (scratch.bands[0],) * len(scratch.bands)):
        try:
            check(with_scratch(program, index, replace(scratch, bands=places)))
        except CheckError:
            refused += 1
    assert refused
    outside = replace(scratch.bands[-1], offset_bytes=sum(program.arena_bytes.values()))
    wrong = with_scratch(program, index, replace(scratch, bands=(*scratch.bands[:-1], outside)))
    with pytest.raises(CheckError, match="workspace is outside"):
        check(wrong)


def test_its_places_stand_in_the_tables() -> None:
    made = next(m for m in map(compiled, (2, 4)) if moving(m.program))
    program, index = made.program, moving(made.program)[0]
    scratch = program.steps[index].moving
    assert scratch is not None
    fixed = with_scratch(program, index, replace(scratch, bands=()))
    assert tables(program).size_bytes >= tables(fixed).size_bytes + 2 * len(scratch.bands)


@needs_board
@pytest.mark.parametrize("external", [only_exhaustive(False), True])
def test_it_runs(external: bool, tmp_path: Path) -> None:
    for rows in scaled((2,), (2, 4)):
        settings = Settings(
            rows=rows, output=tmp_path / f"r{rows}", external_arena=external, time_limit_s=2
        )
        project = firmware.build(module(), BOARD, settings)
        inputs = project.reference_inputs()
        for run in (run_host, run_qemu):
            made = run(project, inputs, traced=True)
            assert difference(project, made.trace).identical
