"""Checks of kernels and constants by themselves: exact integers, every table entry, more inputs."""

import json
from fractions import Fraction
from math import floor
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tvm")

from tests.cli.run import serenity
from tests.firmware.faults import curves, vision
from tests.firmware.projects import model, needs_board, needs_host
from tvm_serenity.errors import WrongResultError
from tvm_serenity.firmware import Settings, build
from tvm_serenity.firmware.check import drawn_inputs
from tvm_serenity.firmware.check.macros import stored_edges
from tvm_serenity.firmware.result import REFERENCE, load, packed
from tvm_serenity.firmware.validate.kernel_reference import Reference
from tvm_serenity.kernels import normalise, pointwise
from tvm_serenity.operators import exp, gelu, log, operator, rsqrt
from tvm_serenity.operators.functions import Function
from tvm_serenity.operators.sample_bounds import SampledLine, check_samples, sample_bounds
from tvm_serenity.operators.scene import Stored
from tvm_serenity.operators.table_bounds import (
    check_differences,
    check_dividends,
    check_exponentials,
    check_inverses,
    check_real_exponentials,
    check_table,
    nearest,
)
from tvm_serenity.quantize import lookups, tables
from tvm_serenity.quantize.exact import ONCE, TWICE, WIDE, Channel, stored_values, telling_sums
from tvm_serenity.quantize.params import Affine
from tvm_serenity.validation.inputs import Parameter
from tvm_serenity.validation.steps import reads_table
from tvm_serenity.validation.sweeps import sweeps

TABLES = """
    LOGISTIC TANH ELU GELU EXP LOG RSQRT SQRT ABS LEAKY_RELU RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1
    HARD_SWISH
"""


SVDF = "tflm/keyword_scrambled_8bit.tflite"


def half_up(x: Fraction) -> int:
    return floor(x + Fraction(1, 2))


def half_away(x: Fraction) -> int:
    return half_up(abs(x)) * (1 if x >= 0 else -1)


def defined(c: Channel, total: int) -> int:
    """What LiteRT's documentation says of a sum, in fractions."""
    if c.rounding == WIDE:
        short = (c.value + (1 << 15)) >> 16 if c.value < 0x7FFF0000 else 0x7FFF
        made = half_up(Fraction(total * short, 1 << (15 - c.shift)))
    elif c.rounding == ONCE:
        made = half_up(Fraction(total * c.value, 1 << (31 - c.shift)))
    else:
        high = half_up(Fraction(total * c.value << max(c.shift, 0), 1 << 31))
        made = half_away(Fraction(high, 1 << max(-c.shift, 0)))
    return min(max(made + c.zero_point, c.low), c.high)


@pytest.mark.parametrize("rounding", [TWICE, ONCE, WIDE])
def test_exact_integers_are_the_definition(rounding: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(60):
        value, shift = int(rng.integers(1 << 30, 1 << 31)), int(rng.integers(-31, 3))
        channel = Channel(value, shift, int(rng.integers(-128, 128)), -128, 127, rounding)
        sums = telling_sums(channel)
        made, inside = stored_values(channel, sums)
        assert inside.any()
        for total, got in zip(sums[inside].tolist(), made[inside].tolist(), strict=True):
            assert got == defined(channel, total)


def test_sums_tell_roundings_apart() -> None:
    """Both roundings are met in a half that they round to different sides, of either sign."""
    twice, once = (Channel(1_132_254_976, -6, 0, -128, 127, how) for how in (TWICE, ONCE))
    sums = telling_sums(twice)
    a, b = (stored_values(c, sums)[0] for c in (twice, once))
    apart = sums[a != b]
    assert (apart < 0).any()
    assert {-128, -1, 0, 1, 127} <= set(a.tolist())


def drawn(kind: str, rng: np.random.Generator) -> Function:
    dtype = "int8"
    scales = [float(np.float32(2.0 ** rng.uniform(-9, 2))) for _ in range(2)]
    scales[1] = max(scales[1], scales[0] / 100)
    source, result = (
        Stored((1,), Affine((s,), (int(rng.integers(-128, 128)),), dtype)) for s in scales
    )
    return Function(source, result, 1.0 if kind == "GELU" else float(np.float32(rng.normal())))


@pytest.mark.parametrize("kind", TABLES.split())
def test_every_table_keeps_to_its_bounds(kind: str) -> None:
    rng, reference = np.random.default_rng(3), operator(kind).integers.reference
    assert reference is not None
    for _ in range(40):
        reference(drawn(kind, rng), np.arange(-128, 128).astype(np.int8))


def test_an_entry_that_is_one_off_is_refused_by_number() -> None:
    source, result = Affine((0.05,), (0,), "int8"), Affine((0.01,), (0,), "int8")
    bounds = nearest(np.tanh, source, result)
    table = bounds.low.astype(np.int8)
    assert check_table("TANH", table, source, bounds) is table
    table[7] -= 1
    with pytest.raises(WrongResultError, match=r"TANH: entry 7 .* \(1 of 256 entries are wrong\)"):
        check_table("TANH", table, source, bounds)
    powers = np.array(tables.softmax(0.1).exponentials)
    check_exponentials("SOFTMAX", powers, 0.1)
    powers[5] += 1 << 12
    with pytest.raises(WrongResultError, match="entry 5 of its table of exponentials"):
        check_exponentials("SOFTMAX", powers, 0.1)


SAMPLED = {"EXP": exp, "LOG": log, "RSQRT": rsqrt, "GELU": gelu}


@pytest.mark.parametrize("kind", SAMPLED)
def test_samples_of_16_bits_keep_to_their_bounds_and_faults_do_not(kind: str) -> None:
    rng, sampled = np.random.default_rng(5), SAMPLED[kind]._SAMPLED
    told: list[float] = []
    for _ in range(40):
        one, two = (float(np.float32(2.0 ** rng.uniform(-16, -10))) for _ in range(2))
        source, result = (Stored((1,), Affine((s,), (0,), "int16")) for s in (one, two))
        op = Function(source, result, float(rng.integers(2)) if kind == "GELU" else 0.0)
        table = sampled.samples(op)
        line = SampledLine(one, two, lost=sampled.lost)
        bounds = sample_bounds([sampled.real(op)], line)
        told.append(float((bounds.low == bounds.high)[257:].mean()))
        at = int(rng.choice(np.flatnonzero(bounds.low == bounds.high)))
        table[at] += -1 if table[at] == 32767 else 1
        with pytest.raises(WrongResultError, match=rf"{kind}: sample {at} of 513"):
            check_samples(kind, table, bounds)
    assert np.mean(told) > 0.9


def test_exponentials_of_floats() -> None:
    table = tables.exponentials(0.1)
    check_real_exponentials("SOFTMAX", table, 0.1)
    check_real_exponentials("SOFTMAX", tables.exponentials(0.9), 0.9)
    table[5] *= np.float32(1 + 2.0**-12)
    with pytest.raises(WrongResultError, match="entry 5 of its table of exponentials"):
        check_real_exponentials("SOFTMAX", table, 0.1)


@pytest.mark.parametrize("zero", [-128, -3, 0, 127])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_tables_of_quotients_and_differences_keep_to_their_bounds(dtype: str, zero: int) -> None:
    params = Affine((0.1,), (zero + 128 * (dtype == "uint8"),), dtype)
    check_dividends("DIV", *lookups.dividends(params), params)
    check_inverses("DIV", *lookups.inverses(params), params)
    for scale in (1e-4, 0.03, 0.5, 7.0, 300.0):
        check_differences("LOG_SOFTMAX", tables.differences(scale)[0], scale)


def test_kernels_that_read_tables_get_every_value() -> None:
    """A softmax was given one value alone: its differences were taken for indices of any sign."""
    for kernel in (
        pointwise.softmax((1, 12), "int8", "int8", 97),
        normalise.softmax16((1, 12), 0.01),
    ):
        assert reads_table(kernel)
        known = Reference("f", kernel, (0,), ()).parameters()
        assert [p.allowed for p in known] == [None]
    met = {int(v) for arrays in sweeps([Parameter((1, 12), "int8")]) for v in arrays[0].flat}
    assert met == set(range(-128, 128))
    below = {
        int(row[0] - v)
        for arrays in sweeps([Parameter((3, 5), "uint8")])
        for row in arrays[0].astype(int)
        if row[0] == 255
        for v in row[1:]
    }
    assert below == set(range(256))


def test_scales_are_those_of_the_file(tmp_path: Path) -> None:
    inputs, outputs = stored_edges(str(curves(tmp_path)))
    assert [q is not None and 0 < q.scale < 1 for q in (*inputs, *outputs)] == [True] * 3
    assert stored_edges("net.onnx") == ([], [])


@needs_host
def test_limits_wider_than_a_byte_are_no_fault() -> None:
    """Those of SVDF, between -178 and 77, wrap around in a byte."""
    made = build(str(model(SVDF)), "mps2-an386", Settings(name="net", time_limit_s=1))
    assert made.facts["check"]["requantised_sums"] > 1_000


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("net")
    found = serenity("build", vision(folder), "--board", "mps2-an386", "-o", folder / "made")
    assert found.returncode == 0, found.stderr
    return folder / "made"


@needs_board
@pytest.mark.parametrize("count", [1, 6])
def test_verify_runs_so_many_inputs(count: int, built: Path) -> None:
    found = serenity("verify", built, "--qemu", "--inputs", count, "--json")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["qemu"]["inputs"] == count


@needs_board
def test_the_number_of_inputs_is_said(built: Path) -> None:
    assert "correct on 3 inputs" in " ".join(
        serenity("verify", built, "--inputs", 3).stdout.split()
    )
    assert len(load(built).reference["more_output0"]) == 89
    refused = serenity("verify", built, "--inputs", 91)
    assert refused.returncode == 2
    assert "build recorded the outputs of 90 inputs; give 1 to 90" in refused.stderr


@needs_board
def test_a_budget_of_qemu_ends_it(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawn_inputs, "QEMU_S", -1.0)
    found = json.loads(serenity("verify", built, "--qemu", "--json").stdout)
    assert found["qemu"]["inputs"] == drawn_inputs.LEAST_INPUTS


@needs_board
def test_one_unit_on_one_input_is_found(built: Path) -> None:
    held = (built / REFERENCE).read_bytes()
    changed = dict(load(built).reference)
    changed["more_output0"] = changed["more_output0"].copy()
    changed["more_output0"][3] ^= 1
    try:
        (built / REFERENCE).write_bytes(packed(changed))
        assert serenity("verify", built, "--inputs", 4).returncode == 0
        found = serenity("verify", built, "--inputs", 5)
    finally:
        (built / REFERENCE).write_bytes(held)
    assert found.returncode == 1
    assert "on input 5: result[0, 0]" in found.stderr
