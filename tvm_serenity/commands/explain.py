"""``explain``: the cause of the peak, and the measures that lower it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm_serenity.boards import board as board_of
from tvm_serenity.commands.best_build import BoardOptions, Question, question
from tvm_serenity.commands.meaning import Meaning
from tvm_serenity.commands.models import ModelSource, source
from tvm_serenity.commands.progress import Progress, silent
from tvm_serenity.commands.rewrite import rewrite_input, rewritten_or_ordered
from tvm_serenity.errors import SerenityError
from tvm_serenity.explain import (
    Claim,
    Measure,
    build_claims,
    fit_claims,
    least_claims,
    measure_claims,
    measures_of,
    peak_claims,
)
from tvm_serenity.explain.channels import channels_claim
from tvm_serenity.explain.claims import no_time
from tvm_serenity.explain.measures import measure
from tvm_serenity.explain.memories import memories_claims
from tvm_serenity.explain.rows import FinestBands, finest_bands, floor_claims, rows_measure
from tvm_serenity.explain.signatures import signature_claims
from tvm_serenity.explain.states import state_claims
from tvm_serenity.frontends.formats import compiles
from tvm_serenity.graph import Graph
from tvm_serenity.options.option import values_of
from tvm_serenity.rewrite import RewriteOptions, Rewritten, Unrewritten
from tvm_serenity.schedule import Options, Schedule, schedule
from tvm_serenity.search.deadline import leaving, within
from tvm_serenity.system import cache, sources

INTEGERS = ("int8", "uint8", "int16")
CLAIMS_S = 3e-6
"""Seconds per operator for the claims about a peak, which a time limit cannot interrupt."""


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(BoardOptions):
    """The options of ``explain``."""


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
    target = None if options.target is None else board_of(options.target)
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
            with within(None, 1 / 2), tell("trying measures against the peak"):
                bands = finest_bands(file, limit)
                tried = all_measures(graph, bands, rewritten, limit)
            with tell("bounding bands of rows"):
                floors = [] if isinstance(bands, Claim) else floor_claims(bands, limit)
            asked = question(opened, options, target, tell)
        claims = claims_of(asked, graph, found, tried)
    entries = [*state_claims(graph), *signature_claims(file)]
    return Explained(model, graph, options.target, [*claims, *floors, *channels, *entries])


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
    graph: Graph,
    bands: FinestBands | Claim,
    rewritten: Rewritten | Unrewritten,
    time_limit: float | None,
) -> list[Measure | Claim]:
    """Return the peak of the best order under each measure; a claim for each untried measure."""
    rows = bands if isinstance(bands, Claim) else rows_measure(bands)
    return [*measures_of(graph, time_limit), _rewriting(rewritten), rows]


def _rewriting(found: Rewritten | Unrewritten) -> Measure | Claim:
    if isinstance(found, Unrewritten):
        return no_time("Rewriting (rewrite)")
    words = f"Rewriting ({len(found.report.applied)} applied)"
    return measure("rewriting", "rewrite", words, found.best)


def claims_of(
    asked: Question, graph: Graph, found: Schedule, tried: Sequence[Measure | Claim]
) -> list[Claim]:
    """Return the claims about the best build or the least memory, then those about the peak."""
    measures = [m for m in tried if isinstance(m, Measure)]
    untried = [m for m in tried if isinstance(m, Claim)]
    head = _headline(asked, graph, found, measures)
    peak = [*peak_claims(graph, found), *measure_claims(found.peak_bytes, measures)]
    return [*head, *peak, *untried]


def _headline(
    asked: Question, graph: Graph, found: Schedule, measures: Sequence[Measure]
) -> list[Claim]:
    """Return the result, what ordering alone gives, and the command that builds the result."""
    if asked.board is None:
        return least_claims(asked.model, len(graph.ops), found, measures, asked.built)
    alone = fit_claims(asked.board, graph, found, measures)
    if isinstance(asked.best, Claim):
        return [asked.best, *alone, *_streamed(asked, graph, found)]
    assert asked.best is not None
    best, command = build_claims(asked.model, asked.board, asked.best, asked.spec)
    if asked.best["fits"]:
        alone = alone[:1]  # what does not fit by ordering alone is no obstacle
    return [best, *alone, command, *_streamed(asked, graph, found)]


def _streamed(asked: Question, graph: Graph, found: Schedule) -> list[Claim]:
    """Return the claim about both memories of a board that has two."""
    if asked.board is None or not asked.built:
        return []
    return memories_claims(asked.model, asked.board, asked.spec, graph, found.order)


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
