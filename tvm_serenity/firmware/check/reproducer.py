"""Write reproducers of wrong C kernels (sources, memory, calls) to a file, and replay them.

serenity replay serenity-wrong-KERNEL.npz
"""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tvm_serenity.firmware.check.trial import Block, Call, Trial, compilation, run
from tvm_serenity.firmware.program import Array
from tvm_serenity.system.isolated import isolated
from tvm_serenity.validation.report import Difference, concluded, first_difference

KIND = "c"
"""The ``kind`` of these cases in a reproducer."""
LIMIT_S = 300.0


def recorded(
    trial: Trial, poison: int, expected: Sequence[Array]
) -> tuple[dict[str, Any], list[Array]]:
    """Return a trial as JSON, and its arrays: the contents of blocks, then the expected results."""
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


def replay(case: dict[str, Any], arrays: list[Array]) -> str:
    """Run a recorded kernel again; return one line of text if it is correct now.

    Raises :class:`WrongResultError` if it is wrong.
    """
    held = dict(zip(case["held"], arrays, strict=False))
    expected = arrays[len(held) :]
    blocks = tuple(
        Block(size, alignment, held.get(i), writable)
        for i, (size, alignment, writable) in enumerate(case["blocks"])
    )
    calls = tuple(Call(name, tuple(passed)) for name, passed in case["calls"])
    trial = Trial(blocks, calls, tuple(case["results"]))

    def work() -> Iterator[Difference | str | None]:
        with tempfile.TemporaryDirectory(prefix="serenity.") as made:
            texts = {name: text.encode() for name, text in case["sources"].items()}
            sources = [name for name in texts if name.endswith(".c")]
            library = compilation(Path(made), texts, sources).library
        outcome = run(library, trial, int(case["poison"]))
        yield outcome.damage or first_difference(expected, split(outcome.result, expected))

    return concluded(case, isolated(work, LIMIT_S))


def split(result: Array, like: Sequence[Array]) -> list[Array]:
    """Split the concatenated bytes of results into arrays like those given."""
    found, at = [], 0
    for array in like:
        raw = result[at : at + array.nbytes].copy()
        found.append(raw.view(array.dtype).reshape(array.shape))
        at += array.nbytes
    return found
