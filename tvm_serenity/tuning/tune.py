"""Implements ``serenity tune``: measures forms of kernels in alternation with the default form.

The forms of a kernel are:

1. For reduction kernels, the best tiles of TVM's MetaSchedule (``tuning.search``), and other tiles
   that fit the registers (``shapes``). MetaSchedule tries only tiles that divide the kernel; for
   other tiles, the kernel is split into parts.
2. For packed layers, the tiles that fit the registers of their unit: at most ``trials`` of about
   thirty, by estimated cycles. The packing of weights does not depend on the tile.
3. TVM's own schedule of the same kernel, with its scratch. TVM has none for packed layers.

A form is kept if its time is at most ``CLEAR`` times the default form's, and if its results are
equal: integers bit by bit, floats within ``validation.tolerances.FUSED``.
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
"""Number of MetaSchedule's tiles that are measured again in alternation."""

Notify = Callable[[str], None]


@dataclass(frozen=True)
class TunedKernel:
    """The measurements of one kernel; ``trials`` is the number of tiles that were tried."""

    kernel: str
    key: str
    measured: Measured
    trials: int


def tune(
    made: Prepared, trials: int, seed: int = 0, notify: Notify = lambda _text: None
) -> list[TunedKernel]:
    """Measure each distinct kernel of ``made`` with up to ``trials`` tiles; return the results.

    ``made`` must be prepared with ``tuned="none"``, so that its kernels have their default tiles.
    """
    if trials < 1:
        raise InputError(f"--trials {trials}: the number must be 1 or more")
    check_parts()
    measured, every = [], distinct(made)
    for index, case in enumerate(every):
        notify(f"{case.kernel} ({index + 1} of {len(every)})")
        measured.append(_tuned(case, made.target, trials, seed))
    return measured


def distinct(made: Prepared) -> list[Case]:
    """Return the distinct kernels of ``made`` for which there are other forms."""
    return [case for case in cases(made.plain, made.kernels) if may_change(case.reference)]


def raced(
    case: Case, tiles: Sequence[Tiling | Tile | None], target: tvm.target.Target, seed: int = 0
) -> Measured:
    """Measure the default form of a kernel and its forms with ``tiles``; return the kept forms.

    A form that is slower than another kept form is kept only if it needs less scratch.
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
    """Return the default form's seconds, and the clearly faster forms with equal results."""
    usual, *seconds = turns.seconds()
    kept: list[Form] = []
    for index in sorted(range(len(forms)), key=lambda i: seconds[i]):
        tile, kernel = forms[index]
        candidate = Form(tile, seconds[index], workspace_of(kernel))
        if candidate.seconds > CLEAR * usual or any(_covers(k, candidate) for k in kept):
            continue
        if turns.same(index + 1, seed):
            kept.append(candidate)
    return Measured(usual, tuple(kept))


def shapes(tiling: Tiling) -> list[Tiling]:
    """Return other vector tiles that fit the vector registers, twice as many as there are lanes."""
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
    """Return whether ``faster`` needs at most as much scratch as ``other``."""
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
