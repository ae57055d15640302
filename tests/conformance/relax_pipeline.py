"""Random Relax modules through the pipeline for real targets, against TVM's kernels one by one.

The reference is evaluated operator by operator, compiled without LLVM's optimiser. Modules have all
types, several results, the same result twice, results that are constants or inputs, and operators
whose results nothing reads.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tests.conformance.counts import Counts
from tests.conformance.relax_forms import (
    Difference,
    first_difference,
    other_shapes,
    pipeline_differs,
)
from tests.conformance.relax_graphs import RANGES, Growing, Value, grown, inputs_of
from tests.conformance.relax_more import ALL, TYPES
from tests.conformance.relax_runs import counted, tvm_reference
from tvm_serenity.runtime.pipeline import serenity_pipeline
from tvm_serenity.tvm_targets import native

KIND = "pipeline"
APPROXIMATE = re.compile(
    r"R\.(nn\.)?(exp|tanh|sigmoid|erf|silu|gelu|cos|sqrt|softmax|log_softmax|layer_norm|rms_norm|"
    r"divide|mean|batch_norm|group_norm|instance_norm|conv1d|conv2d|conv2d_transpose|matmul|"
    r"avg_pool2d|adaptive_avg_pool2d|image\.resize2d|sum|prod|cumsum|multiply|square|add|variance|std)\b"
)
"""Operators whose floats a processor's multiply-add, or polynomials, round another way."""


def targets() -> dict[str, Any]:
    """Return the targets that modules are compiled for."""
    return {"llvm": tvm.target.Target("llvm"), "native": native()}


def module(random: Random, most: int = 8) -> Any:
    """Return an IRModule whose ``main`` is a random graph of up to ``most`` operators."""
    return grown(random, (3, most), ALL, _input, _results)


def _input(growing: Growing, index: int) -> Value:
    dtype = growing.one(["float32", "float32", "int8", *TYPES])
    shape = [growing.one([1, 2, 3, 4, 5, 8]) for _ in range(growing.between(1, 4))]
    var = relax.Var(f"x{index}", relax.TensorType(shape, dtype))
    return Value(var, tuple(shape), dtype, RANGES[dtype])


def _results(growing: Growing, inputs: Sequence[Value]) -> Any:
    made = growing.values[len(inputs) :]
    newest = made[-1] if made else inputs[0]
    found = [newest.var, *(v.var for v in made[:-1] if growing.chance(0.2))]
    if growing.chance(0.15):
        found.append(newest.var)
    if growing.chance(0.15):
        found.append(growing.one(inputs).var)
    if growing.chance(0.1):
        found.append(growing.weight((2, 3), "float32").var)
    growing.random.shuffle(found)
    if growing.chance(0.1):
        return relax.Tuple([relax.Tuple(found), newest.var])
    return relax.Tuple(found) if len(found) > 1 or growing.chance(0.2) else found[0]


def differences(mod: Any, seed: int) -> list[Difference]:
    """Return what a module computes differently; ``form`` is the target."""
    inputs = inputs_of(mod, seed)
    expected = tvm_reference(mod, inputs)
    found = []
    for name, target in targets().items():
        approximate = name == "native" and APPROXIMATE.search(str(mod)) is not None
        differ = _apart if approximate else first_difference
        apart = pipeline_differs(mod, inputs, expected, target, serenity_pipeline(), differ)
        found += [replace(one, form=name) for one in apart]
    return found


def _apart(results: Sequence[Any], expected: Sequence[Any]) -> str:
    """Say where numbers differ by more than roundings explain: those that became integers do."""
    said = other_shapes(results, expected)
    if said:
        return said
    for number, (a, b) in enumerate(zip(results, expected, strict=True)):
        if a.dtype.kind != "f":
            continue
        one, two = a.astype("float64"), b.astype("float64")
        limit = 0.02 * float(np.abs(two[np.isfinite(two)]).max(initial=1.0))
        far = np.abs(one - two) > limit
        if float(np.mean(far & np.isfinite(one) & np.isfinite(two))) > 0.05:
            return f"result {number}: {int(far.sum())} of {far.size} differ by more than {limit:g}"
    return ""


def run(seconds: float, seed: int, folder: Path | None = None) -> Counts:
    """Return what became of random modules of a seed; those that differ are saved as text."""
    return counted(KIND, module, differences, seconds, seed, folder, kinds)


def kinds(mod: Any) -> list[str]:
    """Return the operators and types of a module, each once."""
    text = str(mod)
    named = set(re.findall(r"R\.((?:nn\.|image\.)?[a-z_0-9]+)\(", text)) - {"function", "func_attr"}
    return sorted(named | {dtype for dtype in TYPES if f'"{dtype}"' in text})
