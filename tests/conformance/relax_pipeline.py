"""Random Relax modules through the pipeline for real targets, against TVM's kernels one by one.

The reference is evaluated operator by operator, compiled without LLVM's optimiser. Modules have all
types, several results, the same result twice, results that are constants or inputs, and operators
whose results nothing reads.
"""

import re
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tests.conformance.counts import Counts, general
from tests.conformance.relax_forms import first_difference, poisoned, reference
from tests.conformance.relax_graphs import RANGES, Growing, Value, elements
from tests.conformance.relax_more import ALL, TYPES
from tests.conformance.relax_runs import Unjudged, save
from tvm_serenity.errors import SerenityError
from tvm_serenity.runtime.pipeline import serenity_pipeline
from tvm_serenity.tvm_targets import native

KIND = "pipeline"
APPROXIMATE = re.compile(
    r"R\.(nn\.)?(exp|tanh|sigmoid|erf|silu|gelu|cos|sqrt|softmax|log_softmax|layer_norm|rms_norm|"
    r"divide|mean|batch_norm|group_norm|instance_norm|conv1d|conv2d|conv2d_transpose|matmul|"
    r"avg_pool2d|adaptive_avg_pool2d|image\.resize2d|sum|prod|cumsum|multiply|square|add)\b"
)
"""Operators whose floats a processor's multiply-add, or polynomials, round another way."""


def targets() -> dict[str, Any]:
    """Return the targets that modules are compiled for."""
    return {"llvm": tvm.target.Target("llvm"), "native": native()}


def module(random: Random, most: int = 8) -> Any:
    """Return an IRModule whose ``main`` is a random graph of up to ``most`` operators."""
    builder = relax.BlockBuilder()
    growing = Growing(random, builder)
    inputs = [_input(growing, i) for i in range(growing.between(1, 3))]
    growing.values += inputs
    with builder.function("main", [v.var for v in inputs]):
        with builder.dataflow():
            for _ in range(growing.between(1, most)):
                for _ in range(20):
                    if growing.one(ALL)(growing):
                        break
            output = builder.emit_output(_results(growing, inputs))
        builder.emit_func_output(output)
    return builder.finalize()


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


def inputs_of(mod: Any, seed: int) -> list[Any]:
    """Return seeded inputs of a module."""
    rng = np.random.default_rng(seed)
    return [
        elements(rng, [int(e) for e in p.ty.shape.values], str(p.ty.dtype), RANGES[str(p.ty.dtype)])
        for p in mod["main"].params
    ]


def differences(mod: Any, seed: int) -> list[str]:
    """Return what a module computes differently, by target."""
    inputs = inputs_of(mod, seed)
    try:
        expected = reference(mod, inputs).results
    except Exception as error:
        raise Unjudged(str(error).strip().splitlines()[-1] if str(error) else "") from error
    found = []
    for name, target in targets().items():
        built = tvm.compile(mod, target, relax_pipeline=serenity_pipeline())
        for byte in (0xA5, 0x5A):
            with poisoned(byte):
                machine = relax.VirtualMachine(built, tvm.cpu(), memory_cfg="naive")
                results = _flat(machine["main"](*(tvm.runtime.tensor(a) for a in inputs)))
            approximate = name == "native" and APPROXIMATE.search(str(mod)) is not None
            said = _apart(results, expected) if approximate else first_difference(results, expected)
            if said:
                found.append(f"{name}: {said}")
                break
    return found


def _flat(value: Any) -> tuple[Any, ...]:
    if isinstance(value, tvm.runtime.Tensor):
        return (value.numpy(),)
    return tuple(part for one in value for part in _flat(one))


def _apart(results: Sequence[Any], expected: Sequence[Any]) -> str:
    """Say where numbers differ by more than roundings explain: those that became integers do."""
    if len(results) != len(expected):
        return f"{len(results)} results instead of {len(expected)}"
    for number, (a, b) in enumerate(zip(results, expected, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"result {number} is {a.dtype}{a.shape} instead of {b.dtype}{b.shape}"
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
    counts, until, number = Counts(), time.monotonic() + seconds, 0
    while time.monotonic() < until:
        drawn = seed * 1_000_003 + number
        number += 1
        mod = module(Random(drawn))
        try:
            found = differences(mod, drawn)
        except SerenityError as refusal:
            if "computes" in str(refusal) or "kernel" in str(refusal):
                save(KIND, counts, drawn, mod, str(refusal), folder)
            else:
                counts.refused[f"{KIND}: {general(str(refusal))}"] += 1
        except Unjudged as reason:
            counts.unjudged[f"{KIND}: {general(str(reason))}"] += 1
        except Exception as error:
            save(KIND, counts, drawn, mod, f"{type(error).__name__}: {error}", folder)
        else:
            if found:
                save(KIND, counts, drawn, mod, "; ".join(found), folder)
            else:
                counts.equal[KIND] += 1
                counts.covered.update(kinds(mod))
    return counts


def kinds(mod: Any) -> list[str]:
    """Return the operators and types of a module, each once."""
    text = str(mod)
    named = set(re.findall(r"R\.((?:nn\.|image\.)?[a-z_0-9]+)\(", text)) - {"function", "func_attr"}
    return sorted(named | {dtype for dtype in TYPES if f'"{dtype}"' in text})
