"""Replacement of subgraphs by identical ones whose best order needs less memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import relay

from tvm_serenity.relay import lower
from tvm_serenity.relay.rewrite_emit import ABILITIES, emit
from tvm_serenity.relay.rewrite_read import prepared, read_net
from tvm_serenity.relay.schedule import region_of
from tvm_serenity.rewrite import (
    RULES,
    Match,
    RewriteOptions,
    apply_everywhere,
    rewrite,
    rule_names,
)
from tvm_serenity.schedule import Options, schedule


@dataclass(frozen=True)
class Rewriting:
    """The ``applied`` rewrites of a module, and its peaks as it would be built."""

    module: tvm.IRModule
    applied: tuple[Match, ...] = ()
    before_bytes: int = 0
    after_bytes: int = 0


def rewrite_module(
    mod: tvm.IRModule,
    options: RewriteOptions | None = None,
    target: tvm.target.Target | str | None = None,
    executor: str = "graph",
    params: Mapping[str, Any] | None = None,
) -> Rewriting:
    """Return ``mod`` rewritten as SerenityRewrite specifies, or unchanged if nothing is gained."""
    options = options or RewriteOptions()
    names = [n for n in rule_names(options.rules) if RULES[n].abilities <= ABILITIES]
    if lower.is_fused(lower.main_of(mod)):
        return Rewriting(mod)
    lower.static(mod)
    mod = lower.bound(mod, params)
    reading = read_net(prepared(mod), external_outputs=executor == "aot")
    if not names or not apply_everywhere(reading.net, ",".join(names))[1]:
        return Rewriting(mod)
    before = _peak(mod, target, executor)
    best = Rewriting(mod, (), before, before)
    tried = set()
    for rules in dict.fromkeys((",".join(names), *names)):
        found = rewrite(reading.net, RewriteOptions(rules, options.objective, options.time_limit_s))
        applied = tuple(e.match for e in found.report.applied)
        if not applied or applied in tried:
            continue
        tried.add(applied)
        made = _typed(lower.with_main(mod, emit(reading, found.net)))
        after = _peak(made, target, executor)
        if after < best.after_bytes:
            best = Rewriting(made, applied, before, after)
    return best


def force(mod: tvm.IRModule, rules: str) -> tuple[Any, tuple[Match, ...]]:
    """Return ``mod`` with rules applied at each match, and the matches, for tests."""
    mod = _typed(mod)
    reading = read_net(prepared(mod), external_outputs=False)
    net, done = apply_everywhere(reading.net, rules)
    return _typed(lower.with_main(mod, emit(reading, net))), done


def _typed(mod: tvm.IRModule) -> Any:
    return relay.transform.InferType()(mod)


def _peak(mod: tvm.IRModule, target: tvm.target.Target | str | None, executor: str) -> int:
    """Return the peak of the best order of a module as ``relay.build`` would fuse it.

    Constants are not folded: folding takes long and affects no activation.
    """
    target = lower.target_of(target)
    with lower.context_like(tvm.transform.PassContext.current(), ["FoldConstant"]):
        region = region_of(lower.fused(mod, target), target, executor)
    return schedule(region.graph, "auto", Options(time_limit_s=5.0)).peak_bytes
