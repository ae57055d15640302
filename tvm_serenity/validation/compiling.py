"""The kernels of a module compared with TVM's own while it is compiled, before it is handed on.

Both forms of each distinct kernel are compiled, ours placed as it will run, and run on inputs of
:mod:`tvm_serenity.validation`. What was compared once is kept in the cache by structural hashes. A
target that this machine cannot run has its kernels compiled for this machine instead: that finds
wrong TIR and what TVM makes of it, not what another code generator does.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tvm
from tvm.ir.expr import Call

from tvm_serenity import cache, compat, tvm_targets
from tvm_serenity.deadline import seconds_left, within
from tvm_serenity.kernels.nodes import parts
from tvm_serenity.validation.kernels import Case, cases, validate_kernels
from tvm_serenity.validation.report import EXACT
from tvm_serenity.validation.tolerances import FUSED

DEFAULT_S = 60.0
"""Seconds that comparing may take unless something else is said."""
TOGETHER = 8
"""Kernels that are compiled as one module: more would end a budget late."""
HERE = "llvm"
"""The target of kernels whose own cannot run on this machine."""


@dataclass(frozen=True)
class Validated:
    """Distinct kernels: ``compared`` now, ``known`` from the cache, ``left`` as time ran out.

    ``foreign``: those with instructions of a processor that is not this machine's.
    """

    compared: int = 0
    known: int = 0
    left: int = 0
    foreign: int = 0


def validated(
    plain: tvm.IRModule,
    lean: tvm.IRModule,
    placed: tvm.IRModule,
    target: tvm.target.Target,
    limit_s: float,
    folder: Path = Path(),
) -> Validated:
    """Compare the kernels of ``placed`` with those of ``plain``, for at most ``limit_s`` seconds.

    ``lean``: the module of ``placed`` before it was placed. Raises :class:`WrongResultError` that
    names the kernel and the first wrong index, with a reproducer in ``folder``.
    """
    own = tvm_targets.runs_here(target)
    machine = target if own else tvm.target.Target(HERE)
    functions = {v.name_hint: f for v, f in placed.functions.items()}
    pairs = [_Pair.of(case, functions, machine) for case in cases(plain, lean)]
    everything = len(pairs)
    pairs = [pair for pair in pairs if own or not _has_instructions(pair.made)]
    kept = cache.opened()
    new = [pair for pair in pairs if kept is None or kept.get(pair.key) is None]
    compared = 0
    with within(limit_s):
        for batch in _batches(new):
            if seconds_left() <= 0:
                break
            _compare(batch, machine, folder)
            if kept is not None:
                for pair in batch:
                    kept.put(pair.key, b"equal")
            compared += len(batch)
    left = len(new) - compared
    if left:
        warnings.warn(
            f"{left} of {len(pairs)} kernels were not compared with TVM's own: {limit_s:g} s were "
            "not enough. State more seconds, or False, by validate= of the pipeline or of "
            "SerenityOptions; a second run goes on where this one ended",
            stacklevel=2,
        )
    return Validated(compared, len(pairs) - len(new), left, everything - len(pairs))


@dataclass(frozen=True)
class _Pair:
    """A distinct kernel: its case, the form that runs, and the name of the result in the cache."""

    case: Case
    made: Any
    key: str

    @classmethod
    def of(cls, case: Case, functions: dict[str, Any], machine: tvm.target.Target) -> "_Pair":
        made = functions.get(f"{case.kernel}_placed", functions.get(case.kernel))
        parts = [str(compat.structural_hash(compat.anonymous(f))) for f in (case.reference, made)]
        return cls(case, made, cache.key("validated", compat.versions(), str(machine), *parts))


def _batches(pairs: Sequence[_Pair]) -> Iterator[Sequence[_Pair]]:
    return (pairs[i : i + TOGETHER] for i in range(0, len(pairs), TOGETHER))


def _compare(pairs: Sequence[_Pair], machine: tvm.target.Target, folder: Path) -> None:
    """Compare some kernels; raise :class:`WrongResultError` for the first that is wrong."""
    ours = _compiled({pair.case.kernel: pair.made for pair in pairs}, machine)
    named = {pair.case.kernel: pair.case.reference for pair in pairs}
    plain = _compiled(named, tvm_targets.with_plain_loops(machine))
    tolerance = FUSED if compat.contracts(machine) else EXACT
    validate_kernels([p.case for p in pairs], plain, ours, folder=folder, tolerance=tolerance)


def _has_instructions(kernel: Any) -> bool:
    """Whether a kernel names instructions of a processor: LLVM ends the process for another."""
    return any("llvm" in str(getattr(call.op, "name", "")) for call in parts(kernel.body, Call))


def _compiled(kernels: dict[str, Any], target: tvm.target.Target) -> Callable[[str], Any]:
    named = {name: kernel.with_attr("global_symbol", name) for name, kernel in kernels.items()}
    library = tvm.compile(tvm.IRModule(named), target=target).jit()
    return lambda name: library.get_function(name, query_imports=True)
