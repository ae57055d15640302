"""``serenity explain``: why the peak is where it is, and what would lower it."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from tvm_serenity.boards import Board
from tvm_serenity.boards import board as board_of
from tvm_serenity.cli import app, show
from tvm_serenity.cli.models import ModelSource, part, source
from tvm_serenity.cli.options import Alias, Dims, Fold, InPlace, Json, Model, Signature, TimeLimit
from tvm_serenity.cli.reduce import meaning
from tvm_serenity.cli.rewrite import found_of, unread
from tvm_serenity.deadline import leaving, within
from tvm_serenity.errors import SerenityError
from tvm_serenity.explain import (
    Claim,
    Measure,
    fit_claims,
    measure_claims,
    measures_of,
    peak_claims,
)
from tvm_serenity.explain.channels import channels_claim
from tvm_serenity.explain.claims import no_time
from tvm_serenity.explain.measures import measure
from tvm_serenity.explain.rows import floor_claims, rows_measure
from tvm_serenity.explain.signatures import SIGNATURES, signature_claims
from tvm_serenity.frontends.model_file import ModelFile
from tvm_serenity.frontends.text_file import TextFile
from tvm_serenity.graph import Graph
from tvm_serenity.rewrite import RewriteOptions, Rewritten, Unrewritten
from tvm_serenity.schedule import Options, Schedule, schedule

BoardName = Annotated[
    str | None, typer.Option("--board", metavar="NAME", help="A board, or a .toml file: fits it?")
]
INTEGERS = ("int8", "uint8", "int16")
CLAIMS_S = 3e-6
"""Seconds an operator that claims about a peak take, which no limit can cut short."""
HEADINGS = {
    SIGNATURES: "What is read",
    "peak": "Where the peak is",
    "order": "Where the peak is",
    "bound": "What no order can change",
    "measure": "What would lower it",
    "refused": "What would lower it",
    "rows-floor": "Where bands of rows stop",
    "verdict": "So",
    "channels": "What need not be computed",
    "ram": "On the board",
    "flash": "On the board",
    "conflict": "On the board",
    "way-out": "On the board",
}


@app.command("explain")
def explain_command(
    model: Model,
    board: BoardName = None,
    time_limit: TimeLimit = None,
    alias_copies: Alias = False,
    fold_concat: Fold = False,
    in_place: InPlace = False,
    dim: Dims = None,
    signature: Signature = None,
    json: Json = False,
) -> None:
    """Say why MODEL's peak is where it is, and what would lower it.

    Every claim is computed: the best order and its proof, elementwise operators in place, copies
    as views, folded concats, rewriting, operators split into bands of rows, and what is left at the
    peak where bands stop helping. With --board, whether
    the network fits it, and if not, which tensors stand in the way. Of a quantised file, also which
    channels are constant or not read.

    [dim]Examples[/dim]
      serenity explain model.tflite
      serenity explain zoo:swiftnet --board nucleo-f767zi
    """
    target = None if board is None else board_of(board)
    opened = source(model, part(dim, signature))
    choices = meaning(alias_copies, fold_concat, in_place, None)
    file = opened.file()
    graph = choices.apply(file.graph).graph
    show.warn_without_core()
    with show.progress("reading channels"):
        channels = channel_claims(opened)
    with within(time_limit):
        with leaving(CLAIMS_S * len(graph.ops)):
            with within(None, 1 / 3), show.progress(f"ordering {len(graph.ops)} ops") as report:
                found = schedule(graph, "auto", Options(progress=report))
            with within(None, 1 / 3), show.progress("rewriting"):
                rewritten = found_of(unread(opened), RewriteOptions())
            with within(None, 1 / 2):
                tried = all_measures(graph, file, rewritten, time_limit)
            with show.progress("bounding bands of rows"):
                floors = floor_claims(file, time_limit)
        entries = signature_claims(file)
        claims = [*entries, *claims_of(graph, found, tried, target), *floors, *channels]
    if json:
        show.print_json(explain_json(model, graph, board, claims))
        return
    _print(model, claims)


def explain_json(
    model: str, graph: Graph, board: str | None, claims: Sequence[Claim]
) -> dict[str, Any]:
    """Return what JSON says of the claims about a model."""
    return {
        "model": model,
        "ops": len(graph.ops),
        "board": board,
        "claims": [claim.json() for claim in claims],
    }


def all_measures(
    graph: Graph, file: ModelFile, rewritten: Rewritten | Unrewritten, time_limit: float | None
) -> list[Measure | Claim]:
    """Return what every measure makes of a model's best order; a claim for one not tried."""
    return [
        *measures_of(graph, time_limit),
        _rewriting(rewritten),
        rows_measure(file, time_limit),
    ]


def _rewriting(found: Rewritten | Unrewritten) -> Measure | Claim:
    if isinstance(found, Unrewritten):
        return no_time("Rewriting (rewrite)")
    words = f"Rewriting ({len(found.report.applied)} applied)"
    return measure("rewriting", "rewrite", words, found.best)


def claims_of(
    graph: Graph, found: Schedule, tried: Sequence[Measure | Claim], board: Board | None
) -> list[Claim]:
    """Return the claims about a model's peak, and about a board where one is given."""
    measures = [m for m in tried if isinstance(m, Measure)]
    untried = [m for m in tried if isinstance(m, Claim)]
    claims = peak_claims(graph, found)
    *said, verdict = measure_claims(found.peak_bytes, measures)
    claims += [*said, *untried, verdict]
    return claims if board is None else [*claims, *fit_claims(board, graph, found, measures)]


def channel_claims(opened: ModelSource) -> list[Claim]:
    """Return how many channels of a quantised file need not be computed, in all and by layer.

    None of a model without integer layers; why, where it has no meaning as a module.
    """
    if opened.is_zoo or isinstance(opened.file(), TextFile):
        return []
    if not any(t.dtype in INTEGERS for t in opened.file().graph.tensors):
        return []
    from tvm_serenity.relax.pipeline import folded_channels  # TVM takes seconds to import

    try:
        found = folded_channels(opened.module())
    except SerenityError as error:
        reason = str(error)
        return [Claim("channels", f"Channels were not looked at: {reason}.", {"reason": reason})]
    if not found.channels:
        return []
    return [channels_claim(found.channels, found.gone, found.tensors)]


def _print(model: str, claims: list[Claim]) -> None:
    show.console.print(f"{model}", style="bold", markup=False)
    heading = ""
    for claim in claims:
        if HEADINGS[claim.kind] != heading:
            heading = HEADINGS[claim.kind]
            show.console.print(f"\n{heading}", style="bold cyan", markup=False)
        show.console.print(f"  {claim.text}", markup=False, soft_wrap=not show.console.is_terminal)
