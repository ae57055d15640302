"""Networks cross-compiled for AArch64, run kernel by kernel under QEMU: results are the same."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conformance.relax_forms import evaluated
from tests.kernels.test_packed import WIDE, by_definition, drawn
from tests.quantize.running import integer_module, judge_of
from tests.rows.nets import model

tvm = pytest.importorskip("tvm")

from tests.kernels.programs import MISSING, Program  # noqa: E402
from tvm_serenity import compat  # noqa: E402
from tvm_serenity.kernels import dot_tiles, packed  # noqa: E402
from tvm_serenity.kernels.dot_units import BY_NAME  # noqa: E402
from tvm_serenity.relax.pipeline import Steps, prepared  # noqa: E402

pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
NEON = {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mattr": ["+neon"]}
DOTS = {**NEON, "mattr": ["+neon", "+dotprod"]}
NETWORKS = ("mlperf_tiny/kws_dscnn_int8.tflite", "mlperf_tiny/ic_resnet8_int8.tflite")


@pytest.mark.parametrize("target", [NEON, DOTS], ids=["neon", "dotprod"])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_is_exact(name: str, target: Any, tmp_path: Path) -> None:
    data = model(name).read_bytes()
    made = prepared(integer_module(data, tmp_path), Steps(), target).kernels
    kernels = {g.name_hint: f for g, f in made.functions.items() if compat.is_prim_func(f)}
    program = Program(kernels, tvm.target.Target(target), tmp_path)
    assert ("sdot" in program.library.inspect_source("asm")) == (target is DOTS)
    judge = judge_of(data)
    inputs = judge.inputs(0)

    def run(kernel: Any, _given: Any, arguments: Sequence[Any], types: Any) -> Any:
        return program.run(kernel.name_hint, arguments, types)

    found = evaluated(made, inputs, run)
    for mine, theirs in zip(found, judge.run(inputs).outputs, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_signed_dot_products_are_exact(tmp_path: Path) -> None:
    """Of unsigned and of signed values, with borders, rests and corrections."""
    finish = replace(WIDE.requantise, dtype="uint8", zero_point=3, low=0, high=255)
    unsigned = replace(WIDE, dtype="uint8", input_zero=44, requantise=finish)
    specs = {"wide": WIDE, "unsigned": unsigned, "plain": replace(WIDE, weight_zero=128)}
    made = {name: packed.packed_spec(spec, BY_NAME["sdot"]) for name, spec in specs.items()}
    kernels = {name: dot_tiles.dot_tiles(spec) for name, spec in made.items()}
    program = Program(kernels, tvm.target.Target(DOTS), tmp_path)
    for name, spec in specs.items():
        inputs, weight, bias = drawn(spec, 0)
        constants = packed.packed_constants(made[name], spec.requantise, weight, bias)
        types = [(spec.output_shape, spec.dtype)]
        (found,) = program.run(name, [*inputs, *constants], types)
        np.testing.assert_array_equal(found, by_definition(spec, inputs, weight, bias))
