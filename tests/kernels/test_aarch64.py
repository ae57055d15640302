"""Networks cross-compiled for AArch64, run kernel by kernel under QEMU: results are the same."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import only_exhaustive, sampled, scaled
from tests.conformance.relax_forms import evaluated
from tests.kernels.test_packed import QUICK, WIDE, by_definition, compiled, drawn, layers
from tests.quantize.running import integer_module, reference_of
from tests.rows.nets import model

tvm = pytest.importorskip("tvm")

from tests.kernels.programs import MISSING, Program  # noqa: E402
from tvm_serenity import compat  # noqa: E402
from tvm_serenity.frontends.relax import to_relax  # noqa: E402
from tvm_serenity.kernels import dot_tiles, packed  # noqa: E402
from tvm_serenity.kernels.dot_units import BY_NAME, units_of  # noqa: E402
from tvm_serenity.kernels.records import Dense  # noqa: E402
from tvm_serenity.kernels.rounding_products import with_rounding_products  # noqa: E402
from tvm_serenity.relax.pack_weights import unit_for  # noqa: E402
from tvm_serenity.relax.pipeline import Steps, prepared  # noqa: E402

pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
NEON = {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mattr": ["+neon"]}
DOTS = {**NEON, "mattr": ["+neon", "+dotprod"]}
MATRICES = {**NEON, "mattr": ["+neon", "+dotprod", "+i8mm"]}
USED = [(NEON, {"sadalp"}), (DOTS, {"sdot"}), (MATRICES, {"sdot", "smmla"})]
"""Targets, and what adds up products in both networks."""
NETWORKS = ("mlperf_tiny/kws_dscnn_int8.tflite", "mlperf_tiny/ic_resnet8_int8.tflite")
FOUR = settings(QUICK, max_examples=scaled(2, 20))
"""Lists of layers, each of which is one program."""
UNSIGNED = replace(
    WIDE,
    dtype="uint8",
    input_zero=44,
    requantise=replace(WIDE.requantise, dtype="uint8", zero_point=3, low=0, high=255),
)


def results(
    made: Any, target: Any, inputs: Sequence[Any], folder: Path
) -> tuple[Sequence[Any], str]:
    """What a module of kernels makes of inputs under QEMU, and its assembly."""
    kernels = {g.name_hint: f for g, f in made.functions.items() if compat.is_prim_func(f)}
    program = Program(kernels, tvm.target.Target(target), folder)

    def run(kernel: Any, _given: Any, arguments: Sequence[Any], types: Any) -> Any:
        return program.run(kernel.name_hint, arguments, types)

    return evaluated(made, inputs, run), str(program.library.inspect_source("asm"))


@pytest.mark.parametrize(
    ("name", "target", "used"),
    [
        *sampled(((NETWORKS[0], *used) for used in USED), 2),
        *(only_exhaustive((name, *used)) for used in USED for name in NETWORKS[1:]),
    ],
)
def test_a_network_is_exact(name: str, target: Any, used: set[str], tmp_path: Path) -> None:
    data = model(name).read_bytes()
    made = prepared(integer_module(data, tmp_path), Steps(), target).kernels
    reference = reference_of(data)
    inputs = reference.inputs(0)
    found, text = results(made, target, inputs, tmp_path)
    assert {word for word in ("sadalp", "sdot", "smmla") if word in text} == used
    assert "sqrdmulh" in text
    for mine, theirs in zip(found, reference.run(inputs).outputs, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_network_stored_as_it_runs_is_the_same_on_all(tmp_path: Path) -> None:
    """Weights of 8 bits, activations of floats; its softmax is the C library's."""
    path = model("mlperf_tiny/kws_dscnn_fp32.tflite")
    reference = reference_of(path.read_bytes())
    inputs, made = reference.inputs(0), []
    for target, used in USED:
        kernels = prepared(to_relax(path), Steps(), tvm.target.Target(target)).kernels
        found, text = results(kernels, target, inputs, tmp_path)
        assert {word for word in ("sadalp", "sdot", "smmla") if word in text} == used
        made.append(found[0])
    np.testing.assert_array_equal(made[0], made[1])
    np.testing.assert_array_equal(made[0], made[2])
    np.testing.assert_allclose(made[0], reference.run(inputs).outputs[0], rtol=0, atol=1e-6)


def wrong(specs: Mapping[str, Any], unit: str, folder: Path) -> list[str]:
    """The names of packed layers that compute something else than their definition."""
    made = {name: packed.packed_spec(spec, BY_NAME[unit]) for name, spec in specs.items()}
    forms = {name: dot_tiles.dot_tiles(spec) for name, spec in made.items()}
    kernels = {name: with_rounding_products(form) for name, form in forms.items()}
    program = Program(kernels, tvm.target.Target(MATRICES), folder)
    apart = []
    for name, spec in specs.items():
        inputs, weight, bias = drawn(spec, 0)
        constants = packed.packed_constants(made[name], spec.requantise, weight, bias)
        types = [(made[name].stored_shape(made[name].output_shape), spec.dtype)]
        (found,) = program.run(name, [*inputs, *constants], types)
        if not np.array_equal(
            found, by_definition(spec, inputs, weight, bias).reshape(found.shape)
        ):
            apart.append(name)
    return apart


@pytest.mark.parametrize("unit", ["smull", "sdot", "mmla"])
def test_packed_layers_are_exact(unit: str) -> None:
    """Of both types of values and of weights, with borders, rests, joined pixels, corrections."""

    @FOUR
    @given(st.lists(layers(), min_size=4, max_size=4))
    def check(specs: list[Any]) -> None:
        with TemporaryDirectory() as folder:
            named = {f"layer{i}": spec for i, spec in enumerate(specs)}
            assert wrong(named, unit, Path(folder)) == []

    check()


def test_kernels_are_of_the_instructions() -> None:
    used = ("mmla", WIDE, "smmla"), ("mmla", UNSIGNED, "usmmla"), ("smull", WIDE, "sadalp")
    for unit, spec, instruction in used:
        kernel = dot_tiles.dot_tiles(packed.packed_spec(spec, BY_NAME[unit]))
        text = str(compiled(kernel, tvm.target.Target(MATRICES)).mod.inspect_source("asm"))
        assert text.count(f"\t{instruction}\t") > 20


def test_columns_in_pairs_are_exact(tmp_path: Path) -> None:
    """An odd number of columns, of channels, and values that make no whole groups."""
    specs = {"wide": WIDE, "unsigned": UNSIGNED, "plain": replace(WIDE, weight_zero=128)}
    for width, inputs, channels in ((1, 8, 1), (2, 16, 3), (3, 24, 4), (7, 17, 5), (5, 39, 9)):
        spec = replace(UNSIGNED, pieces=((1, 3, width, inputs),), padding=(1, 1, 1, 1))
        shape = (3, 3, inputs, channels)
        specs[f"{width}x{inputs}x{channels}"] = replace(spec, weight_shape=shape)
    assert wrong(specs, "mmla", tmp_path) == []


@pytest.mark.parametrize(
    ("method", "fault"),
    [
        ("rearranged", lambda _unit, parts, _column: parts[0]),
        ("begun", lambda _unit, bias, _part: bias),
        ("several", lambda unit, x, at, dtype: [unit.values(x, at, unit.group, dtype)] * 2),
    ],
)
def test_a_fault_is_found(
    method: str, fault: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert wrong({"wide": WIDE}, "mmla", tmp_path) == []
    monkeypatch.setattr(f"tvm_serenity.kernels.dot_units.Unit.{method}", fault)
    assert wrong({"wide": WIDE}, "mmla", tmp_path) == ["wide"]


def test_layers_have_the_unit_of_the_fewest_cycles() -> None:
    units = units_of(tvm.target.Target(MATRICES))
    assert [unit.name for unit in units] == ["mmla", "sdot", "smull"]

    def chosen(spec: Any) -> str:
        unit = unit_for(spec, units)
        return "none" if unit is None else unit.name

    assert chosen(WIDE) == "mmla"
    for taps, name in ((3, "none"), (4, "sdot"), (8, "mmla")):
        spec = replace(WIDE, pieces=((1, 6, 9, 1),), weight_shape=(3, taps, 1, 21))
        assert chosen(spec) == name
    for rows, name in ((1, "sdot"), (2, "mmla")):
        assert chosen(Dense(rows, 64, 10, "int8", "int8", 0, WIDE.requantise)) == name
    only = {**NEON, "mattr": ["+neon", "+i8mm"]}
    assert [unit.name for unit in units_of(tvm.target.Target(only))] == ["mmla", "smull"]
    arm32 = {"kind": "llvm", "mtriple": "armv8a-linux-gnueabihf", "mattr": ["+neon", "+dotprod"]}
    assert units_of(tvm.target.Target(arm32)) == ()
