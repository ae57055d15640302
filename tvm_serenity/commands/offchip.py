"""``offchip``: simulate off-chip traffic, and search for an order of low traffic."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tvm_serenity.commands.models import source
from tvm_serenity.commands.offchip_options import OffchipOptions, names_of, sizes_of
from tvm_serenity.commands.progress import Progress, searching_s, silent
from tvm_serenity.commands.rewrite import REWRITE_SHARE, read
from tvm_serenity.commands.sweeping import kept_on_interrupt
from tvm_serenity.errors import InputError
from tvm_serenity.frontends import save
from tvm_serenity.graph import Graph
from tvm_serenity.offchip import (
    ORDERS,
    Sweep,
    TrafficOrder,
    energy_of,
    points_of,
    run_points,
    traffic_order,
)
from tvm_serenity.offchip.energy import ExternalMemory, region_of
from tvm_serenity.offchip.figure import plot_reduction
from tvm_serenity.offchip.orders import Versions
from tvm_serenity.offchip.points import ordered_for, point_file
from tvm_serenity.offchip.rewritten import rewritten_subject
from tvm_serenity.offchip.storages import Subject
from tvm_serenity.offchip.transfers import certificate, transfer_plan
from tvm_serenity.options.model import ReadOptions
from tvm_serenity.rewrite import Net
from tvm_serenity.search.deadline import seconds_left, within
from tvm_serenity.system.files import write_bytes


@dataclass(frozen=True)
class TrafficResult:
    """An order of one model for low traffic at one capacity."""

    model: str
    ops: int
    order: TrafficOrder
    output: str | None

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the search with the best so far."""
        return self.order.statistics.get("limit") == "interrupt"

    def json(self) -> dict[str, Any]:
        """Return the result as ``--json`` prints it."""
        found = self.order
        return {
            "model": self.model,
            "capacity_bytes": found.capacity_bytes,
            "total_bytes": found.total_bytes,
            "compulsory_bytes": found.compulsory_bytes,
            "lower_bound_bytes": found.lower_bound_bytes,
            "gap": round(found.gap, 6),
            "outcome": str(found.outcome),
            "starts": dict(found.starts),
            "order": list(found.order),
            "statistics": dict(found.statistics),
            "output": self.output,
        }


def offchip(
    models: Sequence[str], options: OffchipOptions | None = None, tell: Progress = silent
) -> TrafficResult | list[dict[str, Any]]:
    """Return the off-chip traffic of orders of ``models``: a row for each point of the sweep.

    With ``options.order_for``, return an order of one model with less traffic.
    """
    options = options or OffchipOptions()
    if not models:
        raise InputError("no models: name at least one file or zoo:NAME")
    if options.order_for is None:
        return _rows(models, options)
    if len(models) != 1:
        raise InputError("--order-for traffic takes one MODEL and --capacity SIZE")
    return _order(models[0], options)


def _rows(models: Sequence[str], options: OffchipOptions) -> list[dict[str, Any]]:
    """Return the simulated traffic of each point of the sweep."""
    region = None if options.energy is None else region_of(options.energy)
    orders, policies = names_of(options.orders), names_of(options.policy)
    settings = Sweep(sizes_of(options.capacities), orders, policies, options.model, options.search)
    rewrites = any(ORDERS[order].rewrites for order in settings.orders)
    read = {spec: read_of(spec, options, rewrites) for spec in dict.fromkeys(models)}
    with within(searching_s(options.time_limit_s)):
        with within(None, REWRITE_SHARE):
            networks = {spec: versions_of(*one) for spec, one in read.items()}
        points = points_of(networks, settings)
        if options.plan is not None:
            _check_single(networks, settings)
        default = f"offchip-{points[0].key()[:8]}.points"
        keep = point_file(Path(options.resume or default))
        run = partial(run_points, points, options.jobs, options.dask)
        rows = kept_on_interrupt(run, keep, options.resume is not None)
        if options.plan is not None:
            rows = [_planned(row, networks, settings, options.plan) for row in rows]
    if options.plot is not None:
        plot_reduction(rows, options.plot, settings.policies[0])
    return rows if region is None else [_with_energy(row, region) for row in rows]


def _check_single(networks: Mapping[str, Versions], settings: Sweep) -> None:
    """Raise :class:`InputError` if a sweep has several points, of which none can be planned."""
    counts = {
        "models": len(networks),
        "--capacities": len(settings.capacities),
        "--orders": len(settings.orders),
        "--policy": len(settings.policies),
    }
    several = [f"{count} {name}" for name, count in counts.items() if count > 1]
    if several:
        raise InputError(f"--plan writes one plan, not one for each of {', '.join(several)}")


def _planned(
    row: dict[str, Any], networks: Mapping[str, Versions], settings: Sweep, path: str
) -> dict[str, Any]:
    """Return the row of a point with the figures of its transfer plan, after writing the plan."""
    if row["total_bytes"] is None:
        raise InputError(
            "--plan: the time limit ended the search before there was a plan; raise it"
        )
    capacity, network = settings.capacities[0], networks[row["model"]]
    ordered = ordered_for(network, settings.orders[0], capacity, settings)
    if ordered.subject.writes:
        raise InputError(
            f"--plan: order {settings.orders[0]!r} rewrites {row['model']} into operators that "
            "write parts of tensors, which are not transferred apart; choose another order"
        )
    found = transfer_plan(
        ordered.subject.graph,
        capacity,
        ordered.order,
        settings.policies[0],
        settings.model,
        seconds_left(),
    )
    write_bytes(path, json.dumps(certificate(found), indent=1).encode())
    return {
        **row,
        "read_bytes": found.read_bytes,
        "write_bytes": found.write_bytes,
        "total_bytes": found.total_bytes,
        "lower_bound_bytes": found.lower_bound_bytes,
        "fast_bytes": found.fast_bytes,
        "slow_bytes": found.slow_bytes,
        "direct_bytes": found.direct_bytes,
        "moved_bytes": found.moved_bytes,
        "plan": path,
    }


def _order(spec: str, options: OffchipOptions) -> TrafficResult:
    """Return an order for one model and one capacity, after writing the reordered model."""
    assert options.capacity_bytes is not None
    opened = source(spec, options).file()
    search = replace(options.search, keep_on_interrupt=True)
    with within(searching_s(options.time_limit_s)):
        found = traffic_order(opened.graph, options.capacity_bytes, options.model, search)
        if options.output is not None:
            save(opened, list(found.order), options.output)
    return TrafficResult(spec, len(opened.graph.ops), found, options.output)


def read_of(spec: str, reading: ReadOptions, rewrites: bool) -> tuple[Graph, Net | None]:
    """Return the graph of a model, and its net if ``rewrites`` requests rewriting."""
    opened = source(spec, reading)
    return opened.file().graph, read(opened) if rewrites else None


def versions_of(graph: Graph, net: Net | None) -> Versions:
    """Return a model as given and, if ``net`` exists and rewriting changes it, as rewritten."""
    return Versions(Subject(graph), None if net is None else rewritten_subject(net))


def _with_energy(row: dict[str, Any], region: ExternalMemory) -> dict[str, Any]:
    if row["total_bytes"] is None:
        return {**row, "region": region.name, "energy_uj": None, "time_us": None}
    found = energy_of(row["read_bytes"], row["write_bytes"], region)
    return {
        **row,
        "region": region.name,
        "energy_uj": None if found.energy_uj is None else round(found.energy_uj, 3),
        "time_us": None if found.time_us is None else round(found.time_us, 3),
    }
