"""The table of networks: given order, best order, its proof, the arena; and bytes on the Relax VM.

    python benchmarks/networks.py [--vm] [MODEL ...]

Without models: the zoo, and the shared model files where they are present. With ``--vm``, each is
also compiled and run: what stock TVM allocates beside what our arena takes.
"""

import argparse
from pathlib import Path

from tvm_serenity.commands.models import source
from tvm_serenity.errors import SerenityError
from tvm_serenity.memory import live_ranges, peak_bytes
from tvm_serenity.plan import Buffer, plan
from tvm_serenity.schedule import Options, schedule

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "models"
LIMIT_S = 30.0


def order_row(model: str) -> str:
    graph = source(model).file().graph
    found = schedule(graph, "auto", Options(time_limit_s=LIMIT_S))
    ranges = live_ranges(graph, found.order)
    placed = plan([Buffer(r.name, r.start, r.stop, r.size_bytes) for r in ranges])
    given = peak_bytes(graph)
    return (
        f"| {Path(model).name} | {len(graph.ops)} | {given:,} | {found.peak_bytes:,} "
        f"| {1 - found.peak_bytes / max(given, 1):.1%} | {found.lower_bound_bytes:,} "
        f"| {found.outcome} | {placed.arena_bytes:,} | {found.states:,} | {found.seconds:.3f} |"
    )


def vm_row(model: str) -> str:
    from tvm_serenity.runtime.build import compile_and_compare, equal_outputs
    from tvm_serenity.runtime.checks import Checks

    options, checks = Options(time_limit_s=LIMIT_S), Checks(stock=True)
    found = compile_and_compare(source(model).module(), options=options, checks=checks)
    assert found.stock.run is not None
    stock = found.stock.storage_bytes + found.stock.workspace_bytes
    same = equal_outputs(found.ours.run, found.given.run)["identical"]
    error = equal_outputs(found.ours.run, found.stock.run)["max_abs_error"]
    return (
        f"| {Path(model).name} | {found.stock.storage_bytes:,} + {found.stock.workspace_bytes:,} "
        f"| {found.given.storage_bytes:,} | {found.ours.storage_bytes:,} "
        f"| {found.ours.storage_bytes / stock:.0%} | {'yes' if same else 'NO'} | {error:.2g} |"
    )


def models() -> list[str]:
    from tvm_serenity import zoo

    files = sorted(DATA.glob("*/*.tflite")) + sorted(DATA.glob("*/*.onnx"))
    return [f"zoo:{name}" for name in zoo.NAMES] + [str(path) for path in files]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*")
    parser.add_argument("--vm", action="store_true")
    arguments = parser.parse_args()
    if arguments.vm:
        print(
            "| network | stock TVM: storages + kernel scratch | given order | best order "
            "| share of stock | identical | to stock |\n|---|---|---|---|---|---|---|"
        )
    else:
        print(
            "| network | ops | given | best | saved | bound | outcome | arena | states "
            "| seconds |\n|---|---|---|---|---|---|---|---|---|---|"
        )
    for model in arguments.models or models():
        try:
            print(vm_row(model) if arguments.vm else order_row(model), flush=True)
        except SerenityError as error:
            print(f"| {Path(model).name} | {error} |", flush=True)


if __name__ == "__main__":
    main()
