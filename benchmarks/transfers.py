"""Transfers executed against estimated: firmware on this machine with a port that counts.

    python benchmarks/transfers.py [networks] [exact] [--only PART] [--json FILE]

``networks``: zoo networks and shared models in four capacities of fast memory each, from what the
largest operator needs to below the least peak (of chains, where both are the same: above it). The
firmware runs with every tensor compared, in memory that is poisoned outside of lifetimes.
``exact``: 300 random networks, whose least traffic CP-SAT proves. Prints Markdown; ends with status
1 where a figure differs.
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

from tests.offchip.test_whole_tensors import least_traffic
from tests.plan.banked_greedy import banked_greedy
from tests.random_graphs import random_graph
from tvm_serenity.boards import board
from tvm_serenity.firmware.c_names import identifier
from tvm_serenity.firmware.check.host_run import rehearse
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
from tvm_serenity.memory import live_ranges, peak_bytes
from tvm_serenity.offchip import simulate, trace_of
from tvm_serenity.offchip.transfers import TransferPlan, transfer_plan
from tvm_serenity.offchip.transfers.solve import executable
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
ROOMY = 4_000_000
"""Fast memory in which every network of the table runs."""


def network_rows(name: str, spec: str) -> Iterator[dict[str, Any]]:
    """Yield a row for each capacity of one network."""
    path = spec if spec.startswith("zoo:") else str(DATA / spec)
    settings, target = Settings(name="net", check=False), board(BOARD)
    module = opened(path, settings).module
    maker = NetworkCompiler(module, identifier(name), target, settings)
    need, most = span_of(maker, settings)
    for point in range(POINTS):
        capacity = need + (most - need) * point // POINTS // 16 * 16
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


def executed(made: Compiled, layout: Layout) -> dict[str, Any]:
    """Return the figures of one program after a run; the run raises for a wrong tensor or count."""
    checked(made)
    plan, program = made.transfers, made.program
    assert plan is not None
    texts = project(program, layout)
    written = {
        TRIAL: trial_source(program, False).encode(),
        FORMS: forms_source(program).encode(),
        MACROS: macros_source(program, []).encode(),
    }
    with host_build(program, {**texts, **written}, {}) as started:
        ran = rehearse(started.library, texts, reference(made))
    model = executable(plan.alignment_bytes)
    estimate = simulate(trace_of(plan.graph, None, model), plan.capacity_bytes)
    unaligned = simulate(trace_of(plan.graph, None, executable()), plan.capacity_bytes)
    return {
        "operators": len(program.calls),
        "capacity_bytes": plan.capacity_bytes,
        "compulsory_bytes": plan.compulsory_bytes,
        "lower_bound_bytes": plan.lower_bound_bytes,
        "estimated_bytes": estimate.total_bytes,
        "unaligned_bytes": unaligned.total_bytes,
        "executed_bytes": ran.transferred_bytes,
        "moved_bytes": plan.moved_bytes,
        "prefetched_bytes": plan.prefetched_bytes,
        "by_size_bytes": by_size(plan),
        "banked_bytes": banked(plan),
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


def accessed(plan: TransferPlan, slow: Sequence[bool]) -> int:
    """Return the bytes that kernels access in slow memory if tensors stay where they are placed.

    ``slow``: whether each live range is in slow memory. A tensor there is written once and read by
    each of its readers; inputs and outputs of the network in fast memory are copied once, as in a
    plan.
    """
    graph, total = plan.graph, 0
    for one, is_slow in zip(live_ranges(graph), slow, strict=True):
        if not is_slow:
            ends = {*graph.inputs, *graph.outputs}
            total += sum(graph.tensors[t].size_bytes for t in set(one.tensors) & ends)
            continue
        total += 2 * one.size_bytes * (one.workspace_of is not None)
        for tensor in one.tensors:
            if graph.storage[tensor] != tensor:
                continue
            names = [t for t in one.tensors if graph.storage[t] == tensor]
            readers = {op for t in names for op in graph.consumers[t]}
            reads = sum(graph.ops[op].view_of is None for op in readers)
            written = graph.producer[tensor] >= 0
            total += graph.tensors[tensor].size_bytes * (reads + written)
    return total


def networks(only: str) -> list[dict[str, Any]]:
    """Print executed against estimated bytes; return the rows."""
    shown = {
        "capacity": "fast memory",
        "compulsory": "compulsory",
        "lower_bound": "bound",
        "estimated": "estimated",
        "executed": "executed",
        "prefetched": "prefetched",
        "moved": "moved",
        "by_size": "placed by size",
        "banked": "banked greedy",
    }
    print(f"| network | operators | {' | '.join(shown.values())} |")
    print("|---|---|" + "---|" * len(shown))
    rows = []
    for name, spec in NETWORKS.items():
        if only not in name or not (spec.startswith("zoo:") or (DATA / spec).is_file()):
            continue
        for row in network_rows(name, spec):
            rows.append(row)
            figures = " | ".join(f"{row[f'{key}_bytes']:,}" for key in shown)
            print(f"| {name} | {row['operators']} | {figures} |", flush=True)
    equal = sum(row["executed_bytes"] == row["estimated_bytes"] for row in rows)
    same = sum(row["estimated_bytes"] == row["unaligned_bytes"] for row in rows)
    print(f"\n{equal} of {len(rows)} points equal; alignment changes the estimate of ", end="")
    print(f"{len(rows) - same}; {sum(row['tensors'] for row in rows):,} tensors identical")
    more = [row for row in rows if row["executed_bytes"] > row["compulsory_bytes"]]
    print(f"{len(more)} points have capacity traffic")
    for key in ("by_size", "banked"):
        pairs = [(row["executed_bytes"], row[f"{key}_bytes"]) for row in more]
        less, same = sum(ours < theirs for ours, theirs in pairs), sum(a == b for a, b in pairs)
        print(f"{shown[key]}: {less} less, {same} equal, {len(more) - less - same} more")
    return rows


def exact(count: int = 300) -> list[dict[str, Any]]:
    """Print how far plans are from the least traffic of any policy; return the rows."""
    rows = []
    for seed in range(count):
        rng = random.Random(seed)
        graph: Graph = random_graph(rng, 8, features=False, width=3)
        order = list(range(len(graph.ops)))
        capacity = trace_of(graph, order, executable()).need_bytes[0] + rng.choice([0, 3, 8])
        least, _ = least_traffic(graph, order, capacity)
        for policy in ("belady", "belady-writes"):
            plan = transfer_plan(graph, capacity, order, policy)
            rows.append(
                {
                    "policy": policy,
                    "least_bytes": least,
                    "total_bytes": plan.total_bytes,
                    "lower_bound_bytes": plan.lower_bound_bytes,
                    "moved_bytes": plan.moved_bytes,
                }
            )
    print("| policy | networks | least traffic reached | mean gap | largest gap | moved |")
    print("|---|---|---|---|---|---|")
    for policy in ("belady", "belady-writes"):
        ours = [row for row in rows if row["policy"] == policy]
        gaps = [row["total_bytes"] / max(1, row["least_bytes"]) - 1 for row in ours]
        reached = sum(gap == 0 for gap in gaps)
        moved = sum(row["moved_bytes"] for row in ours)
        mean = sum(gaps) / len(gaps)
        print(f"| `{policy}` | {count} | {reached} | {mean:.1%} | {max(gaps):.0%} | {moved} |")
    return rows


def main() -> None:
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], "networks", "exact"])
    parser.add_argument("--only", default="", help="networks with this in their names")
    parser.add_argument("--json", type=Path, help="write the rows here")
    given = parser.parse_args()
    rows = networks(given.only) if "networks" in (given.parts or ["networks"]) else []
    found = exact() if "exact" in (given.parts or ["exact"]) else []
    if given.json is not None:
        given.json.write_text(json.dumps({"networks": rows, "exact": found}, indent=1))
    if any(row["executed_bytes"] != row["estimated_bytes"] for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
