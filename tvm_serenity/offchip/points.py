"""Sweeps over models, orders, capacities and policies: points, rows, and where they run.

A sweep is a list of independent points, which run one after another, in processes of this machine,
or on a Dask cluster (both by joblib). Rows come in the order of the points, so the output does not
depend on where they ran.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tvm_serenity.errors import InputError
from tvm_serenity.memory import peak_bytes
from tvm_serenity.offchip.direct import check_unsplit
from tvm_serenity.offchip.model import Model
from tvm_serenity.offchip.order_search import SearchOptions
from tvm_serenity.offchip.orders import ORDERS, SubjectOrder, Versions
from tvm_serenity.offchip.policies import DIRECT, NAMES, check_capacity, need_under, sweep
from tvm_serenity.offchip.storages import storages_of
from tvm_serenity.offchip.trace import need_of, trace_of
from tvm_serenity.search.deadline import limit_left, seconds_left, within
from tvm_serenity.search.sweeps import PointFile, Row, run_sweep

COLUMNS = (
    "model",
    "capacity_bytes",
    "order",
    "policy",
    "read_bytes",
    "write_bytes",
    "total_bytes",
    "compulsory_bytes",
    "peak_bytes",
    "fits",
    "limit",
)

ORDER_SHARE = 0.8
"""Share of a point's time for its order; the rest is for its measurement."""


@dataclass(frozen=True)
class Sweep:
    """The settings of a sweep; raises :class:`InputError` if a name is unknown or missing."""

    capacities: tuple[int, ...]
    orders: tuple[str, ...] = ("given", "serenity")
    policies: tuple[str, ...] = ("belady",)
    model: Model = field(default_factory=Model)
    search: SearchOptions = field(default_factory=SearchOptions)

    def __post_init__(self) -> None:
        _check_names("order", self.orders, ORDERS)
        _check_names("policy", self.policies, NAMES)
        if DIRECT in self.policies:
            check_unsplit(self.model.memory, self.model.block_bytes)
        if not self.capacities:
            raise InputError("the sweep has no capacities; name at least one")
        for capacity in self.capacities:
            if capacity <= 0:
                raise InputError(f"capacity of {capacity} bytes: it must be 1 or more")


@dataclass(frozen=True)
class SweepPoint:
    """One unit of a sweep: one model under one order, at some capacities."""

    name: str
    network: Versions
    order: str
    capacities: tuple[int, ...]
    settings: Sweep

    def key(self) -> str:
        """Return a digest of all inputs that decide the rows."""
        parts = self.name, self.network.digest, self.order, self.capacities, self.settings
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]

    def rows(self) -> list[Row]:
        """Return the point's rows; after the deadline they hold None, and ``limit`` is "time".

        ``limit`` is also "time" if the deadline ended the search for the order.
        """
        try:
            return self._measured()
        except TimeoutError:
            blank = {**dict.fromkeys(COLUMNS), "model": self.name, "order": self.order}
            return [
                blank | {"capacity_bytes": capacity, "policy": policy, "limit": "time"}
                for policy in self.settings.policies
                for capacity in self.capacities
            ]

    def _measured(self) -> list[Row]:
        settings = self.settings
        if limit_left() == 0.0:
            raise TimeoutError
        with within(None, ORDER_SHARE):
            ordered = ordered_for(self.network, self.order, self.capacities[0], settings)
        trace = trace_of(ordered.subject, ordered.order, settings.model)
        peak = peak_bytes(ordered.subject.graph, ordered.order)
        return [
            {
                "model": self.name,
                "capacity_bytes": traffic.capacity_bytes,
                "order": self.order,
                "policy": policy,
                "read_bytes": traffic.read_bytes,
                "write_bytes": traffic.write_bytes,
                "total_bytes": traffic.total_bytes,
                "compulsory_bytes": traffic.compulsory_bytes,
                "peak_bytes": peak,
                "fits": peak <= traffic.capacity_bytes,
                "limit": "time" if ordered.is_late else None,
            }
            for policy in settings.policies
            for traffic in sweep(trace, self.capacities, policy, seconds_left())
        ]


def ordered_for(network: Versions, order: str, capacity: int, settings: Sweep) -> SubjectOrder:
    """Return a network in an order for a capacity, for at least the need of one op.

    Below that, only ``direct`` runs; the order is then that of the need.
    """
    need, _ = need_of(storages_of(network.given, settings.model))
    return ORDERS[order].find(network, max(capacity, need), settings.model, settings.search)


def points_of(models: Mapping[str, Versions], settings: Sweep) -> list[SweepPoint]:
    """Return the points of a sweep, models first.

    Raises :class:`InputError` without models, or if a capacity is too small for one of them.
    """
    if not models:
        raise InputError("the sweep has no models; name at least one file or zoo:NAME")
    points = []
    for name, network in models.items():
        storages = storages_of(network.given, settings.model)
        need = need_of(storages)
        try:
            for policy in settings.policies:
                check_capacity(need_under(policy, need), min(settings.capacities))
        except InputError as error:
            raise InputError(f"{name}: {error}") from error
        for order in settings.orders:
            alone = ORDERS[order].by_capacity
            sets = [(c,) for c in settings.capacities] if alone else [settings.capacities]
            points += [
                SweepPoint(name, network, order, capacities, settings) for capacities in sets
            ]
    return points


def run_points(
    points: Sequence[SweepPoint],
    jobs: int = 1,
    dask: str | None = None,
    done: Mapping[str, list[Row]] | None = None,
    keep: PointFile | None = None,
    is_keyed: bool = True,
) -> list[Row]:
    """Return the rows of all ``points``, sorted by model, capacity, order and policy as given.

    The other arguments are those of ``run_sweep``.
    """
    return sorted(run_sweep(points, jobs, dask, done, keep, is_keyed), key=_rank_of(points))


def point_file(path: Path) -> PointFile:
    """Return ``path`` as a file of finished points of a traffic sweep."""
    return PointFile(path, "offchip_points", COLUMNS)


def _rank_of(points: Sequence[SweepPoint]) -> Any:
    models = {name: i for i, name in enumerate(dict.fromkeys(p.name for p in points))}
    settings = points[0].settings

    def rank(row: Row) -> tuple[int, int, int, int]:
        return (
            models[row["model"]],
            row["capacity_bytes"],
            settings.orders.index(row["order"]),
            settings.policies.index(row["policy"]),
        )

    return rank


def _check_names(kind: str, names: Sequence[str], known: Iterable[str]) -> None:
    if not names:
        raise InputError(f"the sweep names no {kind}; name at least one of {', '.join(known)}")
    for name in names:
        if name not in known:
            raise InputError(f"unknown {kind} {name!r}; there are {', '.join(known)}")
