"""What ``serenity tune`` does: forms of kernels, measured in alternation with the usual one.

1. Tiles of kernels of sums: the best that TVM's MetaSchedule (``tuning.search``) finds.
2. Tiles of packed layers, of the columns and vectors that registers of their unit hold: all of
   them, or as many as there are trials, those of the fewest estimated cycles first. There are some
   thirty at most, which need no cost model. Weights are packed for the unit, whatever the tile.
3. TVM's own schedule of the same kernel, with its scratch; not of packed layers: TVM has none.

A form is kept where it takes at most ``CLEAR`` of the usual one's time and computes the same:
integers bit for bit, floats within ``validation.tolerances.FUSED``.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tvm

from tvm_serenity.errors import InputError
from tvm_serenity.kernels.dot_tiles import tiles_of
from tvm_serenity.kernels.lean import lean, may_change
from tvm_serenity.kernels.measured import CLEAR, Form, Measured, key_of
from tvm_serenity.kernels.records import Packed
from tvm_serenity.kernels.spec_read import kind_of, spec_of
from tvm_serenity.kernels.tile import tiling_for
from tvm_serenity.kernels.workspace import workspace_of
from tvm_serenity.relax.pipeline import Prepared
from tvm_serenity.tuning.alternation import Turns
from tvm_serenity.tuning.search import check_parts, searched, spaces
from tvm_serenity.validation.kernels import Case, cases

FINALISTS = 3
"""Tiles of a search that are measured in alternation."""

Notify = Callable[[str], None]


@dataclass(frozen=True)
class Tuned:
    """A kernel and what was found of it; how many forms were measured beside the usual one."""

    kernel: str
    key: str
    measured: Measured
    trials: int


def tune(
    made: Prepared, trials: int, seed: int = 0, notify: Notify = lambda _text: None
) -> list[Tuned]:
    """Return what was measured of each distinct kernel of ``made``, of up to ``trials`` tiles each.

    ``made``: prepared with nothing known (``tuned="none"``), in the tiles of its target.
    """
    if trials < 1:
        raise InputError(f"--trials {trials}: at least 1")
    check_parts()
    found, every = [], [c for c in cases(made.plain, made.kernels) if may_change(c.reference)]
    for index, case in enumerate(every):
        notify(f"{case.kernel} ({index + 1} of {len(every)})")
        found.append(_tuned(case, made.target, trials, seed))
    return found


def _tuned(case: Case, target: tvm.target.Target, trials: int, seed: int) -> Tuned:
    kernel = case.reference
    usual = lean(kernel, tiling_for(target))
    tiles, count = _tiles(kernel, target, trials, seed)
    forms = [Form(tile, math.inf) for tile in tiles]
    if kind_of(kernel) != Packed.__name__:
        forms.append(Form(None, math.inf))
    every = [(form, form.made(kernel)) for form in forms]
    turns = Turns.of(case, [usual, *(made for _, made in every)], target)
    seconds = turns.seconds()
    kept: list[Form] = []
    for number in sorted(range(1, len(seconds)), key=lambda i: seconds[i]):
        form, one = every[number - 1]
        found = Form(form.tile, seconds[number], workspace_of(one))
        if found.seconds > CLEAR * seconds[0] or any(_covers(k, found) for k in kept):
            continue
        if turns.same(number, seed):
            kept.append(found)
    return Tuned(case.kernel, key_of(kernel), Measured(seconds[0], tuple(kept)), count)


def _covers(faster: Form, other: Form) -> bool:
    """Whether a faster form needs no more scratch either."""
    return faster.scratch_bytes <= other.scratch_bytes


def _tiles(
    kernel: Any, target: tvm.target.Target, trials: int, seed: int
) -> tuple[Sequence[Any], int]:
    """The tiles to be measured in alternation, and how many were tried."""
    if kind_of(kernel) == Packed.__name__:
        tiles = tiles_of(spec_of(kernel))[1 : trials + 1]
        return tiles, len(tiles)
    if not spaces(kernel, target):
        return [], 0
    tried = searched(kernel, target, trials, seed)
    return list(tried)[:FINALISTS], len(tried)
