"""The tables of docs/relay.md: the graph executor's memory, and that of ahead-of-time C.

    make relay-test && .venv-relay/bin/python benchmarks/relay.py [--table graph|aot] [NAME ...]

Without names: all networks. Outputs are compared with those of TVM's own order: to the bit, and
within 1e-4 after rewriting.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import tvm
from tvm import relay
from tvm.contrib import graph_executor

from tvm_serenity.relay import (
    ArenaExecutor,
    build_aot,
    c_target,
    graph_of,
    pool_bytes,
    share_storage,
    workspace_bytes,
    zoo,
)
from tvm_serenity.relay.lower import fused
from tvm_serenity.relay.rewrite import rewrite_module
from tvm_serenity.relay.schedule import region_of, schedule_module

MODELS = Path(__file__).resolve().parents[2] / "shared" / "data" / "models"
USMP = ("greedy_by_size", "greedy_by_conflicts", "hill_climb")


def _zoo(name: str, **params: Any) -> Callable[[], Any]:
    return lambda: zoo.build(name, **params)


def _onnx(path: str) -> Callable[[], Any]:
    return lambda: relay.frontend.from_onnx(onnx.load(str(MODELS / path)))[0]


SMALL = {"channels": 8, "size": 16}
NETWORKS: dict[str, Callable[[], Any]] = {
    "swiftnet-cell-a": _zoo("swiftnet-cell-a", size=16),
    "swiftnet-cell-b": _zoo("swiftnet-cell-b", size=8),
    "swiftnet-cell-c": _zoo("swiftnet-cell-c", size=8),
    "resnet8 (ONNX)": _onnx("mlperf_tiny/ic_resnet8_fp32.onnx"),
    "darts-normal-cell": _zoo("darts-normal-cell", **SMALL),
    "nasnet-cell": _zoo("nasnet-cell", **SMALL),
    "amoebanet-cell": _zoo("amoebanet-cell", **SMALL),
    "randwire ws, n=8": _zoo("randwire", n=8, seed=7, stride=1, **SMALL),
    "randwire ws, n=10": _zoo("randwire", n=10, seed=1, stride=1, **SMALL),
    "randwire er, n=10": _zoo("randwire", n=10, model="er", seed=3, stride=1, **SMALL),
    "randwire ba, n=9": _zoo("randwire", n=9, model="ba", m=3, seed=4, stride=1, **SMALL),
    "shufflenet (ONNX)": _onnx("onnx_light/light_shufflenet.onnx"),
}


def context(**config: Any) -> Any:
    return tvm.transform.PassContext(opt_level=3, disabled_pass=["AlterOpLayout"], config=config)


def outputs(executor: Any, values: dict[str, Any]) -> list[Any]:
    executor.run(**values)
    return [executor.get_output(i).numpy().copy() for i in range(executor.get_num_outputs())]


def stock(built: Any) -> Any:
    return graph_executor.GraphModule(built["default"](tvm.cpu()))


def inputs(mod: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    typed = relay.transform.InferType()(mod)
    return {
        p.name_hint: rng.uniform(-1, 1, [int(e) for e in p.checked_type.shape]).astype("float32")
        for p in typed["main"].params
    }


def graph_row(mod: Any) -> str:
    """Calls, pools of TVM's order and of ours, ours with our ids, arena and bound; rewritten."""
    values = inputs(mod)
    with context():
        lowered = fused(mod, "llvm")
        plain = relay.build(lowered, "llvm")
        built = relay.build(schedule_module(lowered, "llvm")[0], "llvm")
        better = rewrite_module(mod, target="llvm")
        rewritten = relay.build(schedule_module(better.module, "llvm")[0], "llvm")
    expected = outputs(stock(plain), values)
    arena, last = ArenaExecutor(built), ArenaExecutor(rewritten)
    shared = share_storage(built)
    for executor in (stock(built), stock(shared), arena):
        assert all(map(np.array_equal, expected, outputs(executor, values)))
    for a, b in zip(expected, outputs(last, values), strict=True):
        assert np.abs(a - b).max() < 1e-4
    assert len(graph_of(plain).calls) == len(graph_of(built).calls)
    cells = [len(graph_of(built).calls), pool_bytes(plain), pool_bytes(built), pool_bytes(shared)]
    cells += [arena.arena_bytes, arena.plan.lower_bound_bytes]
    cells += [pool_bytes(rewritten), last.arena_bytes]
    return " | ".join(f"{c:,}" for c in cells)


def aot_row(mod: Any) -> str:
    """Workspace: TVM's order and planner, then our order with USMP's planners and with ours."""
    totals: dict[str, int] = {}

    @tvm.register_func("tir.usmp.algo.all", override=True)
    def every(infos: Any, pressure: int) -> Any:
        made = {}
        for name in (*USMP, "serenity"):
            made = tvm.get_global_func(f"tir.usmp.algo.{name}")(infos, pressure)
            ends = [
                int(a.byte_offset) + int(b.size_bytes)
                for b, a in made.items()
                if "const" not in str(a.pool_info.pool_name)
            ]
            totals[name] = max(ends, default=0)
        return made

    with context():
        lowered = fused(mod, c_target())
        default = workspace_bytes(build_aot(lowered, algorithm="greedy_by_size"))
        ordered, _ = schedule_module(lowered, c_target(), executor="aot")
        built = build_aot(ordered, algorithm="all")
    scratch = max(op.workspace_bytes for op in region_of(lowered, c_target(), "aot").graph.ops)
    cells = [default, *(totals[n] for n in USMP), totals["serenity"], scratch]
    assert workspace_bytes(built) >= totals["serenity"]
    return " | ".join(f"{c:,}" for c in cells)


TABLES = {
    "graph": (
        "calls | pools, TVM's order | pools, ours | our ids | arena | bound "
        "| rewritten: pools | arena",
        graph_row,
    ),
    "aot": (
        "default | greedy_by_size | greedy_by_conflicts | hill_climb | serenity | largest scratch",
        aot_row,
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(NETWORKS))
    parser.add_argument("--table", choices=list(TABLES), action="append")
    options = parser.parse_args()
    tvm.autotvm.GLOBAL_SCOPE.silent = True
    for table in options.table or TABLES:
        head, row = TABLES[table]
        print(f"| network | {head} |")
        print("|---" + "|--:" * (head.count("|") + 1) + "|")
        for name in options.names or NETWORKS:
            print(f"| {name} | {row(NETWORKS[name]())} |", flush=True)


if __name__ == "__main__":
    main()
