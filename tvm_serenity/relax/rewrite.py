"""SerenityRewrite: exchange subgraphs for identical ones whose best order needs less memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tvm

from tvm_serenity import compat
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.relax.lean_kernels import LeanKernels
from tvm_serenity.relax.read import read_function
from tvm_serenity.relax.rewrite_emit import emit
from tvm_serenity.relax.rewrite_read import prepared, read_net
from tvm_serenity.relax.rows import SerenityRows
from tvm_serenity.rewrite import Options, Rewritten, apply_everywhere, rewrite, rule_names
from tvm_serenity.rewrite.in_place import settle
from tvm_serenity.schedule import Options as Limits
from tvm_serenity.schedule import schedule

ROWS = "rows"
"""The rule that is a pass of its own: ``SerenityRows``."""


@tvm.transform.module_pass(opt_level=0, name="SerenityRewrite")
@dataclass
class SerenityRewrite:
    """Rewrite ``main`` for the least peak of its best order (``docs/rewriting.md``).

    1. A fresh module (high-level operators, static shapes, weights as constants) is read as ops
       of one kernel each: a convolution with its bias and activation, a sum, a pooling.
    2. ``rules`` ("all", "paper", or names with commas) are chosen from for the ``objective``
       within ``time_limit`` seconds; inputs and outputs belong to the caller and do not count.
    3. If that lowers the peak, or needs fewer ops for it, ``main`` is written anew, one lean kernel
       an op, in the best order: sums of partial convolutions in one buffer
       (``call_tir_inplace``), joined operands read in pieces, elementwise ops in place. Else, and
       where TVM's own fusion needs less, the module comes back as it is.

    "rows" among the rules (names with commas, or a list) splits operators into rows, as
    ``SerenityRows``, if no other rule named changed the module.

    Symbolic shapes, control flow, tuples and functions that are lowered already are refused: the
    module comes back as it is. Rules that re-associate sums are exact for integers, and for floats
    up to rounding; all others are bit-identical.
    """

    rules: str | Sequence[str] = "all"
    objective: str = "peak"
    time_limit: float | None = None
    target: Any = None

    def transform_module(self, mod: Any, _context: Any) -> Any:
        """Return the rewritten module."""
        names = self.rules.split(",") if isinstance(self.rules, str) else list(self.rules)
        others = [name for name in names if name.strip() != ROWS]
        made = mod
        if others:
            options = Options(",".join(others), self.objective, self.time_limit)
            made = rewrite_module(mod, options, self.target)[0]
        if len(others) < len(names) and made is mod:
            return SerenityRows(self.time_limit or 10.0, self.target)(mod)
        return made


@dataclass(frozen=True)
class Outcome:
    """What was done to a module: ``found``, or the ``reason`` for which nothing was."""

    found: Rewritten | None
    reason: str = ""


def rewrite_module(
    mod: Any, options: Options | None = None, target: Any = None
) -> tuple[Any, Outcome]:
    """Return ``mod`` rewritten, or ``mod`` itself where nothing is gained, and what was done."""
    options = options or Options()
    rule_names(options.rules)
    target = compat.current_target() if target is None else tvm.target.Target(target)
    try:
        reading = read_net(prepared(mod))
    except UnsupportedError as error:
        return mod, Outcome(None, str(error))
    found = rewrite(reading.net, options)
    if not found.changed:
        return mod, Outcome(found, "no rewrite lowers the peak")
    try:
        made = emit(mod, reading, settle(found.net), target)
    except UnsupportedError as error:
        return mod, Outcome(found, str(error))
    if options.rules != "paper" and _peak(made, target) > _peak(mod, target):
        return mod, Outcome(found, "TVM's own fusion needs less memory")
    return made, Outcome(found)


def _peak(mod: Any, target: Any) -> int:
    """The peak of the best order of a module's lean kernels, scratch included."""
    with target:
        graph = read_function(LeanKernels(target)(mod)).graph
    return schedule(graph, "auto", Limits(time_limit_s=5.0)).peak_bytes


def force(mod: Any, rules: str, target: Any = None) -> Any:
    """Return ``mod`` with rules applied wherever they match, worth it or not: for tests.

    ``mod`` itself where none matches.
    """
    target = compat.current_target() if target is None else tvm.target.Target(target)
    reading = read_net(prepared(mod))
    net, done = apply_everywhere(reading.net, rules)
    return emit(mod, reading, settle(net), target) if done else mod
