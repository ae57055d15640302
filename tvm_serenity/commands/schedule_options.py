"""The options of ``schedule``."""

from collections.abc import Mapping
from dataclasses import dataclass

from tvm_serenity.commands.meaning import Meaning
from tvm_serenity.onnx_session import LEVELS
from tvm_serenity.options.checks import Check
from tvm_serenity.options.memory import ALIGN, RewritingBy
from tvm_serenity.options.model import OpaqueOptions, ReadOptions
from tvm_serenity.options.option import (
    Conflict,
    HelpGroup,
    Need,
    Option,
    described,
    differing,
    option,
)
from tvm_serenity.options.output import OUTPUT
from tvm_serenity.options.speed import MemoryLimit, TimeLimit
from tvm_serenity.schedule import METHODS

PEAK, ARENA = "peak", "arena"
PLANS = ("tflm",)

_REWRITTEN = "a model file cannot contain rewritten operators; compile --rewrite runs them"
_BY_RUNTIME = "the runtime optimises the file before it is ordered"
_OWN_SEARCH = "rewriting orders the network itself"
_FOR_RUNTIME = Conflict("runtime", _BY_RUNTIME)
_FOR_REWRITING = Conflict("rewrite", _OWN_SEARCH)


@dataclass(frozen=True, kw_only=True)
class ScheduleOptions(
    ReadOptions, OpaqueOptions, Meaning, RewritingBy, TimeLimit, MemoryLimit, Check
):
    """The options of ``schedule``.

    * ``output``: the file of the reordered model. ``certificate``: the file that ``check``
      verifies. ``plan``: "tflm" writes an offline plan for TFLM into the model. ``runtime``: write
      a file that onnxruntime runs in the best order.
    * ``method``: a search in ``METHODS``. ``objective``: minimise "peak", or "arena" (order and
      placement). ``align``: alignment of each tensor in the arena.
    """

    opaque: Mapping[str, int] = option(
        {},
        differing(described(OpaqueOptions, "opaque"), conflicts=(_FOR_RUNTIME, _FOR_REWRITING)),
    )
    memory_limit_bytes: int | None = option(
        None,
        differing(described(MemoryLimit, "memory_limit_bytes"), conflicts=(_FOR_REWRITING,)),
    )
    output: str | None = option(
        None,
        differing(
            OUTPUT,
            help="Write the reordered model here.",
            conflicts=(Conflict("rewrite", _REWRITTEN),),
        ),
    )
    method: str = option(
        "auto",
        Option(
            flag="--method",
            help="Search for the order.",
            group=HelpGroup.SPEED,
            choices=tuple(METHODS),
            metavar="METHOD",
            conflicts=(_FOR_REWRITING,),
        ),
    )
    objective: str = option(
        PEAK,
        Option(
            flag="--objective",
            help="Minimise the peak, or the arena (order and placement together).",
            group=HelpGroup.MEMORY,
            choices=(PEAK, ARENA),
            conflicts=(_FOR_RUNTIME, _FOR_REWRITING),
        ),
    )
    certificate: str | None = option(
        None,
        Option(
            flag="--certificate",
            help="Write a certificate, which serenity check verifies.",
            metavar="FILE.json",
            conflicts=(_FOR_RUNTIME, _FOR_REWRITING),
        ),
    )
    align: int = option(1, differing(ALIGN, conflicts=(_FOR_RUNTIME,)))
    plan: str | None = option(
        None,
        Option(
            flag="--plan",
            help="With -o: write an offline plan for TFLM into the file.",
            choices=PLANS,
            conflicts=(_FOR_RUNTIME, Conflict("rewrite", _REWRITTEN)),
        ),
    )
    runtime: str | None = option(
        None,
        Option(
            flag="--for",
            help="With -o: write a file that this runtime runs in the best order.",
            choices=tuple(LEVELS),
            conflicts=(Conflict("rewrite", _REWRITTEN),),
            needs=(Need("output", "it writes a file"),),
        ),
    )
