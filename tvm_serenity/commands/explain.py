"""``explain``: the cause of the peak, and the measures that lower it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm_serenity.boards import Board
from tvm_serenity.boards import board as board_of
from tvm_serenity.commands.meaning import Meaning
from tvm_serenity.commands.models import ModelSource, source
from tvm_serenity.commands.progress import Progress, silent
from tvm_serenity.commands.rewrite import rewrite_input, rewritten_or_ordered
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
from tvm_serenity.explain.signatures import signature_claims
from tvm_serenity.frontends.formats import compiles
from tvm_serenity.frontends.model_file import ModelFile
from tvm_serenity.graph import Graph
from tvm_serenity.options.memory import Views
from tvm_serenity.options.model import ReadOptions
from tvm_serenity.options.option import HelpGroup, Option, option, values_of
from tvm_serenity.options.speed import TimeLimit
from tvm_serenity.rewrite import RewriteOptions, Rewritten, Unrewritten
from tvm_serenity.schedule import Options, Schedule, schedule
from tvm_serenity.search.deadline import leaving, within
from tvm_serenity.system import cache, sources

BOARD = Option(
    flag="--board",
    help="Check the fit on this board (name or .toml file).",
    group=HelpGroup.MEMORY,
    metavar="NAME",
)
INTEGERS = ("int8", "uint8", "int16")
CLAIMS_S = 3e-6
"""Seconds per operator for the claims about a peak, which a time limit cannot interrupt."""


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(ReadOptions, Views, TimeLimit):
    """The options of ``explain``; ``board``: check whether the network fits, and why not."""

    board: str | None = option(None, BOARD)


@dataclass(frozen=True)
class Explained:
    """All claims about the peak of a model."""

    model: str
    graph: Graph
    board: str | None
    claims: Sequence[Claim]

    def json(self) -> dict[str, Any]:
        """Return the result as ``--json`` prints it."""
        return explain_json(self.model, self.graph, self.board, self.claims)


def explain(
    model: str, options: ExplainOptions | None = None, tell: Progress = silent
) -> Explained:
    """Return the computed claims about the peak of a model and about measures that lower it."""
    options = options or ExplainOptions()
    target = None if options.board is None else board_of(options.board)
    opened, limit = source(model, options), options.time_limit_s
    file = opened.file()
    graph = Meaning(**values_of(options, Meaning)).apply(file.graph).graph
    with tell("reading channels"):
        channels = channel_claims(opened)
    with within(limit):
        with leaving(CLAIMS_S * len(graph.ops)):
            with within(None, 1 / 3), tell(f"ordering {len(graph.ops)} ops") as line:
                found = schedule(graph, "auto", Options(progress=line))
            with within(None, 1 / 3), tell("rewriting"):
                rewritten = rewritten_or_ordered(rewrite_input(opened), RewriteOptions())
            with within(None, 1 / 2):
                tried = all_measures(graph, file, rewritten, limit)
            with tell("bounding bands of rows"):
                floors = floor_claims(file, limit)
        entries = signature_claims(file)
        claims = [*entries, *claims_of(graph, found, tried, target), *floors, *channels]
    return Explained(model, graph, options.board, claims)


def explain_json(
    model: str, graph: Graph, board: str | None, claims: Sequence[Claim]
) -> dict[str, Any]:
    """Return the claims about a model as ``--json`` prints them."""
    return {
        "model": model,
        "ops": len(graph.ops),
        "board": board,
        "claims": [claim.json() for claim in claims],
    }


def all_measures(
    graph: Graph, file: ModelFile, rewritten: Rewritten | Unrewritten, time_limit: float | None
) -> list[Measure | Claim]:
    """Return the peak of the best order under each measure; a claim for each untried measure."""
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
    """Return the claims about the peak of a model; with ``board`` also those about its fit."""
    measures = [m for m in tried if isinstance(m, Measure)]
    untried = [m for m in tried if isinstance(m, Claim)]
    claims = peak_claims(graph, found)
    *said, verdict = measure_claims(found.peak_bytes, measures)
    claims += [*said, *untried, verdict]
    return claims if board is None else [*claims, *fit_claims(board, graph, found, measures)]


def channel_claims(opened: ModelSource) -> list[Claim]:
    """Return the claim about channels of a quantised file that are constant or unread.

    A model without integer layers has no such claim. If the model cannot be read as a Relax module,
    the claim states the reason.
    """
    if opened.is_zoo or not compiles(opened.file()):
        return []
    if not any(t.dtype in INTEGERS for t in opened.file().graph.tensors):
        return []
    try:
        kept = cache.remembered(_channels_name(opened), lambda: _channels_json(opened))
    except SerenityError as error:
        reason = str(error)
        return [Claim("channels", f"Channels were not analysed: {reason}.", {"reason": reason})]
    channels, gone, tensors = json.loads(kept)
    return [channels_claim(channels, gone, tensors)] if channels else []


def _channels_name(opened: ModelSource) -> str:
    """Return the cache key of the channels of a file; the import of TVM takes a second."""
    file = opened.file()
    beside = [file.path.parent / name for name in getattr(file, "data_files", ())]
    read = [path.read_bytes() for path in (file.path, *beside)]
    how = str(file.path), repr(dict(opened.dims)), repr(opened.signature)
    made_by = sources.own_digest(), sources.versions("apache-tvm", "tflite", "onnx", "torch")
    return cache.key("channels", *made_by, *how, *read)


def _channels_json(opened: ModelSource) -> bytes:
    """Return the number of channels, of skipped channels, and those of each tensor, as JSON."""
    from tvm_serenity.relax.pipeline import folded_channels  # TVM takes a second to import

    found = folded_channels(opened.module())
    return json.dumps([found.channels, found.gone, found.tensors]).encode()
