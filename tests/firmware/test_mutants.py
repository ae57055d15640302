"""A compiler that is wrong in one place: ``serenity build`` ends with a status that is not 0.

Each mutant replaces one function of the compiler by a wrong one; the command is the real one, and
succeeds without the mutant.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.firmware.projects import needs_host
from tests.firmware.small import apart, build, counting, positions, windows
from tvm_serenity.firmware.compile import banded_program, driver, unsplit
from tvm_serenity.firmware.emit import walker
from tvm_serenity.firmware.kernels.parts import calls, epilogue, pairs, planes, tile_2x4
from tvm_serenity.firmware.place import memory_map
from tvm_serenity.firmware.select import library, lowered

Patch = Callable[[pytest.MonkeyPatch], None]


def wrong(module: Any, name: str, change: Callable[[Any], Any]) -> Patch:
    """A mutant: ``module.name`` returns what ``change`` makes of its result."""
    right = getattr(module, name)

    def mutated(*arguments: Any, **named: Any) -> Any:
        return change(right(*arguments, **named))

    return lambda monkeypatch: monkeypatch.setattr(module, name, mutated)


def _rows_but_the_last(text: str) -> str:
    return text.replace("while (y < end) {", "while (y + 1u < end || y == band) {")


def _swapped(written: Any) -> Any:
    first, second, *others = written.kernel.params
    if not (others and first.readonly and second.readonly and first.dtype == second.dtype):
        return written
    return replace(written, kernel=replace(written.kernel, params=(second, first, *others)))


def _rounded_once(found: Any) -> Any:
    return found if found is None else replace(found, once=True, small=False)


def _moved_border(geometry: dict[str, int]) -> dict[str, int]:
    return {**geometry, "left": geometry["left"] - 1} if geometry["left"] else geometry


def _moved_line(lines: dict[str, int]) -> dict[str, int]:
    return {**lines, "top": lines["top"] - 1} if lines["top"] else lines


def _overlapping(placed: memory_map.MemoryMap) -> memory_map.MemoryMap:
    return replace(placed, offsets=(placed.offsets[0], placed.offsets[0], *placed.offsets[2:]))


def _off_by_one(numbers: Any) -> Any:
    return numbers + np.array([0, 2 << 8])


def _nothing_written(written: Any) -> Any:
    kernel = written.kernel
    return replace(written, kernel=replace(kernel, body=f"    return;\n{kernel.body}"))


def _first_variant(step: Any) -> Any:
    return replace(step, variants=(0,) * step.height)


def _transposed(weights: Any) -> Any:
    return weights if weights is None else np.ascontiguousarray(weights[..., ::-1])


def _state_not_kept(made: Any) -> Any:
    program = made.program
    outputs = (*program.outputs[:-1], program.inputs[-1])
    return replace(made, program=replace(program, outputs=outputs))


def _less_bias(numbers: Any) -> Any:
    return numbers - np.array([1 << 12, 0, 0, 0, 0], np.int32)


M3, M0 = ("--board", "mps2-an385"), ("--board", "microbit")
MUTANTS = {
    "a dropped row": (windows, ("--rows", "2"), wrong(walker, "_library", _rows_but_the_last)),
    "swapped operand": (apart, (), wrong(lowered, "write", _swapped)),
    "wrong rounding": (windows, (), wrong(library, "rounding", _rounded_once)),
    "off-by-one border": (windows, (), wrong(calls, "geometry", _moved_border)),
    "off-by-one border of a row": (
        windows,
        ("--rows", "2"),
        wrong(calls, "geometry", _moved_border),
    ),
    "off-by-one line": (windows, (), wrong(calls, "_lines", _moved_line)),
    "overlapping offset": (windows, (), wrong(unsplit, "place", _overlapping)),
    "wrong zero point": (windows, (), wrong(epilogue, "numbers", _off_by_one)),
    "stale arena": (apart, (), wrong(lowered, "write", _nothing_written)),
    "wrong variant": (
        positions,
        ("--rows", "1"),
        wrong(banded_program.BandedMaker, "step", _first_variant),
    ),
    "transposed weight": (windows, (), wrong(pairs, "paired_words", _transposed)),
    "transposed byte": (windows, M3, wrong(tile_2x4, "grouped_weights", _transposed)),
    "transposed byte with offset": (windows, M0, wrong(tile_2x4, "grouped_weights", _transposed)),
    "border without offset": (windows, M0, wrong(planes, "_channel_numbers", _less_bias)),
    "lost state": (counting, (), wrong(driver, "with_every_output", _state_not_kept)),
}


@needs_host
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_caught(
    mutant: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network, options, patch = MUTANTS[mutant]
    monkeypatch.chdir(tmp_path)
    patch(monkeypatch)
    assert build(monkeypatch, network(), tmp_path, *options) != 0
    said = capsys.readouterr().err
    print(said)
    assert said.startswith("serenity: ")
    assert "Traceback" not in said
    assert not (tmp_path / "made").exists()


@needs_host
@pytest.mark.parametrize(
    ("network", "options"),
    [
        (windows, ()),
        (windows, M3),
        (windows, M0),
        (windows, ("--rows", "2")),
        (positions, ("--rows", "1")),
        (counting, ()),
    ],
)
def test_without_a_mutant_it_is_built(
    network: Any, options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert build(monkeypatch, network(), tmp_path, *options) == 0
    assert (tmp_path / "made" / "net_model.c").is_file()
