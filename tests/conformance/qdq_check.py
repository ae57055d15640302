"""Random QDQ networks against onnxruntime, every stored tensor of them.

Each region's result is held against what onnxruntime, without its optimisations, makes of the
very tensors that our network has handed to the region: at most ``STEPS`` of the result's scale
apart, so that what one region rounds away does not add to the next. A network whose outputs are
only its ends must then give, bit by bit, what one whose outputs are all tensors gave. Regions
that have no integer form are computed in float and held to the same step.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.conformance.case import DIFFERENT, EQUAL, REFUSED, Verdict
from tests.conformance.counts import Counts, generate_all
from tests.conformance.qdq_networks import QdqCase, cases, inputs_of, ran
from tests.conformance.verdict import TARGET, Array
from tests.quantize.qdq import Q, joined, network
from tests.quantize.running import Machine
from tvm_serenity.errors import SerenityError
from tvm_serenity.frontends.relax import to_relax
from tvm_serenity.relax.quantize import kept_float, quantized_module

STEPS = 1
RUNS = 3
"""Inputs that each network is run on."""


def check(case: QdqCase) -> Verdict:
    """Return what became of a network."""
    everything = [v for region in case.regions for v in region.results]
    made = set(everything)
    used = [x for region in case.regions for x in inputs_of(region)]
    inputs = [x for x in dict.fromkeys(used) if x not in made]
    try:
        whole, _ = _machine(joined(case.regions, everything))
        ends, left = _machine(case.data)
    except SerenityError as error:
        return Verdict(REFUSED, str(error).split(": ", 1)[-1])
    except Exception as error:
        return Verdict(DIFFERENT, f"{type(error).__name__}: {str(error).strip()[:300]}")
    for seed in range(RUNS):
        given = _drawn(inputs, seed)
        found = dict(zip(everything, whole.run(given), strict=True))
        wrong = _against_ends(case, found, ends.run(given))
        wrong = wrong or _against_reference_runtime(
            case, {**found, **dict(zip(inputs, given, strict=True))}
        )
        if wrong:
            return Verdict(DIFFERENT, wrong)
    return Verdict(EQUAL, f"{len(left)} operators in float" if left else "")


def _machine(data: bytes) -> tuple[Machine, tuple[Any, ...]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(data)
        module = quantized_module(to_relax(path), "float")
    return Machine(module, TARGET), kept_float(module)


def _drawn(inputs: list[Q], seed: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    limits = [np.iinfo(x.dtype) for x in inputs]
    return [
        rng.integers(limit.min, limit.max, x.shape, x.dtype, endpoint=True)
        for x, limit in zip(inputs, limits, strict=True)
    ]


def _against_ends(case: QdqCase, found: Mapping[Q, Array], ends: list[Array]) -> str:
    for index, (tensor, array) in enumerate(zip(case.ends, ends, strict=True)):
        if not np.array_equal(found[tensor], array):
            return f"output {index} is another where inner tensors are no outputs"
    return ""


def _against_reference_runtime(case: QdqCase, known: Mapping[Q, Array]) -> str:
    for index, region in enumerate(case.regions):
        wanted = ran(network([region]), [known[x] for x in inputs_of(region)])
        for tensor, array in zip(region.results, wanted, strict=True):
            mine = known[tensor]
            if mine.dtype != array.dtype or mine.shape != array.shape:
                return f"region {index}, {region.kind}: {mine.dtype}{mine.shape}"
            apart = np.abs(mine.astype(np.int64) - array.astype(np.int64))
            if apart.max(initial=0) > STEPS:
                return f"region {index}, {region.kind}: {apart.max()} steps apart {_of(region)}"
    return ""


def _of(region: Any) -> str:
    operands = [
        f"{x.dtype}{list(x.shape)}" if isinstance(x, Q) else f"constant{list(np.shape(x))}"
        for x in region.operands
    ]
    return f"({', '.join(operands)}; {dict(region.attributes)})"


def run(seconds: float, seed: int, folder: Path | None = None) -> Counts:
    """Return what became of networks drawn for so many seconds; those that differ are saved."""
    return generate_all({"qdq network": cases()}, seconds, seed, folder, check)
