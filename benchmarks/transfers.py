"""Bytes executed against estimated: firmware on this machine with a port that counts.

    python benchmarks/transfers.py [networks] [cells] [exact] [--only PART] [--json FILE]

``networks``: zoo networks and shared models in five capacities of fast memory each: half of what
the largest operator needs, and four from there to below the least peak (of chains, where both are
the same: above it). The firmware runs with every tensor compared, in memory that is poisoned
outside of lifetimes. ``cells``: SERENITY's nine cells in 256 KB, by order. ``exact``: 300 random
networks, whose least bytes CP-SAT proves, for policies that evict and for ``direct``. Prints
Markdown; ends with status 1 where a figure differs, or where another policy or placement costs
less.
"""

import argparse
import json
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ortools.sat.python import cp_model

from tests.offchip.test_direct import least_bytes, small_case
from tests.offchip.test_whole_tensors import least_traffic
from tests.plan.banked_greedy import banked_greedy
from tests.random_graphs import random_graph
from tvm_serenity.boards import board
from tvm_serenity.firmware.c_names import identifier
from tvm_serenity.firmware.check.host_run import Rehearsed, rehearse
from tvm_serenity.firmware.check.report import host_build
from tvm_serenity.firmware.compile.compiled import Compiled
from tvm_serenity.firmware.compile.driver import NetworkCompiler, checked
from tvm_serenity.firmware.compile.model import opened
from tvm_serenity.firmware.emit.forms import FORMS, forms_source
from tvm_serenity.firmware.emit.macros import MACROS, macros_source
from tvm_serenity.firmware.emit.project import Layout, project
from tvm_serenity.firmware.emit.trial import TRIAL, trial_source
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.firmware.validate.reference import reference
from tvm_serenity.graph import Graph
from tvm_serenity.memory import LiveRange, live_ranges, peak_bytes
from tvm_serenity.offchip import Subject, simulate, trace_of
from tvm_serenity.offchip.direct import direct_use
from tvm_serenity.offchip.figure import geometric_mean
from tvm_serenity.offchip.policies import DIRECT
from tvm_serenity.offchip.transfers import TransferPlan, transfer_plan
from tvm_serenity.offchip.transfers.solve import executable
from tvm_serenity.options.memory import BEST
from tvm_serenity.papers.networks import CELLS
from tvm_serenity.plan import Buffer, PlanOptions, Region
from tvm_serenity.plan import plan as place
from tvm_serenity.schedule import schedule

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "models"
SMALL = "quantised=1&layout=NHWC"
NETWORKS = {
    "SwiftNet cell A": "zoo:swiftnet-cell-a",
    "SwiftNet cell B": "zoo:swiftnet-cell-b",
    "SwiftNet cell C": "zoo:swiftnet-cell-c",
    "DARTS normal cell": "zoo:darts-normal-cell",
    "NASNet cell": "zoo:nasnet-cell",
    "AmoebaNet cell": "zoo:amoebanet-cell",
    "RandWire": "zoo:randwire?n=12&channels=16",
    "MobileNet v2 96": f"zoo:mobilenet-v2?size=96&width=0.35&{SMALL}",
    "SwiftNet vww 224": "swiftnet/swiftnet_vww_224_uint8.tflite",
    "MCUNet vww": "mcunet/mcunet_vww_int8.tflite",
    "ResNet 8": "mlperf_tiny/ic_resnet8_int8.tflite",
    "DS-CNN": "mlperf_tiny/kws_dscnn_int8.tflite",
    "MobileNet v1 96": "mlperf_tiny/vww_mobilenetv1_96_int8.tflite",
    "person_detect": "tflm/person_detect.tflite",
    "face_detection_front": "detection/face_detection_front.tflite",
}
BOARD = "mps2-an386"
POINTS = 4
RIVALS = "belady", "by_size", "banked", "best"
ROOMY = 4_000_000
"""Fast memory in which every network of the table runs."""


def network_rows(name: str, spec: str) -> Iterator[dict[str, Any]]:
    """Yield a row for each capacity of one network."""
    path = spec if spec.startswith("zoo:") else str(DATA / spec)
    settings, target = Settings(name="net", check=False), board(BOARD)
    module = opened(path, settings).module
    maker = NetworkCompiler(module, identifier(name), target, settings)
    need, most = span_of(maker, settings)
    above = [need + (most - need) * point // POINTS // 16 * 16 for point in range(POINTS)]
    for capacity in (need // 32 * 16, *above):
        made = maker.unsplit(replace(settings, fast_memory_bytes=capacity))
        yield {"network": name, **executed(made, Layout(target))}


def span_of(maker: NetworkCompiler, settings: Settings) -> tuple[int, int]:
    """Return what the largest operator needs, and the least peak; more where that is the same."""
    made = maker.unsplit(replace(settings, fast_memory_bytes=ROOMY, order="given"))
    assert made.transfers is not None
    graph = made.transfers.graph
    need = trace_of(graph, None, executable(16)).need_bytes[0]
    peak = peak_bytes(graph, schedule(graph).order)
    return need, peak if peak > need else need * 3 // 2


def run_of(made: Compiled, layout: Layout) -> Rehearsed:
    """Return the run of a program on this machine; it raises for a wrong tensor or count."""
    checked(made)
    program = made.program
    texts = project(program, layout)
    written = {
        TRIAL: trial_source(program, False).encode(),
        FORMS: forms_source(program).encode(),
        MACROS: macros_source(program, []).encode(),
    }
    with host_build(program, {**texts, **written}, {}) as started:
        return rehearse(started.library, texts, reference(made))


def executed(made: Compiled, layout: Layout) -> dict[str, Any]:
    """Return the figures of one program after a run."""
    plan, program = made.transfers, made.program
    assert plan is not None
    ran = run_of(made, layout)
    subject, capacity = Subject(plan.graph, passes=plan.passes), plan.capacity_bytes
    trace = trace_of(subject, None, executable(plan.alignment_bytes))
    use = direct_use(trace, capacity)
    enough = capacity >= trace.need_bytes[0]
    return {
        "operators": len(program.calls),
        "capacity_bytes": plan.capacity_bytes,
        "compulsory_bytes": plan.compulsory_bytes,
        "lower_bound_bytes": plan.lower_bound_bytes,
        "estimated_bytes": use.read_bytes + use.write_bytes,
        "proved": use.proved,
        "executed_bytes": (ran.transferred_bytes or 0) + plan.direct_bytes,
        "direct_bytes": plan.direct_bytes,
        "belady_bytes": simulate(trace, capacity).total_bytes if enough else None,
        "moved_bytes": plan.moved_bytes,
        "prefetched_bytes": plan.prefetched_bytes,
        "by_size_bytes": by_size(plan),
        "banked_bytes": banked(plan),
        "best_bytes": best_placement(plan),
        "tensors": ran.tensors,
    }


def by_size(plan: TransferPlan) -> int:
    """Return the bytes that kernels access in slow memory if tensors are placed by size.

    The planner gives each live range one memory, so that the fewest bytes are in the slow one.
    """
    buffers, regions = buffers_of(plan), memories(plan)
    found = place(buffers, options=PlanOptions(regions=regions, time_limit_s=10.0))
    return accessed(plan, [region == "slow" for region in found.regions])


def banked(plan: TransferPlan) -> int:
    """Return the same for the placement of ExecuTorch's greedy planner over banks."""
    found = banked_greedy(buffers_of(plan), memories(plan))
    return accessed(plan, [bank == 1 for bank, _ in found])


def buffers_of(plan: TransferPlan) -> list[Buffer]:
    """Return the live ranges of a plan's network as buffers."""
    return [
        Buffer(f"{i}", one.start, one.stop, one.size_bytes, plan.alignment_bytes)
        for i, one in enumerate(live_ranges(plan.graph))
    ]


def memories(plan: TransferPlan) -> tuple[Region, Region]:
    """Return the fast memory of a plan and a slow one."""
    return Region("fast", plan.capacity_bytes), Region("slow", 2**40)


def best_placement(plan: TransferPlan) -> int:
    """Return the least of the same over all placements of live ranges that fit by size."""
    ranges, (fast, _) = live_ranges(plan.graph), memories(plan)
    costs = [(in_fast(plan, one), in_slow(plan, one)) for one in ranges]
    model = cp_model.CpModel()
    near = [model.new_bool_var("") for _ in ranges]
    sizes = [-(-r.size_bytes // plan.alignment_bytes) * plan.alignment_bytes for r in ranges]
    for step in range(len(plan.graph.ops)):
        live = [i for i, one in enumerate(ranges) if one.start <= step < one.stop]
        model.add(sum(sizes[i] * near[i] for i in live) <= (fast.capacity_bytes or 0))
    pairs = zip(near, costs, strict=True)
    model.minimize(sum(slow + (quick - slow) * one for one, (quick, slow) in pairs))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    return round(solver.objective_value)


def accessed(plan: TransferPlan, slow: Sequence[bool]) -> int:
    """Return the bytes that kernels access in slow memory if tensors stay where they are placed.

    ``slow``: whether each live range is in slow memory.
    """
    ranges = zip(live_ranges(plan.graph), slow, strict=True)
    return sum(in_slow(plan, one) if is_slow else in_fast(plan, one) for one, is_slow in ranges)


def in_fast(plan: TransferPlan, one: LiveRange) -> int:
    """Return the bytes of inputs and outputs of the network, which are copied once."""
    graph = plan.graph
    ends = {*graph.inputs, *graph.outputs}
    return sum(graph.tensors[t].size_bytes for t in set(one.tensors) & ends)


def in_slow(plan: TransferPlan, one: LiveRange) -> int:
    """Return the bytes of a live range that kernels access in slow memory.

    A tensor is written once and read by each of its readers, as often as its kernel goes over it.
    """
    graph, total = plan.graph, 2 * one.size_bytes * (one.workspace_of is not None)
    passes = {(op, tensor): times for op, tensor, times in plan.passes}
    for tensor in one.tensors:
        if graph.storage[tensor] != tensor:
            continue
        names = [t for t in one.tensors if graph.storage[t] == tensor]
        touching = {op for t in names for op in graph.consumers[t] if graph.ops[op].view_of is None}
        times = [passes.get((op, tensor), 1) for op in (*touching, graph.producer[tensor])]
        made = graph.producer[tensor] >= 0
        total += graph.tensors[tensor].size_bytes * sum(times if made else times[:-1])
    return total


def networks(only: str) -> list[dict[str, Any]]:
    """Print executed against estimated bytes; return the rows."""
    shown = {
        "capacity": "fast memory",
        "compulsory": "compulsory",
        "lower_bound": "bound",
        "estimated": "estimated",
        "executed": "executed",
        "direct": "in place",
        "belady": "transfers alone",
        "prefetched": "prefetched",
        "moved": "moved",
        "by_size": "placed by size",
        "banked": "banked greedy",
        "best": "best placement",
    }
    print(f"| network | operators | {' | '.join(shown.values())} |")
    print("|---|---|" + "---|" * len(shown))
    rows = []
    for name, spec in NETWORKS.items():
        if only not in name or not (spec.startswith("zoo:") or (DATA / spec).is_file()):
            continue
        for row in network_rows(name, spec):
            rows.append(row)
            values = [row[f"{key}_bytes"] for key in shown]
            figures = " | ".join("" if value is None else f"{value:,}" for value in values)
            print(f"| {name} | {row['operators']} | {figures} |", flush=True)
    equal = sum(row["executed_bytes"] == row["estimated_bytes"] for row in rows)
    proved = sum(row["proved"] for row in rows)
    print(f"\n{equal} of {len(rows)} points equal; {proved} proved; ", end="")
    print(f"{sum(row['tensors'] for row in rows):,} tensors identical")
    more = [row for row in rows if row["executed_bytes"] > row["compulsory_bytes"]]
    print(f"{len(more)} points have capacity traffic")
    for key in RIVALS:
        pairs = [(row["executed_bytes"], row[f"{key}_bytes"]) for row in more]
        pairs = [(ours, theirs) for ours, theirs in pairs if theirs is not None]
        less, same = sum(ours < theirs for ours, theirs in pairs), sum(a == b for a, b in pairs)
        print(f"{shown[key]}: {less} less, {same} equal, {len(pairs) - less - same} more")
    return rows


def cells() -> list[dict[str, Any]]:
    """Print the executed bytes of SERENITY's nine cells in 256 KB by order; return the rows."""
    print("| cell | compulsory | given order | least order | rewritten | times less |")
    print("|---|---|---|---|---|---|")
    rows, target = list[dict[str, Any]](), board(BOARD)
    for name, spec in CELLS.items():
        settings = Settings(name="net", check=False, fast_memory_bytes=256 << 10)
        maker = NetworkCompiler(opened(spec, settings).module, identifier(name), target, settings)
        moved = []
        for order, rules in (("given", ""), (BEST, ""), (BEST, "all")):
            made = maker.unsplit(replace(settings, order=order, rewrite=rules))
            assert made.transfers is not None
            copied = run_of(made, Layout(target)).transferred_bytes or 0
            moved.append(copied + made.transfers.direct_bytes)
            compulsory = made.transfers.compulsory_bytes
        given, *others = moved
        times = None if given == compulsory else given / min(others)
        rows.append({"cell": name, "bytes": moved, "times": times})
        figures = " | ".join(f"{value:,}" for value in (compulsory, *moved))
        print(f"| {name} | {figures} | {'' if times is None else f'{times:.2f}'} |", flush=True)
    known = [row["times"] for row in rows if row["times"] is not None]
    print(f"\ngeometric mean of {len(known)} cells with capacity traffic: ", end="")
    print(f"{geometric_mean(known):.2f}")
    return rows


def exact(count: int = 300) -> list[dict[str, Any]]:
    """Print how far plans are from the least bytes, with and without access in place."""
    rows = [row for seed in range(count) for row in (*evicting(seed), in_place(seed))]
    print("| policy | networks | least bytes reached | mean gap | largest gap | moved |")
    print("|---|---|---|---|---|---|")
    for policy in dict.fromkeys(row["policy"] for row in rows):
        ours = [row for row in rows if row["policy"] == policy]
        gaps = [row["total_bytes"] / max(1, row["least_bytes"]) - 1 for row in ours]
        reached = sum(gap == 0 for gap in gaps)
        moved = sum(row["moved_bytes"] for row in ours)
        mean = sum(gaps) / len(gaps)
        print(f"| `{policy}` | {count} | {reached} | {mean:.1%} | {max(gaps):.0%} | {moved} |")
    return rows


def evicting(seed: int) -> Iterator[dict[str, Any]]:
    """Yield the plans of policies that evict, beside the least traffic of any of them."""
    rng = random.Random(seed)
    graph: Graph = random_graph(rng, 8, features=False, width=3)
    order = list(range(len(graph.ops)))
    capacity = trace_of(graph, order, executable()).need_bytes[0] + rng.choice([0, 3, 8])
    least, _ = least_traffic(graph, order, capacity)
    for policy in ("belady", "belady-writes"):
        yield beside(transfer_plan(graph, capacity, order, policy), least)


def in_place(seed: int) -> dict[str, Any]:
    """Return the plan of ``direct`` for a network, capacity and passes, beside the least bytes."""
    subject, capacity, passes = small_case(seed)
    plan = transfer_plan(subject, capacity, None, DIRECT)
    return beside(plan, least_bytes(subject.graph, capacity, passes))


def beside(plan: TransferPlan, least: int) -> dict[str, Any]:
    """Return the row of a plan."""
    return {
        "policy": plan.policy,
        "least_bytes": least,
        "total_bytes": plan.total_bytes,
        "lower_bound_bytes": plan.lower_bound_bytes,
        "moved_bytes": plan.moved_bytes,
    }


def main() -> None:
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], "networks", "cells", "exact"])
    parser.add_argument("--only", default="", help="networks with this in their names")
    parser.add_argument("--json", type=Path, help="write the rows here")
    given = parser.parse_args()
    rows = networks(given.only) if "networks" in (given.parts or ["networks"]) else []
    nine = cells() if "cells" in (given.parts or ["cells"]) else []
    found = exact() if "exact" in (given.parts or ["exact"]) else []
    if given.json is not None:
        given.json.write_text(
            json.dumps({"networks": rows, "cells": nine, "exact": found}, indent=1)
        )
    rivals = [(row, row[f"{key}_bytes"]) for row in rows for key in RIVALS]
    above = any(cost is not None and row["executed_bytes"] > cost for row, cost in rivals)
    if above or any(row["executed_bytes"] != row["estimated_bytes"] for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
