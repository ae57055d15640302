"""Layers whose input is stored while the network runs, on dot products: LiteRT's floats exactly."""

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

tvm = pytest.importorskip("tvm")

from tests.cases import exhaustive, sampled, scaled  # noqa: E402
from tests.conformance.case import DIFFERENT, EQUAL  # noqa: E402
from tests.conformance.counts import differs, generate  # noqa: E402
from tests.conformance.operators.weighted import DYNAMIC, _convolution, _dense  # noqa: E402
from tests.kernels.test_packed import TARGETS  # noqa: E402
from tests.quantize.running import Machine  # noqa: E402
from tests.rows.nets import model  # noqa: E402
from tvm_serenity.kernels import dynamic, packed  # noqa: E402
from tvm_serenity.kernels.dynamic_records import BatchSteps  # noqa: E402
from tvm_serenity.kernels.lean import lean  # noqa: E402
from tvm_serenity.kernels.records import Packed  # noqa: E402
from tvm_serenity.kernels.spec_read import kind_of  # noqa: E402
from tvm_serenity.kernels.tile import MCU, WIDE  # noqa: E402
from tvm_serenity.relax.pipeline import Steps, prepared  # noqa: E402

STRATEGIES = {"CONV_2D": _convolution((DYNAMIC,)), "FULLY_CONNECTED": _dense((DYNAMIC,))}
COUNT = scaled(10, 200)


def run_for(cpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run drawn layers on a target."""
    machine = partial(Machine, target=TARGETS[cpu])
    monkeypatch.setattr("tests.conformance.case.Machine", machine)


@pytest.mark.parametrize(("kind", "cpu"), sampled(product(STRATEGIES, TARGETS), 2))
def test_layers_are_those_of_litert(kind: str, cpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run_for(cpu, monkeypatch)
    found = [verdict for _, verdict in generate(STRATEGIES[kind], COUNT, 5)]
    assert [v.reason for v in found if v.status == DIFFERENT] == []
    assert sum(v.status == EQUAL for v in found) > COUNT // 2


def _contracted(spec: Any, total: Any, scale: tuple[Any, Any], bias: Any) -> Any:
    made, (own, image) = total.astype("float32"), scale
    made = made * own * image if spec.channel_first else made * (own * image)
    for held in bias:
        made = made + held
    return dynamic.with_bias(made, [], spec.limits)


@pytest.mark.skipif(not TARGETS, reason="no dot products on this machine")
@pytest.mark.parametrize(
    ("name", "fault"),
    [
        pytest.param("rescaled", _contracted, id="a product that is not rounded"),
        pytest.param(
            *("zero_of", lambda *_given: tvm.tirx.const(0, "int32")),
            id="zero points",
            marks=exhaustive,
        ),
    ],
)
def test_a_fault_is_found(name: str, fault: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, name, fault)
    run_for(next(iter(TARGETS)), monkeypatch)
    assert differs(STRATEGIES["CONV_2D"], 40, 5)


@pytest.mark.skipif(not TARGETS, reason="no dot products on this machine")
def test_layers_of_a_model_are_packed() -> None:
    from tvm_serenity.frontends.relax import to_relax

    module = to_relax(model("mlperf_tiny/kws_dscnn_fp32.tflite"))
    made = prepared(module, Steps(), next(iter(TARGETS.values())))
    kinds = [kind_of(f) for f in made.plain.functions.values()]
    assert kinds.count(Packed.__name__) == 2  # of two shapes


@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (2, 63), (3, 7, 19), (1, 5, 4, 64), (2, 129)])
def test_ends_are_found_in_vectors(shape: tuple[int, ...], asymmetric: bool) -> None:
    spec = BatchSteps(shape, asymmetric)
    x = np.random.default_rng(0).standard_normal(shape).astype("float32")
    wanted = np.abs(x).reshape(shape[0], -1).max(1, keepdims=True)
    if asymmetric:
        wanted = np.stack(
            [f(-1) for f in ((-x).reshape(shape[0], -1).max, x.reshape(shape[0], -1).max)], 1
        )
    scripts = set()
    for tiling in (WIDE, MCU):
        kernel = lean(dynamic.ends(spec), tiling)
        scripts.add(kernel.without_attr("serenity.spec").script())
        library = tvm.compile(kernel.with_attr("global_symbol", "main"), "llvm")
        out = tvm.runtime.tensor(np.full(spec.ends_shape, np.nan, np.float32))
        library["main"](tvm.runtime.tensor(x), out)
        np.testing.assert_array_equal(out.numpy(), wanted)
    assert len(scripts) == 2
