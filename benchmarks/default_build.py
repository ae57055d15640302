"""The default ``serenity build`` beside the best of all combinations of its options.

    python benchmarks/default_build.py [--models DIR] [--boards NAMES] [--resume FILE] [NAME ...]

For each model and board: the build that the search takes for time and the one it takes for RAM, and
the best of every combination of options that it chooses from (unsplit strategies, workspace,
constants, bands of rows with and without overlap), each linked and timed as ``serenity latency``
does. A row says how much slower, and how much larger where RAM is the goal, the search's build is.
Finished pairs are kept in FILE. Exit status 1 if one is more than 1 % slower, or larger.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import inf
from pathlib import Path
from typing import Any

from tvm_serenity.boards import Board, board
from tvm_serenity.errors import InputError, SerenityError, UnsupportedError
from tvm_serenity.firmware import Settings
from tvm_serenity.firmware.board.fit import constants_fit
from tvm_serenity.firmware.compile.driver import NetworkCompiler
from tvm_serenity.firmware.compile.fallback import strategies
from tvm_serenity.firmware.compile.model import opened
from tvm_serenity.fitting.candidates import BuildCandidate, coarsest_rows, unsplit_as
from tvm_serenity.fitting.choose import best_of
from tvm_serenity.fitting.goal import FitGoal
from tvm_serenity.fitting.measure import BuildFigures, all_linked, timed
from tvm_serenity.fitting.search import fitted
from tvm_serenity.options.goal import RAM, TIME
from tvm_serenity.options.memory import CONSTANTS
from tvm_serenity.options.speed import WORKSPACES
from tvm_serenity.rows.choose import Choice
from tvm_serenity.rows.limits import Limits
from tvm_serenity.rows.split import heights_of
from tvm_serenity.rows.stream import stream

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "models"
NAMES = (
    *("mlperf_tiny/ad01_int8", "mlperf_tiny/kws_dscnn_int8", "mlperf_tiny/sww_streaming_int8"),
    *("mlperf_tiny/ic_resnet8_int8", "mlperf_tiny/vww_mobilenetv1_96_int8"),
)
BOARDS = (
    *("nucleo-l4r5zi", "nucleo-f767zi", "nucleo-h743zi", "rpi-pico", "nrf52840-dk", "microbit"),
    *("mps3-an547", "cortex-m4:64K:512K"),
)
BANDS_SECONDS = 2.0
"""Time limit of each search for bands, of the combinations."""
SLOWER, LARGER = 1.01, 1.0


def combinations(maker: NetworkCompiler) -> Iterator[BuildCandidate]:
    """Yield a build for each combination of options."""
    for way, workspace, constants in product(strategies(maker), WORKSPACES, CONSTANTS):
        yield unsplit_as(maker, way, workspace=workspace, constants=constants)
    for workspace, overlap in product(WORKSPACES, (False, True)):
        settings = replace(maker.settings, workspace=workspace)
        rows = NetworkCompiler(maker.module, maker.name, maker.board, settings)
        rows.known.update(maker.known)
        try:
            yield coarsest_rows(rows, False, Limits(BANDS_SECONDS), overlap=overlap)
            network = rows.rows(overlap).network
            finest = stream(network, heights_of(network, 1), limits=Limits(BANDS_SECONDS))
            made = rows.in_bands(Choice(finest, True, (finest,)), overlap)
            yield BuildCandidate("bands of 1 row", settings, made)
        except (InputError, UnsupportedError):
            return


def distinct(found: Iterator[BuildCandidate]) -> list[BuildCandidate]:
    """Return the builds that fit, one of those with equal programs."""
    kept: dict[str, BuildCandidate] = {}
    for one in found:
        if one.made.placed.fits:
            kept.setdefault(repr(one.made.program), one)
    return list(kept.values())


def best_combination(module: Any, target: Board, name: str) -> tuple[BuildFigures, ...]:
    """Return the fastest and the smallest of all combinations that fit; () if none does."""
    maker = NetworkCompiler(module, name, target, Settings(check=False))
    candidates = distinct(combinations(maker))
    if not candidates or not constants_fit(target, candidates[0].made.program.constant_bytes):
        return ()
    with tempfile.TemporaryDirectory() as folder:
        figures = list(all_linked(candidates, target, Path(folder), 1))
        figures = list(timed(figures, target, Path(folder), 1, 1e6))
    best = [best_of(figures, FitGoal(minimise=goal)) for goal in (TIME, RAM)]
    return tuple(one for one in best if one is not None)


def searched(model: Path, target: Board, goal: FitGoal) -> tuple[BuildFigures | None, float]:
    """Return the build that the search takes, and its CPU seconds with those of compilers."""
    started = sum(os.times()[:4])
    found = fitted(str(model), target, goal, Settings(check=False), every=False)
    return found.chosen, sum(os.times()[:4]) - started


def row(model: Path, target: Board) -> dict[str, Any]:
    """Return the figures of one model on one board."""
    fast, seconds = searched(model, target, FitGoal())
    small, more = searched(model, target, FitGoal(minimise=RAM))
    module = opened(str(model), Settings(check=False)).module
    best = best_combination(module, target, "m")
    said: dict[str, Any] = {"model": model.stem, "board": target.name}
    said["seconds"] = [round(seconds, 1), round(more, 1)]
    for key, one in zip(("fast", "small"), (fast, small), strict=True):
        said[key] = None if one is None else figures(one)
    for key, one in zip(("best_fast", "best_small"), best, strict=False):
        said[key] = figures(one)
    return said


def figures(one: BuildFigures) -> dict[str, Any]:
    run = one.run
    spent = None if run is None else run.milliseconds or (run.middle, run.middle)
    time_ms = None if spent is None else spent[1]
    return {"how": one.strategy, "ram": one.ram_bytes, "flash": one.flash_bytes, "time": time_ms}


def ratio(mine: dict[str, Any] | None, best: dict[str, Any] | None, key: str) -> float:
    """Return mine over the best; infinite if only the combinations have a build."""
    if best is None or best[key] is None:
        return 1.0
    return inf if mine is None or mine[key] is None else float(mine[key] / best[key])


def line(said: dict[str, Any]) -> str:
    """Return a row of the table."""
    if "why_not" in said:
        return f"| {said['model']} | {said['board']} | {said['why_not']} |"
    if said["fast"] is None:
        return f"| {said['model']} | {said['board']} | no build fits |"
    slower = ratio(said["fast"], said.get("best_fast"), "time")
    larger = ratio(said["small"], said.get("best_small"), "ram")
    fast, small, best = said["fast"], said["small"] or {"ram": 0}, said.get("best_fast")
    took = "" if best is None or best["time"] is None else f"{best['time']:,.2f}"
    least = said.get("best_small", {"ram": 0})["ram"]
    mine = "" if fast["time"] is None else f"{fast['time']:,.2f}"
    cells = (
        *(said["model"], said["board"], mine, took, f"{slower:.3f}", f"{fast['ram']:,}"),
        *(f"{small['ram']:,}", f"{least:,}", f"{larger:.3f}", ", ".join(map(str, said["seconds"]))),
    )
    return f"| {' | '.join(cells)} |"


def bad(said: dict[str, Any]) -> bool:
    if "fast" not in said:
        return False
    slower = ratio(said["fast"], said.get("best_fast"), "time")
    return slower > SLOWER or ratio(said["small"], said.get("best_small"), "ram") > LARGER


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", default=list(NAMES))
    parser.add_argument("--models", type=Path, default=DATA)
    parser.add_argument("--boards", default=",".join(BOARDS))
    parser.add_argument("--resume", type=Path, default=Path("default-build.jsonl"))
    asked = parser.parse_args()
    done = {}
    if asked.resume.is_file():
        rows = map(json.loads, asked.resume.read_text().splitlines())
        done = {(said["model"], said["board"]): said for said in rows}
    print(
        "| model | board | ms | best | ratio | RAM | least RAM | best | ratio | CPU s, time, RAM |"
    )
    failed = False
    for name, spec in product(asked.names, asked.boards.split(",")):
        model, target = asked.models / f"{name}.tflite", board(spec)
        key = model.stem, target.name
        if key not in done:
            try:
                done[key] = row(model, target)
            except SerenityError as error:
                done[key] = {"model": key[0], "board": key[1], "why_not": str(error)}
            with asked.resume.open("a") as file:
                file.write(json.dumps(done[key]) + "\n")
        print(line(done[key]), flush=True)
        failed |= bad(done[key])
    sys.exit(failed)


if __name__ == "__main__":
    main()
