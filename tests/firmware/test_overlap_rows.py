"""Rows that lie over rows that die as they are made: arenas, replays, bytes and mutants."""

from dataclasses import replace
from typing import Any

import pytest

from tests.firmware.projects import needs_host
from tvm_serenity import firmware
from tvm_serenity.boards import board
from tvm_serenity.errors import CheckError
from tvm_serenity.firmware import Settings
from tvm_serenity.firmware.check.calls import check
from tvm_serenity.firmware.check.passages import first_lost
from tvm_serenity.firmware.compile import driver as making
from tvm_serenity.firmware.compile import fallback
from tvm_serenity.firmware.passage import Passage, least_distance
from tvm_serenity.firmware.program import Place, Program
from tvm_serenity.firmware.select import overlap
from tvm_serenity.memory import peak_bytes
from tvm_serenity.rows.bound import check_bound, rows_bound
from tvm_serenity.rows.limits import Limits
from tvm_serenity.rows.split import heights_of, split
from tvm_serenity.rows.stream import arriving, stream
from tvm_serenity.schedule.check import naive_peak

BOARDS = ("mps2-an386", "mps2-an385", "microbit")


def module() -> Any:
    """An input that is nearly all of the peak, so that the first row must lie over it."""
    from tvm_serenity.zoo.net import module as written
    from tvm_serenity.zoo.quantised import QuantisedNet
    from tvm_serenity.zoo.window import same

    def write(net: Any) -> Any:
        x = net.input("x", 3, 32)
        y = net.relu6(net.conv(x, 4, same(3, 2)))
        z = net.relu6(net.conv(net.relu6(net.depthwise(y, same(3))), 4))
        z = net.add(y, z)
        return net.stored(net.conv(net.relu6(net.depthwise(z, same(3, 2))), 4))

    return written(write, "NHWC", 1, QuantisedNet)


def compiled(name: str, **options: Any) -> Any:
    settings = Settings(rows=1, time_limit_s=2, **options)
    return fallback.make(module(), "net", board(name), settings)


def network(overlap: bool = True) -> Any:
    maker = making.NetworkCompiler(module(), "net", board("mps2-an386"), Settings())
    return maker.rows(overlap).network


@pytest.mark.parametrize("name", BOARDS)
def test_rows_lie_over_what_dies(name: str) -> None:
    plain = sum(compiled(name).placed.arena_bytes.values())
    made = compiled(name, overlap=True)
    arena = sum(made.placed.arena_bytes.values())
    assert made.lower_bound_bytes <= made.peak_bytes <= arena <= plain
    making.checked(made)
    assert any(step.over for step in made.program.steps) == (arena < plain)
    for step in made.program.steps:
        if step.over:
            assert not any(made.program.kernel[k].restrict for k in step.kernels)


def test_a_peak_counts_what_is_saved_as_the_checker_does() -> None:
    banded = split(network(), heights_of(network(), 1))
    apart = split(network(False), heights_of(network(), 1))
    order = range(len(banded.graph.ops))
    assert any(op.over for op in banded.graph.ops)
    assert not any(op.over for op in apart.graph.ops)
    peak = peak_bytes(banded.graph, order)
    assert peak == naive_peak(banded.graph, order) < peak_bytes(apart.graph, order)
    coarse = split(network(), heights_of(network(), 2))
    several = {f for f, h in enumerate(coarse.heights) if h > 1}
    for op in coarse.graph.ops:
        assert not any(coarse.bands[t].feature in several for t in op.over)


@pytest.mark.parametrize("streamed", [False, True])
def test_the_bound_covers_rows_that_lie_over_others(streamed: bool) -> None:
    limits = Limits(time_limit_s=2)
    found = stream(network(), heights_of(network(), 1), streamed=streamed, limits=limits)
    found.check()
    bound = rows_bound(network(), streamed=streamed, limits=limits)
    assert bound.lower_bound_bytes <= found.arena_bytes
    assert check_bound(network(), bound.certificate()).lower_bound_bytes == bound.lower_bound_bytes
    with pytest.raises(CheckError):
        check_bound(network(False), bound.certificate())  # another network
    apart = stream(network(False), found.banded.heights, streamed=streamed, limits=limits)
    assert found.arena_bytes <= apart.arena_bytes
    if not streamed:
        arriving(found, limits).check()


def lying_rows(program: Program) -> list[tuple[int, int, int]]:
    """Features, and rows of them, that lie over a row their step reads: (made, read, apart)."""
    found = []
    for step in program.steps:
        for read, _ in step.over:
            (made,) = step.writes
            for place in program.bands[made].places:
                for other in program.bands[read].places:
                    apart = place.offset_bytes - other.offset_bytes
                    if -program.row_bytes(made) < apart < program.row_bytes(read):
                        found.append((made, read, apart))
    return found


@pytest.mark.parametrize("name", BOARDS)
def test_a_row_that_begins_too_near_is_found(name: str) -> None:
    """Every tensor of rows that overlaps another, one byte at a time further up."""
    program = compiled(name, overlap=True).program
    caught = 0
    for made, _, _ in lying_rows(program):
        for by in range(1, program.row_bytes(made), 16):
            places = tuple(Place(p.region, p.offset_bytes + by) for p in program.bands[made].places)
            bands = list(program.bands)
            bands[made] = replace(bands[made], places=places)
            arena = {r: n + by for r, n in program.arena_bytes.items()}
            try:
                check(replace(program, bands=tuple(bands), arena_bytes=arena))
            except CheckError:
                caught += 1
                break
    assert bool(caught) == bool(lying_rows(program))


@needs_host
def test_it_is_built_and_a_wrong_distance_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def near(windows: Passage) -> int | None:
        far = least_distance(windows)
        return far and 1

    asked = Settings(name="net", rows=1, overlap=True, time_limit_s=2)
    made = firmware.build(module(), "mps2-an386", asked)
    assert made.facts["check"]["tensors"] > 20
    monkeypatch.setattr(overlap, "least_distance", near)
    with pytest.raises(CheckError, match="is read after"):
        firmware.build(module(), "mps2-an386", asked)


def test_elements_may_lie_exactly_over_those_they_are_made_of() -> None:
    same = Passage(1, 1, 12, 1, 1, 12, planes=True)
    assert first_lost(same, 0) is None
    assert first_lost(same, 1) is not None
    narrower = Passage(1, 12, 4, 1, 12, 1)  # floats to bytes
    assert overlap.distances((same, narrower, None)) == (0, 1, None)
    assert first_lost(narrower, -1) is None
    assert overlap.farther((0, None), (1, None)) == (1, None)
    assert overlap.farther((0, None), (1, 2)) is None
