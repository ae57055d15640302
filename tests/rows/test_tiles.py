"""Chains of layers in tiles of columns: every kind and width, work counted, and mutants."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.cases import only_exhaustive, sampled, scaled, some
from tests.rows.nets import (
    Built,
    Host,
    build,
    model,
    needs_board,
    needs_host,
    program,
    random_module,
)
from tests.rows.nets import streaming as streamed_as
from tvm_serenity import firmware
from tvm_serenity.boards import MemoryRegion, board
from tvm_serenity.cli import app
from tvm_serenity.cli.commands import register
from tvm_serenity.errors import CheckError, InputError, WrongResultError
from tvm_serenity.firmware import Settings
from tvm_serenity.firmware.kernels.record import NotCovered
from tvm_serenity.firmware.select import chains as writing
from tvm_serenity.firmware.select.tiles import in_tiles, tileable
from tvm_serenity.firmware.trace import expected
from tvm_serenity.fitting import FitGoal, build_chosen, fitted
from tvm_serenity.relax.row_chains import chains, work_of
from tvm_serenity.rows.bound import check_bound, rows_bound
from tvm_serenity.rows.limits import Limits
from tvm_serenity.rows.recompute import recompute
from tvm_serenity.rows.split import heights_of, split
from tvm_serenity.rows.stream import stream
from tvm_serenity.rows.tiles import Chain, Columns, Tiled, tiled, without_between

register()

BOARDS = ("mps2-an386", "mps2-an385", "microbit", "mps3-an547")


def module(stride: int = 1, kernel: int = 3, size: int = 8, mean: bool = False) -> Any:
    """Two blocks of an expansion, windows and a projection; the second has a sum behind it."""
    from tvm_serenity.zoo.net import module as written
    from tvm_serenity.zoo.quantised import QuantisedNet
    from tvm_serenity.zoo.window import same

    def write(net: Any) -> Any:
        x = net.input("x", 3, size)
        y = net.relu6(net.conv(x, 8, same(3)))
        z = net.relu6(net.depthwise(net.relu6(net.conv(y, 24)), same(kernel, stride)))
        y = net.conv(z, 8)
        z = net.relu6(net.depthwise(net.relu6(net.conv(y, 24)), same(3)))
        y = net.add(y, net.conv(z, 8))
        if not mean:
            return net.stored(y)
        return net.stored(net.dense(net.mean(net.relu6(net.conv(y, 40))), 4))

    return written(write, "NHWC", 1, QuantisedNet)


def run(host: Host, built: Built, made: list[Tiled], rows: int = 1) -> int:
    """Run a network with chains in tiles; every row that is stored is what it must be."""
    known = replace(built, kernels=in_tiles(built.kernels, made))
    found = streamed_as(known, heights_of(known.kernels.network, rows))
    calls = program(known, found)
    trace = host.run(calls, built.inputs).trace
    wanted = expected(calls, built.arrays)
    assert len(trace) == len(wanted)
    for number, (_, got) in enumerate(trace):
        assert got == wanted[f"step{number}"].tobytes(), number
    return len(trace)


@needs_host
@pytest.mark.parametrize(
    ("stride", "kernel"), [(1, 3), *map(only_exhaustive, [(2, 3), (2, 5)]), (2, 2)]
)
def test_every_chain_in_every_width_makes_the_same_rows(
    stride: int, kernel: int, tmp_path: Path
) -> None:
    built = build(module(stride, kernel, scaled(8, 12)))
    host, whole, kinds = Host(tmp_path), run(Host(tmp_path), built, []), set()
    found = tileable(built.kernels)
    for chain in found:
        kinds.add((chain.head is not None, chain.tail is not None))
    for chain in some(found, len(found) // 2):
        for tile in some(chain.widths, 1):
            if chain.head is None and len(chain.columns.borders(tile)) > writing.MOST_BORDERS:
                continue
            assert run(host, built, [Tiled(chain, tile)], 1 + tile % 2) < whole
    assert kinds == {(True, False), (False, True), (True, True)}
    both = [chain for chain in found if chain.head is not None and chain.tail is not None]
    run(host, built, [Tiled(chain, 1) for chain in both])


@needs_host
@pytest.mark.parametrize("rows", sampled([1, 2, 5], 1))
def test_sums_take_tiles_in(rows: int, tmp_path: Path) -> None:
    built = build(module(size=12, mean=True))
    network, host = built.kernels.network, Host(tmp_path)
    summed = [c for c in tileable(built.kernels) if c.tail and network.layers[c.tail].sums]
    assert [chain.widths for chain in summed] == [(1, 2, 3, 4, 6, 12)]
    for tile in some(summed[0].widths, 3):
        run(host, built, [Tiled(summed[0], tile)], rows)


@needs_host
@pytest.mark.parametrize("seed", sampled(range(8), 3))
def test_chains_of_random_networks(seed: int, tmp_path: Path) -> None:
    built = build(random_module(seed, quantised=True))
    host = Host(tmp_path)
    for chain in tileable(built.kernels):
        for tile in {1, chain.widths[len(chain.widths) // 2], chain.columns.out_width}:
            try:
                run(host, built, [Tiled(chain, tile)])
            except NotCovered:
                assert len(chain.columns.borders(tile)) > writing.MOST_BORDERS


@pytest.mark.parametrize(
    ("width", "kernel", "stride", "left"),
    [at for at in product((5, 8), (2, 3, 5), (1, 2, 3), (0, 1, 2)) if at[1] >= at[2]],
)
def test_pixels_are_counted_as_tiles_make_them(
    width: int, kernel: int, stride: int, left: int
) -> None:
    """Each tile of a row makes the pixels that the tile before has not left."""
    for out_width in range(1, (width + 2 * left - kernel) // stride + 2):
        columns = Columns(width, out_width, kernel, stride, left)
        chain = Chain(0, 1, None, columns, 3, 7, 11, 4, 4, 5)
        for tile in chain.widths:
            made: list[int] = []
            for first in range(0, out_width, tile):
                begin = first * stride - left
                fresh = begin + (columns.shared() if first else 0)
                made += [x for x in range(fresh, begin + columns.span(tile)) if 0 <= x < width]
                before = sum(x < 0 for x in range(begin, begin + columns.span(tile)))
                behind = sum(x >= width for x in range(begin, begin + columns.span(tile)))
                assert columns.border(first, tile) == (before, behind)
            assert sorted(set(made)) == made
            assert chain.extra_products == (7 * len(made) - 11) * 5


def test_work_stays_within_its_factor_and_peaks_fall() -> None:
    built = build(module(size=12))
    known, work = chains(built.rows), work_of(built.rows)
    assert work.products == 144 * (27 * 8 + 2 * (8 * 24 + 9 * 24 + 24 * 8))
    peaks = []
    for factor in (1.0, 1.2, 1.5, 3.0):
        found = recompute(built.kernels.network, known, work, factor)
        again = recompute(built.kernels.network, known, work, factor)
        assert found == again
        assert found.work.factor <= factor
        peaks.append(peak(found.of(built.kernels.network)))
    assert peaks == sorted(peaks, reverse=True)
    assert peaks[-1] < peaks[0] < peak(built.kernels.network)


def test_what_is_given_back_takes_no_layer_of_another_chain() -> None:
    """A window's chain without its head may have a tail that is the next chain's head."""
    from tvm_serenity.frontends.relax import to_relax

    built = build(to_relax(str(model("mlperf_tiny/vww_mobilenetv1_96_int8.tflite"))))
    known, work = chains(built.rows), work_of(built.rows)
    found = recompute(built.kernels.network, known, work, 1.2, streamed=True)
    assert found.tiles
    layers = [i for tile in found.tiles for i in tile.chain.layers]
    assert len(set(layers)) == len(layers)


def peak(network: Any) -> int:
    from tvm_serenity.memory import peak_bytes
    from tvm_serenity.rows.segments import segment_order

    banded = split(network, heights_of(network, 1))
    return peak_bytes(banded.graph, segment_order(banded))


def test_chains_that_share_a_layer_and_tiles_that_differ_are_refused() -> None:
    built = build(module())
    first = next(c for c in chains(built.rows) if c.head is not None)
    with pytest.raises(ValueError, match="two chains share a layer"):
        tiled(built.kernels.network, [Tiled(first, 1), Tiled(first, 2)])
    with pytest.raises(ValueError, match="tiles of 5 columns"):
        Tiled(first, 5)
    with pytest.raises(InputError, match=r"--recompute 0\.5"):
        Settings(recompute=0.5)


def asked(**more: Any) -> Settings:
    return Settings(name="net", rows=1, recompute=3, time_limit_s=0.4, **more)


@needs_host
@pytest.mark.parametrize("name", sampled(BOARDS, 1))
def test_it_is_built_for_every_core(name: str) -> None:
    plain = firmware.build(module(mean=True), name, replace(asked(), recompute=None)).facts
    made = firmware.build(module(mean=True), name, asked()).facts
    again = made["rows"]["recompute"]
    assert plain["rows"]["recompute"] is None
    assert 1 < again["factor"] <= 3
    assert sum(c["extra_products"] for c in again["chains"]) == again["extra_products"]
    assert sum(made["arena_bytes"].values()) < sum(plain["arena_bytes"].values())
    assert made["check"]["tensors"] > 20
    assert made["check"]["kernels"] > 0


@needs_host
@pytest.mark.parametrize(
    ("here", "there"),
    sampled(
        [
            ("memmove(kept, kept + ", "memmove(kept, kept + 1 + "),
            ("kept + (stop - first)", "kept + 0 * (stop - first)"),
            ("first = tile *", "first = 0 * tile *"),
        ],
        2,
    ),
)
def test_a_wrong_kernel_is_caught(here: str, there: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = writing.Chained._lines
    changed = []

    def other(*given: Any) -> list[str]:
        text = lines(*given)
        wrong = [line.replace(here, there) for line in text]
        changed.append(wrong != text)
        return wrong

    monkeypatch.setattr(writing.Chained, "_lines", other)
    with pytest.raises(WrongResultError):
        firmware.build(module(), BOARDS[0], asked())
    assert any(changed)


@needs_host
def test_too_little_workspace_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = Chain.workspace_bytes
    monkeypatch.setattr(Chain, "workspace_bytes", lambda chain, tile: needed(chain, tile) - 1)
    with pytest.raises(WrongResultError, match="writes outside of its blocks"):
        firmware.build(module(), BOARDS[0], asked())


@pytest.mark.parametrize("streamed", [False, True])
def test_a_bound_covers_every_choice_of_chains(streamed: bool) -> None:
    built = build(module(2))
    network, found = built.kernels.network, chains(built.rows)
    covered = without_between(network, found)
    bound = rows_bound(covered, streamed=streamed, limits=Limits(1))
    certificate = bound.certificate()
    assert check_bound(covered, certificate).lower_bound_bytes == bound.lower_bound_bytes
    best = []
    apart = [c for c in found if c.head is not None and c.tail is not None]
    for tiles in ([], *([Tiled(c, c.widths[-1])] for c in found), [Tiled(c, 1) for c in apart]):
        made, _ = tiled(network, tiles)
        for rows in (1, 2):
            placed = stream(made, heights_of(made, rows), streamed=streamed, limits=Limits(0.5))
            best.append(placed.arena_bytes)
            assert bound.lower_bound_bytes <= placed.lower_bound_bytes or placed.gap == 0
    assert bound.lower_bound_bytes <= min(best)
    with pytest.raises(CheckError):
        check_bound(network, certificate)  # of layers that keep what lies between them


def test_the_command_says_what_is_computed_again(tmp_path: Path) -> None:
    blocks = "zoo:mobilenet-v2?layout=NHWC&size=32&width=0.35&classes=2&quantised=1"
    given = ["rows", blocks, "--rows", "1", "--time-limit", "2", "--recompute", "1.5"]
    certificate = str(tmp_path / "bands.json")
    ran = CliRunner().invoke(app, [*given, "--json", "--check", "--certificate", certificate])
    assert ran.exit_code == 0, ran.output
    answer = json.loads(ran.stdout)
    again = answer["recompute"]
    assert 1 <= again["factor"] <= again["limit"] == 1.5
    assert again["factor"] == round(1 + again["extra_products"] / again["products"], 6)
    checked = CliRunner().invoke(app, ["check", blocks, certificate, "--json"])
    assert checked.exit_code == 0, checked.output
    assert json.loads(checked.stdout)["lower_bound_bytes"] <= answer["arena_bytes"]
    for option in ("--graph", "--curve"):
        refused = CliRunner().invoke(app, [*given, option])
        assert f"--recompute 1.5 does not take {option}" in str(refused.exception)


@needs_board
def test_fit_has_it_as_candidates() -> None:
    found = fitted(module(), BOARDS[0], FitGoal(minimise="ram", recompute=3, time_limit_s=60))
    works = {one.candidate.work for one in found.points}
    assert 1.0 in works
    assert max(works) > 1
    assert all(one.run is not None for one in found.points)
    chosen = found.chosen
    assert chosen is not None
    assert chosen.candidate.work > 1
    assert "computed again" in chosen.strategy
    assert 0 < found.lower_bound_bytes <= min(one.arena_bytes for one in found.points)
    without = fitted(module(), BOARDS[0], FitGoal(minimise="ram", time_limit_s=60)).chosen
    assert without is not None
    assert chosen.arena_bytes < without.arena_bytes
    build_chosen(found, Settings(name="net"))


@needs_host
@pytest.mark.parametrize(
    "more",
    sampled(
        [
            {"overlap": True},
            {"workspace": "grow"},
            {"stream_input": True},
            {"external_arena": True, "stream_input": True},
            {"channels": "keep", "rows": 3},
            {"rows": "auto", "ram_bytes": 3_000},
            {"format": "zephyr"},
            {"format": "arduino", "overlap": True},
            {"format": "mlf"},
        ],
        2,
    ),
)
def test_it_goes_with_other_options(more: dict[str, Any]) -> None:
    """Chains are made whatever else is asked for, and every tensor is what it must be."""
    made = firmware.build(module(mean=True), BOARDS[0], replace(asked(), **more))
    again = made.facts["rows"]["recompute"]
    assert again["chains"]
    assert made.facts["check"]["tensors"] > 10
    assert made.facts["rows"]["streamed"] == more.get("stream_input", False)


def test_what_fits_without_is_not_computed_again() -> None:
    how = replace(asked(), rows="auto", check=False)
    again = firmware.build(module(), BOARDS[0], how).facts["rows"]["recompute"]
    assert again["chains"] == []
    assert (again["factor"], again["limit"]) == (1.0, 3)


def test_bands_across_memories_hold_the_workspace_of_chains() -> None:
    """Two memories, neither of which holds the arena alone."""
    plain = firmware.build(module(mean=True), BOARDS[0], replace(asked(), check=False))
    arena = sum(plain.facts["arena_bytes"].values())
    target = board(BOARDS[0])
    flash = next(r for r in target.regions if r.kind == "flash")
    sizes = 1_024 + 128 + arena * 2 // 3, arena // 2
    parts = (
        MemoryRegion(f"part{i}", "sram", 2**29 + i * 2**20, size // 16 * 16)
        for i, size in enumerate(sizes)
    )
    small = replace(target, regions=(flash, *parts))
    made = firmware.build(module(mean=True), small, asked())
    assert len([n for n in made.facts["arena_bytes"].values() if n]) == 2
    assert made.facts["rows"]["recompute"]["chains"]
