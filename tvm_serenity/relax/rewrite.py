"""Replacement of subgraphs by identical ones whose best order needs less memory."""

from dataclasses import dataclass, replace
from typing import Any

import tvm

from tvm_serenity import tvm_targets
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.relax.lean_kernels import lean_module
from tvm_serenity.relax.read import read_function
from tvm_serenity.relax.rewrite_emit import emit
from tvm_serenity.relax.rewrite_read import prepared, read_net
from tvm_serenity.relax.rows import by_rows
from tvm_serenity.relax.sequences import images_last
from tvm_serenity.rewrite import RewriteOptions, Rewritten, apply_everywhere, rewrite, rule_names
from tvm_serenity.rewrite.rules.in_place import settle
from tvm_serenity.rows.limits import Limits as RowLimits
from tvm_serenity.rows.stream import Streaming
from tvm_serenity.schedule import Options, schedule

ROWS = "rows"
"""The name of the rule that splits operators into rows if no other rule applied."""


@dataclass(frozen=True)
class Rewriting:
    """The result of rewriting: the rewrites ``found``, or the ``reason`` for none.

    ``rows``: the split into rows, if the rule of that name applied.
    """

    found: Rewritten | None
    reason: str = ""
    rows: Streaming | None = None

    @property
    def changed(self) -> bool:
        """Whether the module changed."""
        return self.rows is not None or not self.reason


def rewrite_module(
    mod: tvm.IRModule,
    options: RewriteOptions | None = None,
    target: tvm.target.Target | str | None = None,
) -> tuple[Any, Rewriting]:
    """Return ``mod`` rewritten, or unchanged if nothing is gained, and a record of the rewrites."""
    options = options or RewriteOptions()
    rule_names(options.rules)
    target = tvm_targets.current() if target is None else tvm.target.Target(target)
    try:
        reading = read_net(prepared(mod))
    except UnsupportedError as error:
        return mod, Rewriting(None, str(error))
    found = rewrite(reading.net, options)
    if not found.changed:
        return mod, Rewriting(found, "no rewrite lowers the peak")
    try:
        made = emit(mod, reading, settle(found.net), target)
    except UnsupportedError as error:
        return mod, Rewriting(found, str(error))
    if options.rules != "paper" and _peak(made, target) > _peak(mod, target):
        return mod, Rewriting(found, "TVM's own fusion needs less memory")
    return made, Rewriting(found)


def rewrite_by(
    mod: tvm.IRModule, options: RewriteOptions, target: tvm.target.Target | str | None = None
) -> tuple[Any, Rewriting]:
    """Return what :func:`rewrite_module` returns; ``rules`` may also name "rows".

    The rule "rows" splits ``main`` into rows if no other rule changed the module and a split is
    possible. It converts images to channels last.
    """
    others = [name for name in _names(options.rules) if name != ROWS]
    made, done = mod, Rewriting(None)
    if others:
        made, done = rewrite_module(mod, replace(options, rules=",".join(others)), target)
    if made is not mod or not names_rows(options.rules):
        return made, done
    limits = RowLimits.within(options.time_limit_s)
    try:
        made, rows = by_rows(images_last(mod), target, limits)
    except UnsupportedError as error:
        return mod, replace(done, reason=done.reason or str(error))
    return made, replace(done, rows=rows)


def names_rows(rules: str) -> bool:
    """Return whether a list of rules names the split into rows."""
    return ROWS in _names(rules)


def _names(rules: str) -> list[str]:
    return [name.strip() for name in rules.split(",")]


def _peak(mod: tvm.IRModule, target: tvm.target.Target) -> int:
    """Return the peak of the best order of a module's lean kernels, scratch included."""
    with target:
        graph = read_function(lean_module(mod, target)).graph
    return schedule(graph, "auto", Options(time_limit_s=5.0)).peak_bytes


def force(mod: tvm.IRModule, rules: str, target: tvm.target.Target | str | None = None) -> Any:
    """Return ``mod`` with rules applied at each match, profitable or not, for tests.

    Return ``mod`` itself if no rule matches.
    """
    target = tvm_targets.current() if target is None else tvm.target.Target(target)
    reading = read_net(prepared(mod))
    net, done = apply_everywhere(reading.net, rules)
    return emit(mod, reading, settle(net), target) if done else mod
