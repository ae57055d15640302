"""Measure the faster forms of kernels that come with the library, and write them.

    python benchmarks/shipped_kernels.py [--target T] [--trials N] [MODEL ...]

Writes ``tvm_serenity/kernels/measured_kernels.json`` model by model, for the class of the target,
and prints a row for each: networks of the zoo and the models of MLPerf Tiny, by default. A form is
kept where

1. ``serenity tune`` finds that it takes at most 0.95 of the usual one's time, and so do ``AGAIN``
   further measurements, each in alternation and of a build of its own;
2. all calls of it save at least ``LEAST_SHARE`` of the network's time;
3. the network as a whole is faster with all of these forms: runs in turns take at most ``WHOLE``
   of its time, by the least and by the median of turns, two times. Else none of them is kept.

What the file held of a model's kernels before is measured anew.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
DATA = ROOT.parent / "shared" / "data" / "models" / "mlperf_tiny"
FILE = ROOT / "tvm_serenity" / "kernels" / "measured_kernels.json"
ZOO = (
    "zoo:swiftnet",
    "zoo:darts-normal-cell",
    "zoo:nasnet-cell",
    "zoo:amoebanet-cell",
    "zoo:randwire",
    "zoo:mobilenet-v2?size=96",
)
AGAIN = 2
LEAST_SHARE = 0.005
WHOLE = 0.985
"""The share of its time that a network may take at most with faster kernels."""
ROUNDS, LEAST_S = 15, 0.03
"""Turns of a network, and the seconds of each."""


def kept(made: Any, trials: int) -> dict[str, Any]:
    """Return the forms of kernels that won every time, by key."""
    from tvm_serenity.kernels.measured import Measured, key_of
    from tvm_serenity.tuning.tune import distinct, raced, tune

    found = {one.key: one.measured for one in tune(made, trials)}
    by_key = {key_of(case.reference): case for case in distinct(made)}
    for _ in range(AGAIN):
        for key in [key for key, one in found.items() if one.forms]:
            tiles = [form.tile for form in found[key].forms]
            again = raced(by_key[key], tiles, made.target)
            won = {form.tile: form for form in again.forms}
            forms = tuple(won[tile] for tile in tiles if tile in won)
            found[key] = Measured(again.seconds, forms)
    return {key: one for key, one in found.items() if one.forms}


def worth(made: Any, found: Mapping[str, Any], whole: float) -> dict[str, Any]:
    """Return the kernels whose calls save some of the network's time."""
    from tvm_serenity import compat
    from tvm_serenity.kernels.measured import key_of
    from tvm_serenity.relax.read import read_function

    saved: dict[str, float] = {}
    region = read_function(made.plain, workspace=False)
    for index in region.run:
        name = compat.called_kernel(region.bindings[index].value)
        if name is None:
            continue
        key = key_of(made.plain[name])
        if key in found:
            fastest = min(form.seconds for form in found[key].forms)
            saved[key] = saved.get(key, 0.0) + found[key].seconds - fastest
    return {key: found[key] for key, less in saved.items() if less >= LEAST_SHARE * whole}


def machines(builds: list[Any], inputs: list[Any]) -> list[Any]:
    """Return a function that runs each build once."""
    import tvm
    from tvm import relax

    from tvm_serenity.runtime.pipeline import serenity_pipeline

    given = [tvm.runtime.tensor(array) for array in inputs]
    made = []
    for build in builds:
        pipeline = serenity_pipeline()
        executable = tvm.compile(build.kernels, build.target, relax_pipeline=pipeline)
        main = relax.VirtualMachine(executable, tvm.cpu())["main"]
        made.append(lambda main=main: main(*given))
    return made


def in_turns(runs: list[Any]) -> list[float]:
    """Return the seconds of a run of each, with the care of ``tuning.alternation``."""
    from tvm_serenity.tuning.alternation import careful

    turns: list[list[float]] = [[] for _ in runs]
    for _ in range(ROUNDS):
        for run, taken in zip(runs, turns, strict=True):
            run()
            end, each = time.perf_counter() + LEAST_S, []
            while time.perf_counter() < end:
                began = time.perf_counter()
                run()
                each.append(time.perf_counter() - began)
            taken.append(statistics.median(each))
    return [careful(turns[0], taken) for taken in turns]


def row(model: str, target: Any, trials: int, folder: Path) -> None:
    """Measure one model, print its row, and write what is kept."""
    from dataclasses import replace

    from tvm_serenity.commands.models import source
    from tvm_serenity.kernels import measured
    from tvm_serenity.relax.pipeline import Steps, prepared_for_host
    from tvm_serenity.tuning.tune import distinct
    from tvm_serenity.validation.network_inputs import random_inputs

    opened = source(model if model.startswith("zoo:") else str(DATA / model))
    inputs = random_inputs(opened.module("off"))
    usual = prepared_for_host(opened.module(), Steps(measured=measured.NONE), target)
    alone = in_turns(machines([usual], inputs))
    won = kept(usual, trials)
    found = worth(usual, won, alone[0])
    ratios, before, after = [1.0], alone[0], alone[0]
    if found:
        file = folder / "candidates.json"
        file.unlink(missing_ok=True)
        measured.write(found, measured.class_of(target), file)
        faster = replace(usual, steps=replace(usual.steps, measured=str(file)))
        taken = {one.kernel for one in faster.chosen if one.taken}
        runs = machines([usual, faster], inputs)
        pairs = [in_turns(runs) for _ in range(2)]
        ratios = [b / a for a, b in pairs]
        before, after = (min(times) for times in zip(*pairs, strict=True))
        print(f"  {model}: {', '.join(sorted(taken))}: {ratios}", file=sys.stderr)
    good = bool(found) and max(ratios) <= WHOLE
    known = measured.read(FILE)
    held = known.setdefault(measured.class_of(target), {})
    for case in distinct(usual):
        held.pop(measured.key_of(case.reference), None)
    held.update(found if good else {})
    FILE.write_text(measured.text_of({k: v for k, v in known.items() if v}), encoding="utf-8")
    count = len(found) if good else 0
    print(
        f"| {Path(model).name} | {measured.class_of(target)} | {len(won)} | {len(found)} | "
        f"{before * 1e3:.4f} | {after * 1e3:.4f} | {max(ratios):.3f} | {count} |",
        flush=True,
    )


def main() -> None:
    """Print the table and write the file."""
    import tempfile

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    tiny = sorted(path.name for path in DATA.iterdir())
    parser.add_argument("models", nargs="*", default=[*tiny, *ZOO])
    parser.add_argument("--target", default="native")
    parser.add_argument("--trials", type=int, default=16)
    given = parser.parse_args()
    from tvm_serenity.tvm_targets import target_of

    print(
        "| model | class | kernels with a faster form | worth it | ms as it is | ms with them | "
        "ratio | kept |\n|" + "---|" * 8
    )
    with tempfile.TemporaryDirectory() as folder:
        for model in given.models:
            row(model, target_of(given.target), given.trials, Path(folder))


if __name__ == "__main__":
    main()
