"""``serenity tune``: measures forms of kernels in alternation with the default form.

1. Tiles of reduction kernels: the best that TVM's MetaSchedule (``tuning.search``) finds, and tiles
   of other shapes that fit the registers (``shapes``). MetaSchedule draws divisors alone; a kernel
   is split into parts for a tile that does not divide it.
2. Tiles of packed layers, of all columns and vectors that fit the registers of their unit; at most
   ``trials`` of them, by estimated cycles. There are about thirty, which need no cost model.
   Weights are packed for the unit, whatever the tile.
3. TVM's own schedule of the same kernel, with its scratch; not of packed layers, for which TVM has
   none.

A form is kept if it takes at most ``CLEAR`` of the default form's time and its results are equal:
integers bit by bit, floats within ``validation.tolerances.FUSED``.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tvm

from tvm_serenity import compat
from tvm_serenity.errors import InputError
from tvm_serenity.kernels.dot_shapes import Tile
from tvm_serenity.kernels.dot_tiles import tiles_of
from tvm_serenity.kernels.lean import lean, may_change
from tvm_serenity.kernels.measured import CLEAR, Form, Measured, key_of
from tvm_serenity.kernels.records import Packed
from tvm_serenity.kernels.spec_read import kind_of, spec_of
from tvm_serenity.kernels.tile import Tiling, tiling_for
from tvm_serenity.kernels.workspace import workspace_of
from tvm_serenity.relax.pipeline import Prepared
from tvm_serenity.tuning.alternation import Turns
from tvm_serenity.tuning.search import check_parts, searched, spaces
from tvm_serenity.validation.kernels import Case, cases

FINALISTS = 3
"""Number of tiles of a search that are measured in alternation."""

Notify = Callable[[str], None]


@dataclass(frozen=True)
class TunedKernel:
    """A kernel with its measured forms, and the number of forms beside the default one."""

    kernel: str
    key: str
    measured: Measured
    trials: int


def tune(
    made: Prepared, trials: int, seed: int = 0, notify: Notify = lambda _text: None
) -> list[TunedKernel]:
    """Return the measurements of each distinct kernel of ``made``, of up to ``trials`` tiles each.

    ``made`` is prepared without known measurements (``tuned="none"``), in the tiles of its target.
    """
    if trials < 1:
        raise InputError(f"--trials {trials}: write 1 or more")
    check_parts()
    measured, every = [], distinct(made)
    for index, case in enumerate(every):
        notify(f"{case.kernel} ({index + 1} of {len(every)})")
        measured.append(_tuned(case, made.target, trials, seed))
    return measured


def distinct(made: Prepared) -> list[Case]:
    """Return the distinct kernels of ``made`` that have other forms."""
    return [case for case in cases(made.plain, made.kernels) if may_change(case.reference)]


def raced(
    case: Case, tiles: Sequence[Tiling | Tile | None], target: tvm.target.Target, seed: int = 0
) -> Measured:
    """Return the seconds of a kernel's default form, and the kept forms of ``tiles``.

    A form slower than another kept form is kept only if it needs less scratch.
    """
    kernel = case.reference
    usual = lean(kernel, tiling_for(target))
    known, forms = {compat.structural_key(usual)}, []
    for tile in tiles:
        form = Form(tile, math.inf).applied(kernel)
        key = compat.structural_key(form)
        if key not in known:
            known.add(key)
            forms.append((tile, form))
    turns = Turns.of(case, [usual, *(form for _, form in forms)], target)
    return _kept(turns, forms, seed)


def _kept(turns: Turns, forms: Sequence[tuple[Any, Any]], seed: int) -> Measured:
    """Return the default form's seconds, and the forms that are clearly faster and equal."""
    usual, *seconds = turns.seconds()
    kept: list[Form] = []
    for index in sorted(range(len(forms)), key=lambda i: seconds[i]):
        tile, made = forms[index]
        candidate = Form(tile, seconds[index], workspace_of(made))
        if candidate.seconds > CLEAR * usual or any(_covers(k, candidate) for k in kept):
            continue
        if turns.same(index + 1, seed):
            kept.append(candidate)
    return Measured(usual, tuple(kept))


def shapes(tiling: Tiling) -> list[Tiling]:
    """Return other vector tiles that fit the registers of a target: twice as many as lanes."""
    tiles = []
    for vectors in (1, 2, 4):
        most = (2 * tiling.lanes - vectors - 1) // vectors
        widths = sorted({most, most * 3 // 4, most // 2}, reverse=True)
        tiles += [
            replace(tiling, channels=vectors * tiling.lanes, columns=w, most_columns=w)
            for w in widths
        ]
    return tiles


def _tuned(case: Case, target: tvm.target.Target, trials: int, seed: int) -> TunedKernel:
    tiles, count = _tiles(case.reference, target, trials, seed)
    packed = kind_of(case.reference) == Packed.__name__
    measured = raced(case, tiles if packed else [*tiles, None], target, seed)
    return TunedKernel(case.kernel, key_of(case.reference), measured, count)


def _covers(faster: Form, other: Form) -> bool:
    """Return whether a faster form needs no more scratch either."""
    return faster.scratch_bytes <= other.scratch_bytes


def _tiles(
    kernel: Any, target: tvm.target.Target, trials: int, seed: int
) -> tuple[Sequence[Any], int]:
    """Return the tiles to measure in alternation, and the number of tiles tried."""
    if kind_of(kernel) == Packed.__name__:
        tiles = tiles_of(spec_of(kernel))[1 : trials + 1]
        return tiles, len(tiles)
    if not spaces(kernel, target):
        return [], 0
    tried, usual = searched(kernel, target, trials, seed), tiling_for(target)
    others = shapes(usual) if usual.vector else []
    return [*list(tried)[:FINALISTS], *others], len(tried) + len(others)
