"""``explain``: every claim against an independent computation."""

import random
import shlex
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from tests.cases import only_exhaustive
from tests.cli.run import answer, serenity
from tests.firmware.test_states_in_place import CACHE, cached
from tests.large_graphs import layered, training
from tests.random_graphs import random_graph
from tvm_serenity.boards import board
from tvm_serenity.explain import Claim, Measure, fit_claims, measures_of, needs_of, peak_claims
from tvm_serenity.explain.memories import memories_claims
from tvm_serenity.explain.rows import FinestBands, finest_bands, floor_claims
from tvm_serenity.frontends import load
from tvm_serenity.frontends.tflite_file import TfliteFile
from tvm_serenity.frontends.tflite_rows import network_of
from tvm_serenity.graph import is_order
from tvm_serenity.graph.text import dump, parse
from tvm_serenity.memory import profile
from tvm_serenity.offchip.transfers import transfer_plan
from tvm_serenity.offchip.transfers.solve import executable
from tvm_serenity.rows.bound import check_bound, rows_bound
from tvm_serenity.schedule import naive_peak, schedule
from tvm_serenity.search.deadline import within
from tvm_serenity.system import cache

AD = "models/mlperf_tiny/ad01_int8.tflite"
SWIFTNET = "models/swiftnet/swiftnet_vww_224_uint8.tflite"
VWW = "models/mlperf_tiny/vww_mobilenetv1_96_int8.tflite"


def by_kind(claims: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [c for c in claims if c["kind"] == kind]


@pytest.mark.parametrize("seed", range(40))
def test_what_one_op_needs_bounds_every_order(seed: int) -> None:
    graph = random_graph(random.Random(seed), 6)
    orders = [o for o in permutations(range(len(graph.ops))) if is_order(graph, o)]
    least = min(naive_peak(graph, order) for order in orders)
    found = schedule(graph)
    assert max((n.total_bytes for n in needs_of(graph)), default=0) <= least == found.peak_bytes
    for claim in (c.json() for c in peak_claims(graph, found)):
        if claim["kind"] == "bound":
            assert claim["lower_bound_bytes"] <= least
        if claim["kind"] == "peak":
            order = found.order if claim["order"] == "best" else range(len(graph.ops))
            assert claim["peak_bytes"] == naive_peak(graph, order)
            assert sum(t["size_bytes"] for t in claim["tensors"]) == claim["peak_bytes"]
            assert f"{claim['peak_bytes']:,} byte" in claim["text"]


def test_measures_hold() -> None:
    graph = parse(
        """
        input x[100]i8
        a RESHAPE: x -> y[100]i8
        b RELU: y -> z[100]i8
        c CONV_2D: z -> w[10]i8
        output w
        """
    )
    tried = measures_of(graph)
    found = {m.name: m.peak_bytes for m in tried if isinstance(m, Measure)}
    assert len(found) == len(tried)
    assert found == {"in-place": 200, "alias-copies": 200, "fold-concat": 200, "all-three": 110}


def test_a_measure_that_there_is_no_time_for_says_so() -> None:
    with within(0.1):
        tried = measures_of(layered(20_000))
    late = [claim for claim in tried if isinstance(claim, Claim)]
    assert late
    assert late == tried[-len(late) :]
    assert {claim.kind for claim in late} == {"refused"}
    assert all("not tried, there was no time" in claim.text for claim in late)


@pytest.mark.parametrize("name", ["kws_dscnn_int8", only_exhaustive("sww_streaming_int8")])
def test_where_bands_stop_is_what_the_certificate_says(name: str, shared: Path) -> None:
    file = load(shared / f"models/mlperf_tiny/{name}.tflite")
    assert isinstance(file, TfliteFile)
    network = network_of(file)
    bands = finest_bands(file)
    assert isinstance(bands, FinestBands)
    for claim, streamed in zip(floor_claims(bands), (False, True), strict=True):
        numbers = claim.numbers
        assert numbers["streamed"] == streamed
        assert sum(one["size_bytes"] for one in numbers["alive"]) == numbers["peak_bytes"]
        confirmed = check_bound(network, rows_bound(network, streamed=streamed).certificate())
        assert confirmed.lower_bound_bytes == numbers["lower_bound_bytes"]
        assert all(0 <= one["rows"] <= one["of"] for one in numbers["alive"])


def test_swiftnet_in_words(shared: Path) -> None:
    claims = answer("explain", shared / SWIFTNET)["claims"]
    assert [c["peak_bytes"] for c in by_kind(claims, "peak")] == [351_232, 301_056]
    (bound,) = by_kind(claims, "bound")
    assert bound["because"] == "op"
    assert bound["text"] == (
        "'split_0:split' alone needs 301,056 bytes, its inputs (150,528) and its outputs "
        "(150,528): no order can go below."
    )
    measures = {c["name"]: c["peak_bytes"] for c in by_kind(claims, "measure")}
    assert measures["alias-copies"] == 275_968
    assert measures["all-three"] == measures["rewriting"] == 200_704
    assert measures["rows"] < 154_112  # that of bands of four rows
    (least,) = by_kind(claims, "least")
    assert (least["best"], least["peak_bytes"]) == ("rows", measures["rows"])
    graph = load(shared / SWIFTNET).graph
    best = schedule(graph)
    tried = [m for m in measures_of(graph) if isinstance(m, Measure)]
    on_board = [c.json() for c in fit_claims(board("nrf52840-dk"), graph, best, tried)]
    (ram,) = by_kind(on_board, "ram")
    assert (ram["ram_spare_bytes"], ram["fits"]) == (-40_064, False)
    (conflict,) = by_kind(on_board, "conflict")
    assert conflict["tensors"] == ["input", "split"]
    assert by_kind(on_board, "way-out")[0]["measures"] == ["all-three"]


def test_two_memories_have_the_bytes_of_the_transfer_plan() -> None:
    wide = parse("""
    graph wide
    input x[90000]
    a: x -> a[200000]
    b: a -> b[150000]
    c: b -> c[120000]
    d: a c -> d[64]
    output d
    """)
    order = (0, 1, 2, 3)
    (claim,) = memories_claims("m.txt", board("stm32f746g-disco"), "f746", wide, order)
    found = claim.json()
    plan = transfer_plan(wide, found["fast_bytes"], order, "direct", executable(16))
    assert (found["fast"], found["slow"]) == ("sram", "sdram")
    for name in ("total_bytes", "copied_bytes", "direct_bytes", "compulsory_bytes"):
        assert found[name] == getattr(plan, name), name
    assert found["bound_bytes"] == plan.lower_bound_bytes
    assert plan.total_bytes > plan.compulsory_bytes
    assert f"{plan.total_bytes:,} bytes move between sdram and sram" in claim.text
    words = shlex.split(found["command"])
    assert words[words.index("--fast-memory") + 1] == str(found["fast_bytes"])
    assert memories_claims("m.txt", board("nrf52840-dk"), "nrf", wide, order) == []


def test_a_board_with_two_memories_is_told_what_moves(shared: Path) -> None:
    pytest.importorskip("tvm")
    claims = answer("explain", shared / AD, "--board", "stm32f746g-disco")["claims"]
    (claim,) = by_kind(claims, "memories")
    assert claim["total_bytes"] == claim["compulsory_bytes"] == claim["bound_bytes"]


def test_a_chain_gains_from_rows_alone(shared: Path) -> None:
    found = serenity("explain", shared / VWW)
    assert found.returncode == 0
    head = found.stdout.splitlines()[2:6]
    assert head[0] == "Least memory"
    assert head[1].startswith("  Least memory: 28,032 bytes, 49.3% below the best order, by rows")
    assert head[1].endswith("378 kernel calls instead of 31, nothing computed twice.")
    assert head[2] == "  Ordering alone: 55,296 bytes, proved optimal."
    assert "--board BOARD --minimise ram -o vww_mobilenetv1_96_int8" in head[3]
    assert "the given order is proved optimal" in found.stdout
    assert "no order can go below" in found.stdout
    assert found.stdout.count("no gain, 55,296 bytes") == 5


def test_the_best_build_is_the_one_of_build(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The headline has the figures of ``serenity build``, and the command that repeats it."""
    pytest.importorskip("tvm")
    monkeypatch.setenv(cache.FOLDER, str(tmp_path / "cache"))
    monkeypatch.setattr("tvm_serenity.firmware.kept.entries", cache.opened)
    model, chosen = shared / AD, ("--board", "nucleo-l4r5zi")
    claims = answer("explain", model, *chosen)["claims"]
    best, alone, command = claims[:3]
    assert [c["kind"] for c in claims[:3]] == ["build", "ram", "command"]
    made = answer("build", model, *chosen, "-o", tmp_path / "ad", "--no-check")["search"]
    for key in ("minimise", "build", "alternatives", "options"):
        assert best[key] == made[key], key
    assert best["fits"]
    assert f"{made['build']['ram_bytes']:,} of 655,360 bytes of RAM" in best["text"]
    assert "of flash, with code" in best["text"]
    assert " ms, " in best["text"]
    assert alone["text"].startswith("Ordering alone: an arena of ")
    words = shlex.split(command["command"])
    assert words[:5] == ["serenity", "build", str(model), *chosen]
    again = answer("explain", model, *chosen)["claims"][0]  # kept, with the seconds it took
    assert again == best


def test_where_no_build_fits_the_shortage_is_named(shared: Path) -> None:
    pytest.importorskip("tvm")
    best, *others = answer("explain", shared / AD, "--board", "cortex-m4:16K:64K")["claims"]
    assert not best["fits"]
    assert best["text"].startswith("No build fits Arm Cortex-M4")
    assert best["text"].endswith(" bytes short.")
    assert "--fits" in next(c for c in others if c["kind"] == "command")["command"]


def test_a_graph_in_text_form_has_no_build(tmp_path: Path) -> None:
    source = tmp_path / "graph.txt"
    source.write_text("input x[100]i8\na: x -> y[300]i8\noutput y\n")
    best, alone, *_ = answer("explain", source, "--board", "microbit")["claims"]
    assert best["reason"] == "the operators of this format cannot be compiled"
    assert alone["fits"]
    least, _, command, *_ = answer("explain", source)["claims"]
    assert (least["best"], command["command"]) == (None, f"serenity schedule {source}")


def test_a_model_without_rows_says_so(shared: Path) -> None:
    found = answer("explain", shared / AD)["claims"]
    (refused,) = by_kind(found, "refused")
    assert "(computed by FULLY_CONNECTED)" in refused["text"]
    assert "only 4-D tensors with a batch of 1" in refused["text"]
    assert by_kind(found, "least")[0]["text"].endswith("by the order alone.")


def test_conflicts_cannot_be_placed() -> None:
    graph = parse("input x[6000]i8\na: x -> y[6000]i8\nb: y -> z[9]i8\noutput z\n")
    claims = [
        c.json() for c in fit_claims(board("stm32vldiscovery"), graph, schedule(graph), (), 1024)
    ]
    (conflict,) = by_kind(claims, "conflict")
    assert conflict["tensors"] == ["x", "y"]
    assert conflict["bytes"] > conflict["capacity_bytes"] == 8192 - 1024 - 128


def test_profile_chart_keeps_the_peak() -> None:
    from rich.console import Console

    from tvm_serenity.cli.profile_chart import profile_chart

    lines = ["input t0[10]i8"]
    lines += [f"op{i}: t{i} -> t{i + 1}[{90 if i == 57 else 10}]i8" for i in range(100)]
    shown = profile(parse("\n".join([*lines, "output t100", ""])))
    console = Console(width=25, record=True, file=None, quiet=False, force_terminal=False)
    with console.capture() as capture:
        console.print(profile_chart(shown, 25))
    rows = capture.get().splitlines()
    assert len(rows) == 8
    assert rows[0].strip() == "█"
    assert rows[0].index("█") == 57 * 25 // 100
    assert rows[-1] == "█" * 25


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_plots(suffix: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    source, out = tmp_path / "a.txt", tmp_path / f"plot.{suffix}"
    source.write_text("input x[100]i8\na: x -> y[300]i8\noutput y\n")
    assert serenity("inspect", source, "--plot", out, "--compact").returncode == 0
    start = out.read_bytes()[:100]
    assert start.startswith(b"\x89PNG" if suffix == "png" else b"<?xml")
    refused = serenity("inspect", source, "--plot", tmp_path / "plot.bmp")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)


def test_states_are_told_beside_the_peak(tmp_path: Path) -> None:
    path = cached(tmp_path / "net.tflite", dtype="int8")
    (found,) = by_kind(answer("explain", path)["claims"], "states")
    assert (found["state_bytes"], found["count"]) == (CACHE + 4, 2)
    assert "build --sliding" in found["text"]
    assert by_kind(answer("explain", "zoo:swiftnet-cell-a")["claims"], "states") == []


def test_an_empty_network_is_explained() -> None:
    graph = parse("input x[10]i8\noutput x\n")
    claims = peak_claims(graph, schedule(graph))
    assert [c.numbers["peak_bytes"] for c in claims] == [10]


def test_an_arena_is_spread_over_regions() -> None:
    """128 + 64 KB: two tensors that no region holds together."""
    graph = parse("input x[120000]i8\na: x -> y[60000]i8\nb: y -> z[9]i8\noutput z\n")
    (ram, _) = (c.json() for c in fit_claims(board("netduinoplus2"), graph, schedule(graph)))
    assert ram["fits"]
    assert ram["arena_bytes"] > ram["largest_room_bytes"]
    assert len(ram["arena_regions"]) == 2
    assert "spread over" in ram["text"]


def test_boards_of_a_graph_that_there_was_no_time_to_order(tmp_path: Path) -> None:
    """A training step of megabytes, placed late: no board is said to have room for it."""
    source = tmp_path / "large.txt"
    source.write_text(dump(training(22_000)))
    data = answer("report", source, "-o", tmp_path / "large.html", "--time-limit", 0)
    peak = data["schedule"]["schedule"]["peak_bytes"]
    assert peak > max(one["ram_bytes"] for one in answer("boards").values())
    assert all(b["arena_bytes"] >= peak and not b["fits"] for b in data["boards"])
    claims = answer("explain", source, "--board", "stm32vldiscovery", "--time-limit", 0)["claims"]
    assert any("no time" in c["text"] and "STM32VL" in c["text"] for c in claims)


def test_channels_that_need_not_be_computed(shared: Path) -> None:
    (found,) = by_kind(answer("explain", shared / VWW)["claims"], "channels")
    # docs/firmware.md: what build says of the same file
    assert (found["left_out"], found["of"]) == (2_160, 3_250)
    assert sum(layer["left_out"] for layer in found["layers"]) == 2_160
    assert all(0 < layer["left_out"] < layer["of"] for layer in found["layers"])
    assert all(
        f"{layer['left_out']} of {layer['of']}" in found["text"] for layer in found["layers"]
    )
    kws = shared / "models/mlperf_tiny/kws_dscnn_int8.tflite"
    (none,) = by_kind(answer("explain", kws)["claims"], "channels")
    assert none["left_out"] == 0
    assert none["layers"] == []
    assert by_kind(answer("explain", "zoo:swiftnet-cell-a")["claims"], "channels") == []
