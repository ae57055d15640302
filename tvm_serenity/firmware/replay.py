"""Reproducers of wrong C kernels: sources, memory and calls in a file, and running them again.

python -m tvm_serenity.validation serenity-wrong-KERNEL.npz
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tvm_serenity.firmware.program import Array
from tvm_serenity.firmware.trial import Block, Call, Trial, compilation, run
from tvm_serenity.validation.isolated import Death, isolated

KIND = "c"
"""``kind`` of these cases in a reproducer."""
LIMIT_S = 300.0


def recorded(
    trial: Trial, poison: int, expected: Sequence[Array]
) -> tuple[dict[str, Any], list[Array]]:
    """Return a trial as JSON, and its arrays: what blocks held, then what it should leave."""
    held = [i for i, block in enumerate(trial.blocks) if block.held is not None]
    described = {
        "kind": KIND,
        "poison": poison,
        "blocks": [[b.size_bytes, b.alignment, b.writable] for b in trial.blocks],
        "held": held,
        "calls": [[call.symbol, list(call.blocks)] for call in trial.calls],
        "results": list(trial.results),
    }
    arrays = [np.asarray(trial.blocks[i].held) for i in held]
    return described, [*arrays, *(np.asarray(a) for a in expected)]


def replay(case: Mapping[str, Any], arrays: Sequence[Array]) -> str:
    """Return in words what a recorded kernel does now."""
    held = dict(zip(case["held"], arrays, strict=False))
    expected = arrays[len(held) :]
    blocks = tuple(
        Block(size, alignment, held.get(i), writable)
        for i, (size, alignment, writable) in enumerate(case["blocks"])
    )
    calls = tuple(Call(name, tuple(passed)) for name, passed in case["calls"])
    trial = Trial(blocks, calls, tuple(case["results"]))

    def work() -> Iterator[str]:
        with tempfile.TemporaryDirectory(prefix="serenity.") as made:
            texts = {name: text.encode() for name, text in case["sources"].items()}
            library = compilation(Path(made), texts, ["kernels.c"]).library
        yield _said(run(library, trial, int(case["poison"])), expected)

    try:
        return str(next(iter(isolated(work, LIMIT_S))))
    except Death as death:
        return f"kernel {case['kernel']!r} {death}"


def _said(outcome: Any, expected: Sequence[Array]) -> str:
    if outcome.damage is not None:
        return str(outcome.damage)
    at = 0
    for number, want in enumerate(expected):
        got = outcome.result[at : at + want.nbytes].copy().view(want.dtype)
        at += want.nbytes
        wrong = np.flatnonzero(got != want.reshape(-1))
        if wrong.size:
            first = int(wrong[0])
            return (
                f"result {number}: {wrong.size:,} of {want.size:,} elements differ, the first at "
                f"{first}: {got[first]}, expected {want.reshape(-1)[first]}"
            )
    return "identical"
