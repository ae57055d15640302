"""Processors of a kind, with more and with fewer instructions: results are the same on all.

What this machine cannot run is skipped by name.
"""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from tests.cases import sampled
from tests.kernels.test_packed import QUICK, by_definition, compiled, drawn, layers, runs_here
from tests.quantize.running import assert_exact, integer_module
from tests.rows.nets import model

tvm = pytest.importorskip("tvm")

from tvm_serenity import tvm_targets  # noqa: E402
from tvm_serenity.kernels import dot_tiles, packed  # noqa: E402
from tvm_serenity.kernels.convolution import convolution, dense  # noqa: E402
from tvm_serenity.kernels.dot_units import units_of  # noqa: E402
from tvm_serenity.kernels.lean import lean  # noqa: E402
from tvm_serenity.kernels.records import Convolution  # noqa: E402
from tvm_serenity.kernels.tile import tiling_for  # noqa: E402
from tvm_serenity.relax.pack_weights import unit_for  # noqa: E402

PLAIN = ("x86-64", "x86-64-v2")
"""Processors without any of the vector instructions that are asked for."""
PROCESSORS = {
    **dict.fromkeys(PLAIN, ""),
    "x86-64-v3": "madd256",
    "haswell": "madd256",
    "alderlake": "vnni256",
    "x86-64-v4": "madd512",
    "skylake-avx512": "madd512",
    "cascadelake": "vnni512",
}
"""By name, the unit that packed layers have."""
NETWORKS = ("mlperf_tiny/kws_dscnn_int8.tflite", "tflm/micro_speech_quantized.tflite")


def target_of(cpu: str) -> Any:
    """The target of a processor, which this machine must be able to run."""
    if tvm_targets.architecture(tvm.target.Target("llvm")) != "x86_64":
        pytest.skip("this machine is no x86-64")
    target = tvm.target.Target({"kind": "llvm", "mcpu": cpu})
    if cpu not in PLAIN and not runs_here(target):
        pytest.skip(f"this machine lacks instructions of {cpu}")
    return target


@pytest.mark.parametrize(("cpu", "unit"), PROCESSORS.items())
def test_a_processor_has_its_unit(cpu: str, unit: str) -> None:
    target = {"kind": "llvm", "mtriple": "x86_64-linux-gnu", "mcpu": cpu}
    assert [u.name for u in units_of(tvm.target.Target(target))][:1] == ([unit] if unit else [])


@pytest.mark.parametrize(("cpu", "name"), sampled(product(PROCESSORS, NETWORKS), 4))
def test_networks_are_exact(cpu: str, name: str, tmp_path: Path) -> None:
    target, data = target_of(cpu), model(name).read_bytes()
    assert_exact(data, integer_module(data, tmp_path), (0, 1), target=target)


@pytest.mark.parametrize("cpu", sampled(PROCESSORS, 4))
def test_layers_are_exact(cpu: str) -> None:
    """As ``pack_weights`` would have them: packed where there is a unit, else as they are."""
    target = target_of(cpu)

    @QUICK
    @given(layers())
    def check(spec: Any) -> None:
        inputs, weight, bias = drawn(spec, 0)
        unit = unit_for(spec, units_of(target))
        if unit is not None:
            made = packed.packed_spec(spec, unit)
            constants = packed.packed_constants(made, spec.requantise, weight, bias)
            kernel = dot_tiles.dot_tiles(made)
        else:
            form = convolution if isinstance(spec, Convolution) else dense
            constants = (weight, bias, *spec.requantise.arrays())
            kernel = lean(form(spec), tiling_for(target))
        wanted = by_definition(spec, inputs, weight, bias)
        shape = wanted.shape if isinstance(spec, Convolution) else (spec.rows, spec.units)
        out = tvm.runtime.tensor(np.full(shape, 77, spec.dtype))
        given = [tvm.runtime.tensor(array) for array in (*inputs, *constants)]
        compiled(kernel, target)["main"](*given, out)
        np.testing.assert_array_equal(out.numpy(), wanted.reshape(shape))

    check()
