"""Results that lie over what their kernels have read: distances, replays, bytes and mutants."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.firmware.projects import needs_host
from tvm_serenity import firmware
from tvm_serenity.boards import board
from tvm_serenity.errors import CheckError, WrongResultError
from tvm_serenity.firmware import Settings
from tvm_serenity.firmware.check.calls import check
from tvm_serenity.firmware.check.passages import first_lost
from tvm_serenity.firmware.compile import driver as making
from tvm_serenity.firmware.compile import fallback
from tvm_serenity.firmware.passage import Passage, distance_bytes, starts_together
from tvm_serenity.firmware.place import overlap
from tvm_serenity.firmware.program import Place, Program

BOARDS = ("mps2-an386", "mps2-an385", "microbit")
"""With kernels of the library that may write over what they read."""


def random_windows(dice: random.Random) -> Passage | None:
    """Any layer of a few pixels; None where it has no result."""
    height, width = dice.randint(1, 7), dice.randint(1, 7)
    kernel = (dice.randint(1, 3), dice.randint(1, 3))
    strides = (dice.randint(1, 3), dice.randint(1, 3))
    dilation = (dice.randint(1, 2), dice.randint(1, 2))
    top, left = dice.randint(0, kernel[0] - 1), dice.randint(0, kernel[1] - 1)
    lines = (height + 2 * top - (kernel[0] - 1) * dilation[0] - 1) // strides[0] + 1
    pixels = (width + 2 * left - (kernel[1] - 1) * dilation[1] - 1) // strides[1] + 1
    if lines < 1 or pixels < 1:
        return None
    sizes = (dice.randint(1, 4), lines, pixels, dice.randint(1, 6))
    together = dice.randint(1, 4)
    return Passage(height, width, *sizes, kernel, strides, dilation, top, left, together)


def test_a_distance_loses_nothing_and_one_less_does() -> None:
    dice = random.Random("distances")
    found = [w for _ in range(200) if (w := random_windows(dice)) is not None]
    tight = 0
    for windows in found:
        far = distance_bytes(windows)
        least = windows.out_size if far is None else far
        for more in range(12):
            assert first_lost(windows, -least - more) is None, windows
        plain = (windows.kernel, windows.top) == ((1, 1), 0) and far is not None and far > 1
        if plain:
            assert first_lost(windows, 1 - least) is not None, windows
            tight += 1
    assert len(found) > 100
    assert tight > 8


def test_channel_after_channel_may_start_together() -> None:
    dice = random.Random("planes")
    allowed = 0
    for _ in range(200):
        windows = random_windows(dice)
        if windows is None:
            continue
        windows = replace(
            windows, dilation=(1, 1), planes=True, out_bytes=windows.bytes, together=1
        )
        assert distance_bytes(windows) is None
        if starts_together(windows):
            assert first_lost(windows, 0) is None, windows
            allowed += 1
    assert allowed > 50
    grown = Passage(4, 4, 2, 6, 6, 2, (3, 3), top=2, left=2, planes=True)
    assert not starts_together(grown)
    assert first_lost(grown, 0) is not None


def module() -> Any:
    """Layers of all kinds that may write over their input, which is the peak."""
    from tvm_serenity.zoo.net import module as written
    from tvm_serenity.zoo.quantised import QuantisedNet
    from tvm_serenity.zoo.window import same

    def write(net: Any) -> Any:
        x = net.input("x", 3, 16)
        y = net.relu6(net.conv(x, 8, same(3, 2)))
        z = net.relu6(net.depthwise(y, same(3)))
        z = net.relu6(net.conv(z, 16))
        z = net.relu6(net.depthwise(z, same(3, 2)))
        return net.stored(net.conv(z, 4))

    return written(write, "NHWC", 1, QuantisedNet)


def pooling() -> Any:
    """A pool of TVM's behind a convolution: the largest pair of tensors."""
    from tvm_serenity.zoo.net import module as written
    from tvm_serenity.zoo.quantised import QuantisedNet
    from tvm_serenity.zoo.window import same

    def write(net: Any) -> Any:
        y = net.relu6(net.conv(net.input("x", 3, 16), 16, same(3)))
        return net.stored(net.conv(net.max_pool(y, same(3, 2)), 4))

    return written(write, "NHWC", 1, QuantisedNet)


def compiled(name: str, **options: Any) -> Any:
    return fallback.make(module(), "net", board(name), Settings(**options))


def lower(program: Program, step: int, by: int) -> Program:
    """The same program with the result of a step, and all that lies there, ``by`` bytes higher."""
    (made,) = program.steps[step].writes
    at = program.place(made)
    moved = replace(program.bands[made], places=(Place(at.region, at.offset_bytes + by),))
    bands = tuple(moved if i == made else b for i, b in enumerate(program.bands))
    arena = {r: n + by for r, n in program.arena_bytes.items()}
    return replace(program, bands=bands, arena_bytes=arena)


@pytest.mark.parametrize("name", BOARDS)
def test_results_lie_over_what_is_read(name: str) -> None:
    plain = sum(compiled(name).placed.arena_bytes.values())
    made = compiled(name, overlap=True)
    arena = sum(made.placed.arena_bytes.values())
    assert made.lower_bound_bytes <= made.peak_bytes <= arena < plain
    making.checked(made)
    program, caught = made.program, 0
    for number, step in enumerate(program.steps):
        for read, windows in step.over:
            assert not program.kernel[step.kernels[0]].restrict
            if windows.planes:
                continue
            row = windows.out_width * windows.out_bytes
            apart = program.place(read).offset_bytes - program.place(step.writes[0]).offset_bytes
            near = apart - (distance_bytes(windows) or 0) + row
            if near > 0:
                with pytest.raises(CheckError, match="is read after"):
                    check(lower(program, number, near))
                caught += 1
    assert caught


@needs_host
def test_it_is_built_and_compared(tmp_path: Path) -> None:
    made = firmware.build(module(), "mps2-an386", Settings(name="net", overlap=True))
    assert made.facts["check"]["tensors"] >= 5


@needs_host
def test_bytes_of_a_wrong_distance_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row too near: without the replay, the comparison of what is computed says so."""
    right = distance_bytes

    def near(windows: Passage) -> int | None:
        far = right(windows)
        row = windows.out_width * windows.out_bytes
        return None if far is None else max(16, far - 2 * row)

    monkeypatch.setattr(overlap, "distance_bytes", near)
    with pytest.raises(CheckError, match="is read after"):
        firmware.build(module(), "mps2-an386", Settings(name="net", overlap=True))
    monkeypatch.setattr(making, "checked", lambda _: None)
    with pytest.raises(WrongResultError):
        firmware.build(module(), "mps2-an386", Settings(name="net", overlap=True))


@needs_host
def test_pools_go_over_their_input_line_after_line() -> None:
    asked = Settings(name="net", rows="off", overlap=True)
    plain = firmware.build(pooling(), "mps2-an386", replace(asked, overlap=False, check=False))
    made = firmware.build(pooling(), "mps2-an386", asked)
    arenas = [sum(found.facts["arena_bytes"].values()) for found in (plain, made)]
    assert arenas[0] == 16 * 16 * 16 + 8 * 8 * 16
    assert arenas[1] < arenas[0] - 600
    program = fallback.make(pooling(), "net", board("mps2-an386"), asked).program
    pools = [i for i, s in enumerate(program.steps) if s.over and "pool" in s.kernels[0]]
    for number in pools:
        step = program.steps[number]
        ((read, passage),) = step.over
        assert passage.together == passage.out_width
        apart = program.place(read).offset_bytes - program.place(step.writes[0]).offset_bytes
        with pytest.raises(CheckError, match="is read after"):
            check(lower(program, number, apart))
    assert pools
    assert made.facts["check"]["tensors"] >= 3
