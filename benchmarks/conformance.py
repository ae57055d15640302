"""Made-up models against the runtimes they are written for, for so many minutes.

    python benchmarks/conformance.py [--minutes 20] [--jobs 2] [--seed 0] [--part operators,...]
    python benchmarks/conformance.py [--minutes 20] [--jobs 2] [--seed 0] --kind LEAKY_RELU,...

Each part is drawn in ``--jobs`` processes of different seeds. Prints the cases, how many are equal,
why the others were refused or had no reference runtime, and every difference with the file it was
saved as (in ``--save``, by default ``conformance_failures``); ends with status 1 if there is one.
"""

import argparse
import json
import multiprocessing
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.conformance.counts import Counts

PARTS = {
    "operators": "tests.conformance.operators",
    "networks": "tests.conformance.random_networks",
    "relax": "tests.conformance.relax_runs",
    "pipeline": "tests.conformance.relax_pipeline",
    "onnx": "tests.conformance.onnx_nodes",
    "qdq": "tests.conformance.qdq_check",
    "torch": "tests.conformance.torch_modules",
    "options": "tests.conformance.build_options",
}
"""Modules with ``run(seconds, seed, folder) -> Counts``, by the name of the part."""


def run(part: str, kinds: list[str], seconds: float, seed: int, folder: Path) -> Counts:
    if kinds:
        from tests.conformance.counts import generate_all
        from tests.conformance.operators import STRATEGIES

        return generate_all({kind: STRATEGIES[kind] for kind in kinds}, seconds, seed, folder)
    found: Counts = import_module(PARTS[part]).run(seconds, seed, folder)
    return found


def drawn(
    parts: list[str], kinds: list[str], minutes: float, jobs: int, seed: int, folder: Path
) -> dict[str, Counts]:
    """Return the counts of each part; they share the time."""
    seconds = minutes * 60 / len(parts)
    totals = {part: Counts() for part in parts}
    context = multiprocessing.get_context("spawn")
    for part in parts:
        with ProcessPoolExecutor(jobs, context) as pool:
            asked = {}
            for job in range(jobs):
                own = folder / f"{part}-{seed}-{job}"
                asked[pool.submit(run, part, kinds, seconds, seed * 1000 + job, own)] = job
            for done in as_completed(asked):
                try:
                    totals[part].merge(done.result())
                except BrokenProcessPool:
                    text = f"a process of {part} died (seed {seed}, job {asked[done]})"
                    totals[part].different.append(text)
    return totals


def show(part: str, counts: Counts) -> None:
    print(
        f"\n{part}: {counts.cases} cases, {counts.equal.total()} equal, "
        f"{counts.refused.total()} refused, "
        f"{counts.without_reference.total()} without a reference runtime, "
        f"{len(counts.different)} different"
    )
    print("\n| kind | equal |\n|---|---|")
    for kind, number in sorted(counts.equal.items()):
        print(f"| {kind} | {number} |")
    if counts.covered:
        print("\n| in equal cases | cases |\n|---|---|")
        for kind, number in sorted(counts.covered.items()):
            print(f"| {kind} | {number} |")
    for title, reasons in (
        ("refused", counts.refused),
        ("no reference runtime", counts.without_reference),
    ):
        if reasons:
            print(f"\n| {title} | cases |\n|---|---|")
            for reason, number in reasons.most_common():
                print(f"| {reason} | {number} |")
    for line in counts.different:
        print(f"DIFFERENT {line}")


def as_json(counts: Counts) -> dict[str, object]:
    return {
        "cases": counts.cases,
        "equal": dict(counts.equal),
        "covered": dict(counts.covered),
        "refused": dict(counts.refused),
        "no_reference_runtime": dict(counts.without_reference),
        "different": counts.different,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--part", default=",".join(PARTS))
    parser.add_argument("--kind", default="", help="operators alone, by their kinds")
    parser.add_argument("--save", type=Path, default=Path("conformance_failures"))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    parts = arguments.part.split(",")
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        parser.error(f"--part {','.join(unknown)}: there are {', '.join(PARTS)}")
    kinds = [kind for kind in arguments.kind.split(",") if kind]
    parts = ["operators"] if kinds else parts
    print(f"seed {arguments.seed}", flush=True)
    totals = drawn(parts, kinds, arguments.minutes, arguments.jobs, arguments.seed, arguments.save)
    for part, counts in totals.items():
        show(part, counts)
    if arguments.json:
        arguments.json.write_text(json.dumps({p: as_json(c) for p, c in totals.items()}, indent=1))
    differences = Counter({part: len(counts.different) for part, counts in totals.items()})
    sys.exit(1 if differences.total() else 0)


if __name__ == "__main__":
    main()
