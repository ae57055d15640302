"""Kernels are chosen by what they cost: prices against measured kernels, and worth of code."""

import importlib.util
import statistics
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import only_exhaustive
from tests.firmware.projects import needs_board
from tvm_serenity.boards import board, names
from tvm_serenity.firmware.isa import PLAIN, Extensions, Isa
from tvm_serenity.firmware.kernels import all_kernels
from tvm_serenity.firmware.kernels import candidates as listed
from tvm_serenity.firmware.kernels.candidates import least, together
from tvm_serenity.firmware.kernels.prices import Row, prices_for, prices_of
from tvm_serenity.firmware.kernels.record import KernelForm, LibraryCall
from tvm_serenity.firmware.program import Kernel
from tvm_serenity.firmware.select.code_size import WORTH, LayerOptions, without_little_use
from tvm_serenity.firmware.select.library import of_rows
from tvm_serenity.kernels.records import Convolution, Requantise
from tvm_serenity.quantize.fixed import multiplier

ROOT = Path(__file__).parents[2]
CORES = {
    "cortex-m0plus": Extensions(thumb=1, name="cortex-m0plus"),
    "cortex-m3": Extensions(thumb=2, name="cortex-m3"),
    "cortex-m4": Extensions(dsp=True, name="cortex-m4"),
    "cortex-m55": Extensions(vectors=True, name="cortex-m55"),
    "rv32imc": Extensions(name="rv32imc"),
}
COUNTED = ("cortex-m55", "rv32imc")
"""Cores whose kernels are priced in instructions."""
FIRST, LAYERS = 2_000_000, 40
LOST, FASTEST = 0.02, 0.85
"""Of what the fastest kernels take, on average; and how many choices are the fastest."""


def benchmark() -> Any:
    """``benchmarks/kernel_costs.py``, which draws layers and measures their kernels."""
    path = ROOT / "benchmarks" / "kernel_costs.py"
    spec = importlib.util.spec_from_file_location("kernel_costs", path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["kernel_costs"] = made
    spec.loader.exec_module(made)
    return made


@cache
def points(core: str) -> Any:
    """What kernels of drawn layers take, measured."""
    measure = benchmark()
    has = measure.Extensions.of(measure.machine(core).core)
    return measure.measured(core, measure.samples(range(FIRST, FIRST + LAYERS), has))


def lost(core: str, prices: Callable[[Any], Any]) -> list[float]:
    """What the cheapest kernels of layers take more than the fastest, measured."""
    known = prices_of(core)
    assert known is not None
    rows = prices(dict(known.rows))
    found: list[float] = benchmark().regret(points(core), rows, known.unit)
    return found


def parts(core: str) -> None:
    if core not in COUNTED:
        for part in ("unicorn", "capstone", "tvm_serenity._cycles"):
            pytest.importorskip(part)


@needs_board
@pytest.mark.parametrize("core", ["cortex-m4", only_exhaustive("cortex-m55")])
def test_the_cheapest_are_the_fastest(core: str) -> None:
    parts(core)
    found = lost(core, lambda rows: rows)
    assert len(found) > LAYERS // 2
    assert statistics.mean(found) < LOST, found
    assert sum(one == 0 for one in found) > FASTEST * len(found), found


@needs_board
def test_a_wrong_price_is_seen() -> None:
    parts("cortex-m4")

    def wrong(rows: dict[Row, list[float]]) -> dict[Row, list[float]]:
        return {row: [0.0 * p if row[0] == "conv_any" else p for p in rows[row]] for row in rows}

    assert statistics.mean(lost("cortex-m4", wrong)) > 5 * LOST


@pytest.mark.parametrize("core", CORES)
def test_every_core_has_prices(core: str) -> None:
    prices = prices_for(CORES[core])
    assert prices is not None
    assert prices.unit == ("instructions" if core in COUNTED else "cycles")
    for kind, row in prices.rows.items():
        assert min(row) >= 0, kind
        assert max(row) > 0, kind
    assert set(prices.code) == set(prices.rows)


def test_cores_without_prices_have_those_of_one_like_them() -> None:
    for name in names():
        has = Extensions.of(board(name).core)
        like = {Isa.MVE: "cortex-m55", Isa.DSP: "cortex-m4", Isa.C: "rv32imc"}.get(has.isa, "")
        assert has.name == (like or {1: "cortex-m0plus", 2: "cortex-m3"}[has.thumb]), name
        assert prices_for(has) is prices_of(has.name) is not None
    assert prices_for(PLAIN) is None


@pytest.mark.parametrize("core", CORES)
def test_candidates_stand_by_their_cost(core: str, monkeypatch: pytest.MonkeyPatch) -> None:
    measure = benchmark()
    several = 0
    for seed in range(FIRST, FIRST + LAYERS):
        made = [found for _, found in measure.kernels(seed, CORES[core])]
        again = [found for _, found in measure.kernels(seed, CORES[core])]
        assert [(m.form, m.cost) for m in made] == [(m.form, m.cost) for m in again]
        spec, weights, bias = measure.drawn(seed)
        layer = replace(measure.library._layer(spec, weights, bias), vectors=CORES[core].vectors)
        found = listed.candidates("k", layer, CORES[core])
        several += len(found) > 1
        assert all(one.cost is not None for one in found)
        costs = [one.cost or 0 for one in found if not one.form.options.gathered]
        assert costs == sorted(costs)
        assert len({one.form for one in found}) == len(found)
        little = least(found)
        assert all(
            one.workspace_bytes > little.workspace_bytes for one in found[: found.index(little)]
        )
    assert several > LAYERS // 3


def test_other_prices_choose_other_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    measure = benchmark()
    core = CORES["cortex-m4"]
    right = prices_for(core)
    assert right is not None
    rows = {
        row: [0.0 if row[0] == "conv_any" else p for p in right.rows[row]] for row in right.rows
    }
    turned = replace(right, rows=rows)
    spec, weights, bias = next(
        one for one in map(measure.drawn, range(FIRST, FIRST + 100)) if one[0].groups == 1
    )
    layer = measure.library._layer(spec, weights, bias)
    first = listed.candidates("k", layer, core)[0].form.kernel.name
    monkeypatch.setattr(listed, "prices_for", lambda _core: turned)
    again = listed.candidates("k", layer, core)[0].form.kernel.name
    assert (first == "conv_any") != (again == "conv_any")


def test_rows_that_a_call_computes_together_decide_its_kernel() -> None:
    """One token wastes half of a kernel for two windows; four tokens fill it twice."""
    real = np.full(64, 1 / 9000)
    finish = Requantise(multiplier(real), 0, -128, 127, "int8", "single")
    spec = Convolution(
        "NHWC",
        ((1, 8, 1, 64),),
        "int8",
        (1, 1, 64, 64),
        "int8",
        (1, 1),
        (0, 0, 0, 0),
        (1, 1),
        1,
        0,
        0,
        finish,
    )
    weights = np.random.default_rng(1).integers(-127, 128, spec.weight_shape).astype(np.int8)
    core = CORES["cortex-m4"]
    alone = of_rows("k", spec, (weights, np.zeros(64, np.int32)), core)
    four = together(alone, 4, core)
    assert [one.cost for one in together(alone, 1, core)] == [one.cost for one in alone]
    assert [one.form.kernel.name for one in (alone[0], four[0])] == ["conv_any", "conv_2x2_dsp"]
    cost = {one.form.kernel.name: one.cost or 0 for one in alone}
    assert (four[0].cost or 0) < 0.7 * cost["conv_2x2_dsp"]
    assert {one.kernel for one in four} == {one.kernel for one in alone}


def option(name: str, cost: int, **code: int) -> LibraryCall:
    """A candidate of so much cost that calls these functions."""
    form = KernelForm(replace(all_kernels()[0], name=name))
    return LibraryCall(form, Kernel(name, (), ""), (), 0, None, 1, cost=cost, code=code)


def best(layers: dict[int, LayerOptions]) -> float:
    """The least worth of any choice, tried out."""
    total = sum(one.options[0].cost or 0 for one in layers.values())
    return min(
        worth(dict(zip(layers, found, strict=True)), total)
        for found in product(*(one.options for one in layers.values()))
    )


def worth(found: dict[int, LibraryCall], total: float) -> float:
    code: dict[str, int] = {}
    for made in found.values():
        code |= made.code
    return sum(made.cost or 0 for made in found.values()) + WORTH * total * sum(code.values())


def test_a_kernel_that_wins_little_is_left_out() -> None:
    many = LayerOptions([option("wide", 900_000, wide=900), option("plain", 990_000, plain=500)])
    few = LayerOptions([option("plain", 10_000, plain=500), option("wide", 10_020, wide=900)])
    found = without_little_use({0: many, 1: few})
    assert [found[i].form.text for i in (0, 1)] == ["wide", "wide"]
    dear = LayerOptions([option("plain", 10_000, plain=500), option("wide", 15_000, wide=900)])
    found = without_little_use({0: many, 1: dear})
    assert [found[i].form.text for i in (0, 1)] == ["wide", "plain"]


def test_what_is_left_out_is_near_the_best() -> None:
    rng = np.random.default_rng(0)
    same = 0
    for _ in range(60):
        names = ["a", "b", "c"]
        code = {n: {n: int(rng.integers(2_500, 25_000)), "shared": 3_750} for n in names}
        layers = {}
        for i in range(4):
            made = [option(n, int(rng.integers(1_000, 1_000_000)), **code[n]) for n in names]
            layers[i] = LayerOptions(sorted(made, key=lambda one: one.cost or 0))
        total = sum(one.options[0].cost or 0 for one in layers.values())
        found = worth(without_little_use(layers), total)
        first = worth({i: one.options[0] for i, one in layers.items()}, total)
        assert best(layers) - 1e-6 <= found <= first
        same += found <= best(layers) * (1 + 1e-9)
    assert same > 55
