"""Row streaming as a measure: operators split into bands of rows, ordered and placed.

The module also states its limit: the live tensors at the peak of bands of one row, with the lower
bound.
"""

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import Any

from tvm_serenity.errors import InputError
from tvm_serenity.explain.claims import Claim, counted, listed, quoted
from tvm_serenity.explain.measures import Measure
from tvm_serenity.frontends.formats import operation
from tvm_serenity.frontends.model_file import ModelFile
from tvm_serenity.memory import profile
from tvm_serenity.rows.bound import RowsBound, rows_bound
from tvm_serenity.rows.choose import check_splittable
from tvm_serenity.rows.limits import Limits
from tvm_serenity.rows.network import Network
from tvm_serenity.rows.split import SOURCE, Banded
from tvm_serenity.schedule import Schedule
from tvm_serenity.search.outcome import Outcome

HOW = "rows --rows 1 --graph"
"""The command of the measure."""
TIME_LIMIT_S = 5.0


@dataclass(frozen=True)
class FinestBands:
    """A network in bands of one row, the finest there are, with the best order of each kind.

    ``bound``: with the input in memory.
    """

    network: Network
    bound: RowsBound

    @property
    def least(self) -> tuple[Banded, Schedule]:
        """The bands and the order with the lowest peak, however the input arrives."""
        return _least(self.bound)


def finest_bands(file: ModelFile, time_limit_s: float | None = None) -> FinestBands | Claim:
    """Return the bands of one row of a model, or the claim why it cannot be split."""
    try:
        network = _splittable(file)
    except InputError as error:
        reason = str(error).removeprefix(f"{file.path.name}: ")
        return Claim("refused", f"Row streaming was not tried: {reason}.", {"reason": reason})
    return FinestBands(network, rows_bound(network, limits=_limits(time_limit_s)))


def rows_measure(found: FinestBands) -> Measure:
    """Return the measure of bands of one row, with the input in memory."""
    banded, best = found.least
    proof = (best.peak_bytes, best.lower_bound_bytes, best.outcome)
    words, calls = "Row streaming in bands of one row", len(banded.graph.ops)
    return Measure("rows", HOW, words, *proof, calls, banded.graph, best.order)


def floor_claims(found: FinestBands, time_limit_s: float | None = None) -> list[Claim]:
    """Return the claims about the limit of bands, with the input in memory and streamed."""
    claims = [_floor(found.bound)]
    with suppress(InputError):  # the input cannot be streamed
        limits = _limits(time_limit_s)
        claims.append(_floor(rows_bound(found.network, streamed=True, limits=limits)))
    return claims


def _splittable(file: ModelFile) -> Network:
    read = operation(
        file, "rows", "explain splits only {files} files; serenity rows also splits other models"
    )
    network: Network = read(file)
    check_splittable(network)
    return network


def _limits(time_limit_s: float | None) -> Limits:
    return Limits(inf if time_limit_s is None else min(TIME_LIMIT_S, time_limit_s))


def _least(bound: RowsBound) -> tuple[Banded, Schedule]:
    """Return the bands and the order with the lowest peak, however the input arrives."""
    pairs = zip(bound.finest, bound.orders, strict=True)
    return min(pairs, key=lambda pair: pair[1].peak_bytes)


def _floor(bound: RowsBound) -> Claim:
    """Return the claim about the peak of bands of one row, and the bound of all bands."""
    banded, found = _least(bound)
    shown = profile(banded.graph, found.order)
    assert shown.peak_step is not None
    step = shown.steps[shown.peak_step]
    alive = _alive(banded, [shown.ranges[i] for i in shown.live_at(shown.peak_step)])
    least = bound.lower_bound_bytes
    proved = found.peak_bytes == least
    place = "streamed input" if bound.streamed else "the input in memory"
    limit = (
        f"no order, placement and height of separate bands needs less than {counted(least)}"
        if proved
        else f"the best order found needs {counted(found.peak_bytes)}, and none less than {least:,}"
    )
    parts = [_said(one) for one in alive]
    doing = _doing(banded, step.op)
    text = f"With {place}, {limit}. Live when {doing}: {listed(parts, len(parts))}."
    numbers = {
        "streamed": bound.streamed,
        "peak_bytes": found.peak_bytes,
        "lower_bound_bytes": least,
        "outcome": str(Outcome.OPTIMAL if proved else Outcome.FEASIBLE),
        "alive": alive,
    }
    return Claim("rows-floor", text, numbers)


def _alive(banded: Banded, ranges: list[Any]) -> list[dict[str, Any]]:
    """Return the live rows of each feature map, and workspace, largest first."""
    rows, sizes = Counter[int](), Counter[int]()
    scratch = 0
    for found in ranges:
        if found.workspace_of is not None:
            scratch += found.size_bytes
            continue
        band = banded.bands[found.tensors[0]]
        rows[band.feature] += band.end - band.first
        sizes[band.feature] += found.size_bytes
    features = banded.network.features
    alive = [
        {
            "name": features[f].name,
            "rows": rows[f],
            "of": features[f].height,
            "size_bytes": sizes[f],
            "input": f in banded.network.inputs,
        }
        for f in sizes
    ]
    if scratch:
        alive.append({"name": "", "rows": 0, "of": 0, "size_bytes": scratch, "input": False})
    return sorted(alive, key=lambda one: (-one["size_bytes"], one["name"]))


def _said(one: dict[str, Any]) -> str:
    if not one["of"]:
        return f"workspace ({one['size_bytes']:,})"
    which = "the input" if one["input"] else quoted(one["name"])
    rows = which if one["of"] == 1 else f"{one['rows']} of {one['of']} rows of {which}"
    return f"{rows} ({one['size_bytes']:,})"


def _doing(banded: Banded, op: int) -> str:
    call = banded.calls[op]
    if call.layer == SOURCE:
        return f"row {call.first} of the input arrives"
    return f"{quoted(banded.network.layers[call.layer].name)} computes row {call.first}"
