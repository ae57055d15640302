"""The claims about the best build for a board, and about the least memory without a board."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from tvm_serenity.boards import Board
from tvm_serenity.explain.claims import Claim, counted
from tvm_serenity.explain.measures import Measure
from tvm_serenity.schedule import Schedule
from tvm_serenity.search.outcome import Outcome
from tvm_serenity.system.times import range_text

BUILD, LEAST, ALONE, COMMAND = "build", "least", "alone", "command"
"""The kinds of the claims: the best build, the least memory, ordering alone, the command."""


def build_claims(model: str, board: Board, found: Mapping[str, Any], spec: str) -> list[Claim]:
    """Return the claims about the best build of ``model`` for ``board``, and its command.

    ``found``: the search as JSON (``fitting.best``). ``spec``: the board as the user named it.
    """
    build = found["build"]
    code = "with code" if build["linked"] else "without code, which no compiler here measures"
    sizes = (
        f"{build['ram_bytes']:,} of {board.ram_bytes:,} bytes of RAM, stack included, and "
        f"{build['flash_bytes']:,} of {board.flash_bytes:,} of flash, {code}"
    )
    strategy = build["strategy"]
    if found["fits"]:
        text = f"The best build fits {board.title}: {time_text(build)}{sizes} ({strategy})."
        words = ["serenity", "build", model, "--board", spec, "-o", folder_of(model)]
        return [Claim(BUILD, text, dict(found)), _command("Build it", words)]
    short = ", ".join(found["short"]) or "a limit"
    text = (
        f"No build fits {board.title}: the one with the least RAM ({strategy}) takes {sizes}; "
        f"{short} short."
    )
    words = ["serenity", "boards", "--fits", model]
    return [Claim(BUILD, text, dict(found)), _command("Boards that it fits", words)]


def time_text(build: Mapping[str, Any]) -> str:
    """Return the time of one run in words with a comma, or "" for a build that was not timed."""
    if build["milliseconds"] is not None:
        return f"{range_text(*build['milliseconds'])} ms, "
    if build["instructions"] is not None:
        return f"{build['instructions']:,} instructions, "
    return ""


def unbuilt_claim(board: Board, reason: str) -> Claim:
    """Return the claim that no build for ``board`` was searched, and why."""
    return Claim(BUILD, f"No build for {board.title}: {reason}.", {"reason": reason})


def least_claims(
    model: str, given_ops: int, best: Schedule, measures: Sequence[Measure], built: bool
) -> list[Claim]:
    """Return the claims about the least memory of ``model``, its price in time, and its command.

    ``given_ops``: operators of the network. ``best``: the best order alone. ``built``: whether
    ``serenity build`` takes the model; else the command is that of the measure.
    """
    least = min(measures, key=lambda m: (m.peak_bytes, m.ops), default=None)
    alone = _alone(best)
    if least is None or least.peak_bytes >= best.peak_bytes:
        text = f"Least memory: {counted(best.peak_bytes)}, by the order alone."
        numbers: dict[str, Any] = {"peak_bytes": best.peak_bytes, "best": None, "calls": given_ops}
        words = ["serenity", "schedule", model]
        return [Claim(LEAST, text, numbers), alone, _way(model, words, built)]
    less = 1 - least.peak_bytes / best.peak_bytes
    price = "no more kernel calls"
    if least.ops > given_ops:
        price = f"{least.ops:,} kernel calls instead of {given_ops:,}, nothing computed twice"
    text = (
        f"Least memory: {counted(least.peak_bytes)}, {less:.1%} below the best order, by "
        f"{least.how}; price in time: {price}."
    )
    numbers = {"peak_bytes": least.peak_bytes, "best": least.name, "calls": least.ops}
    first, *options = least.how.split()
    words = ["serenity", first, model, *options]
    return [Claim(LEAST, text, numbers), alone, _way(model, words, built)]


def _alone(best: Schedule) -> Claim:
    proof = "proved optimal" if best.outcome is Outcome.OPTIMAL else "not proved optimal"
    text = f"Ordering alone: {counted(best.peak_bytes)}, {proof}."
    return Claim(ALONE, text, {"peak_bytes": best.peak_bytes, "outcome": str(best.outcome)})


def _way(model: str, words: list[str], built: bool) -> Claim:
    if not built:
        return _command("See it", words)
    build = ["serenity", "build", model, "--board", "BOARD", "--minimise", "ram"]
    return _command("Build it", [*build, "-o", folder_of(model)])


def _command(label: str, words: Sequence[str]) -> Claim:
    command = shlex.join(words)
    return Claim(COMMAND, f"{label}: {command}", {"command": command})


def folder_of(model: str) -> str:
    """Return a folder's name for the project of ``model``."""
    return PurePath(model.partition(":")[2] or model).stem.partition("?")[0]
