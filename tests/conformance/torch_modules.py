"""PyTorch modules drawn at random, networks and single operators, against PyTorch."""

import random
import time
from pathlib import Path
from typing import Any

from tests.conformance.child import Child, Death
from tests.conformance.counts import Counts, general
from tests.conformance.verdict import EQUAL, REFUSED, Verdict


def kinds() -> dict[str, Any]:
    """Return what draws a module and its inputs, by kind: networks first, then operators."""
    from tests.conformance.torch_ops import OPS
    from tests.conformance.torch_sequences import SEQUENCES
    from tests.conformance.torch_zoo import CNNS

    return {**CNNS, **SEQUENCES, **OPS}


def check(task: tuple[str, int]) -> Verdict:
    """Return the verdict on the module of a kind that a seed draws."""
    import torch

    from tests.conformance.torch_check import compared_with_eager

    kind, seed = task
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    module, inputs = kinds()[kind](random.Random(seed))
    return compared_with_eager(module, inputs)


def run(seconds: float, seed: int, folder: Path | None = None) -> Counts:
    """Return the counts of all kinds in turn for so many seconds; a case is its kind and seed."""
    counts, until, turn = Counts(), time.monotonic() + seconds, 0
    with Child(check, torch=True) as child:
        while time.monotonic() < until:
            for kind in kinds():
                at = seed * 1_000_003 + turn
                _count(counts, kind, at, child.ask((kind, at)))
            turn += 1
    return counts


def _count(counts: Counts, kind: str, seed: int, verdict: Any) -> None:
    if isinstance(verdict, Death):
        counts.different.append(f"{kind} (seed {seed}): {verdict.reason}")
    elif verdict.status == EQUAL:
        counts.equal[kind] += 1
    elif verdict.status == REFUSED:
        counts.refused[f"{kind}: {general(verdict.detail)}"] += 1
    else:
        counts.different.append(f"{kind} (seed {seed}): {verdict.status}: {verdict.detail[-300:]}")
