"""SerenityRewrite: exchange subgraphs for identical ones whose best order needs less memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import tvm
from tvm import relay

from tvm_serenity.relay import lower
from tvm_serenity.relay.rewrite_emit import emit
from tvm_serenity.relay.rewrite_read import prepared, read_net
from tvm_serenity.relay.schedule import region_of
from tvm_serenity.rewrite import Match, Options, apply_everywhere, rewrite, rule_names
from tvm_serenity.schedule import Options as Limits
from tvm_serenity.schedule import schedule

RULES = ("channelwise", "kernelwise", "residual")
"""The rules whose results Relay can write: its kernels make new tensors, and read whole ones."""


@tvm.transform.module_pass(opt_level=0, name="SerenityRewrite")
@dataclass
class SerenityRewrite:
    """Rewrite ``main`` for the least peak of its best order (``docs/relay.md``).

    1. A module of operators (static shapes, weights constant or in ``params``), ``qnn`` operators
       included, is read as one op a kernel, as ``relay.build`` would fuse them.
    2. ``rules`` ("all", "paper", or names with commas) are chosen from within ``time_limit``
       seconds: a convolution of a concat is a sum of partial ones (of a ``qnn.conv2d`` in int32,
       before it is requantised), a depthwise one is done piece by piece, an add is a term of a sum.
    3. What came of it is kept if, fused for ``target`` and ordered, it needs less memory than the
       module did, for ``executor`` "graph" or "aot". Else the module comes back as it is.

    Integers, and what is done piece by piece, are bit-identical; sums of floats are equal up to
    rounding. Dynamic shapes and control flow are refused with :class:`UnsupportedError`; a module
    of fused calls comes back as it is.
    """

    rules: str = "all"
    objective: str = "peak"
    time_limit: float | None = None
    target: Any = None
    executor: str = field(default="graph", kw_only=True)
    params: Mapping[str, Any] | None = field(default=None, kw_only=True)

    def transform_module(self, mod: Any, _context: Any) -> Any:
        """Return the rewritten module."""
        options = Options(self.rules, self.objective, self.time_limit)
        return rewrite_module(mod, options, self.target, self.executor, self.params).module


@dataclass(frozen=True)
class Outcome:
    """What became of a module: what was ``applied``, the peaks as it would be built."""

    module: Any
    applied: tuple[Match, ...] = ()
    before_bytes: int = 0
    after_bytes: int = 0


def rewrite_module(
    mod: Any,
    options: Options | None = None,
    target: Any = None,
    executor: str = "graph",
    params: Mapping[str, Any] | None = None,
) -> Outcome:
    """Return ``mod`` rewritten, or as it is where nothing is gained; as SerenityRewrite."""
    options = options or Options()
    names = [n for n in rule_names(options.rules) if n in RULES]
    if lower.is_fused(lower.main_of(mod)):
        return Outcome(mod)
    lower.static(mod)
    mod = lower.bound(mod, params)
    reading = read_net(prepared(mod), external_outputs=executor == "aot")
    if not names or not apply_everywhere(reading.net, ",".join(names))[1]:
        return Outcome(mod)
    before = _peak(mod, target, executor)
    best = Outcome(mod, (), before, before)
    tried = set()
    for rules in dict.fromkeys((",".join(names), *names)):
        found = rewrite(reading.net, Options(rules, options.objective, options.time_limit_s))
        applied = tuple(e.match for e in found.report.applied)
        if not applied or applied in tried:
            continue
        tried.add(applied)
        made = _typed(lower.with_main(mod, emit(reading, found.net)))
        after = _peak(made, target, executor)
        if after < best.after_bytes:
            best = Outcome(made, applied, before, after)
    return best


def force(mod: Any, rules: str) -> tuple[Any, tuple[Match, ...]]:
    """Return ``mod`` with rules applied wherever they match, and the matches: for tests."""
    mod = _typed(mod)
    reading = read_net(prepared(mod), external_outputs=False)
    net, done = apply_everywhere(reading.net, rules)
    return _typed(lower.with_main(mod, emit(reading, net))), done


def _typed(mod: Any) -> Any:
    return relay.transform.InferType()(mod)


def _peak(mod: Any, target: Any, executor: str) -> int:
    """The peak of the best order of a module as ``relay.build`` would fuse it.

    Constants are left unfolded, which takes long and moves no activation.
    """
    target = lower.target_of(target)
    with lower.context_like(tvm.transform.PassContext.current(), ["FoldConstant"]):
        region = region_of(lower.fused(mod, target), target, executor)
    return schedule(region.graph, "auto", Limits(time_limit_s=5.0)).peak_bytes
