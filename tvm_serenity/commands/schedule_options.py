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

_REWRITTEN = "a file cannot hold rewritten operators; compile --rewrite runs them"
_BY_RUNTIME = "the order is that of the file which the runtime has optimised"
_OWN_SEARCH = "rewriting orders the network itself"
_FOR_RUNTIME = Conflict("runtime", _BY_RUNTIME)
_FOR_REWRITING = Conflict("rewrite", _OWN_SEARCH)


@dataclass(frozen=True, kw_only=True)
class ScheduleOptions(
    ReadOptions, OpaqueOptions, Meaning, RewritingBy, TimeLimit, MemoryLimit, Check
):
    """How a model is ordered, and what is written.

    * ``output``: the reordered model. ``certificate``: what ``check`` verifies. ``plan``: "tflm"
      writes TFLM's offline plan into the file. ``runtime``: writes what onnxruntime runs in order.
    * ``method``: of ``METHODS``. ``objective``: least "peak", or "arena" (order and placement).
      ``align``: of every tensor in the arena. All else: as the groups have it.
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
            help="The search for an order.",
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
            help="What is least: the peak, or the arena (order and placement together).",
            group=HelpGroup.MEMORY,
            choices=(PEAK, ARENA),
            conflicts=(_FOR_RUNTIME, _FOR_REWRITING),
        ),
    )
    certificate: str | None = option(
        None,
        Option(
            flag="--certificate",
            help="Write what 'serenity check' verifies.",
            metavar="FILE.json",
            conflicts=(_FOR_RUNTIME, _FOR_REWRITING),
        ),
    )
    align: int = option(1, differing(ALIGN, conflicts=(_FOR_RUNTIME,)))
    plan: str | None = option(
        None,
        Option(
            flag="--plan",
            help="With -o: TFLM's offline plan in the file.",
            choices=PLANS,
            conflicts=(_FOR_RUNTIME, Conflict("rewrite", _REWRITTEN)),
        ),
    )
    runtime: str | None = option(
        None,
        Option(
            flag="--for",
            help="With -o: what it runs in order.",
            choices=tuple(LEVELS),
            conflicts=(Conflict("rewrite", _REWRITTEN),),
            needs=(Need("output", "it writes a file"),),
        ),
    )
