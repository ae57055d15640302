"""The kernels of a module compared with TVM's own while it is compiled, before it is handed on.

Both forms of each distinct kernel are compiled, ours placed as it will run, and run on inputs of
:mod:`tvm_serenity.validation`. What was compared once is kept in the cache by structural hashes. A
target that this machine cannot run has its kernels compiled for this machine instead: that finds
wrong TIR and what TVM makes of it, not what another code generator does.
"""

import hashlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache as once
from importlib import resources
from math import inf
from pathlib import Path
from typing import Any

import tvm
from tvm.ir.expr import Call

from tvm_serenity import compat, tvm_targets
from tvm_serenity.kernels.nodes import parts
from tvm_serenity.relax.compiled import functions_of
from tvm_serenity.relax.objects import Notify, TargetOf
from tvm_serenity.search.deadline import seconds_left, within
from tvm_serenity.system import cache
from tvm_serenity.validation.kernels import Case, KernelComparison, cases, validate_kernels
from tvm_serenity.validation.report import EXACT, Tolerance
from tvm_serenity.validation.steps import steps_of
from tvm_serenity.validation.tolerances import FUSED

FunctionOf = Callable[[str], Any]

DEFAULT_S = 60.0
"""Seconds that comparing may take unless something else is said."""
TOGETHER = 8
"""Kernels that are compiled as one module within a budget: more would end it late."""
HERE = "llvm"
"""The target of kernels whose own cannot run on this machine."""
FEW_STEPS = 2_000_000
"""Innermost steps of a kernel up to which running it is cheaper than optimising it."""
CHECKS = ("execute", "inputs", "kernels", "ranges", "report", "steps", "tolerances")
"""Modules that decide what a comparison finds: a result of other ones is not taken for theirs."""


@dataclass(frozen=True)
class Validated:
    """Distinct kernels: ``compared`` now, ``known`` from the cache, ``left`` as time ran out.

    ``sets``: of inputs, of both together. ``foreign``: those with instructions of a processor that
    is not this machine's.
    """

    compared: int = 0
    known: int = 0
    left: int = 0
    foreign: int = 0
    sets: int = 0

    @property
    def kernels(self) -> int:
        """Distinct kernels that are known to be equal."""
        return self.compared + self.known


@dataclass(frozen=True)
class Modules:
    """What a network is before and after its kernels are ours.

    ``plain``: with TVM's own kernels; ``lean``: with ours; ``placed``: the same in an arena.
    """

    plain: tvm.IRModule
    lean: tvm.IRModule
    placed: tvm.IRModule


def reference_target(machine: tvm.target.Target) -> TargetOf:
    """Return the target that TVM's own kernels are compiled for where ours are for ``machine``.

    Without LLVM's loop vectoriser, and those that do little without any optimisation.
    """
    plain = tvm_targets.with_plain_loops(machine)
    quick = tvm_targets.unoptimised(plain)
    return lambda kernel: quick if steps_of(kernel) <= FEW_STEPS else plain


def same(machine: tvm.target.Target) -> Tolerance:
    """Return how far two forms of a kernel may be apart: not at all where nothing is fused."""
    return FUSED if compat.contracts(machine) else EXACT


def both_forms(
    references: dict[str, Any], made: dict[str, Any], machine: tvm.target.Target
) -> tuple[FunctionOf, FunctionOf]:
    """Return functions from names to compiled kernels: TVM's own, and ours for ``machine``."""
    ours = functions_of(made, lambda _kernel: machine)
    return functions_of(references, reference_target(machine)), ours


def validated(
    modules: Modules,
    target: tvm.target.Target,
    limit_s: float = inf,
    folder: Path = Path(),
    *,
    seed: int = 0,
    notify: Notify = lambda _text: None,
) -> Validated:
    """Compare the kernels of a network with TVM's own, for at most ``limit_s`` seconds.

    ``seed``: of the inputs. Raises :class:`WrongResultError` that names the kernel and the first
    wrong index, with a reproducer in ``folder``.
    """
    own = tvm_targets.runs_here(target)
    machine = target if own else tvm.target.Target(HERE)
    functions = {v.name_hint: f for v, f in modules.placed.functions.items()}
    found = cases(modules.plain, modules.lean)
    pairs = [_Pair.of(case, functions, machine, seed) for case in found]
    pairs = [pair for pair in pairs if own or not _has_instructions(pair.made)]
    kept = cache.opened()
    known = [None if kept is None else kept.get(pair.key) for pair in pairs]
    new = [pair for pair, held in zip(pairs, known, strict=True) if held is None]
    earlier = (
        f", {len(pairs) - len(new)} of them in an earlier run" if len(new) < len(pairs) else ""
    )
    notify(f"validating {len(pairs)} kernels{earlier}")
    sets, compared = sum(int(held) for held in known if held is not None), 0
    with within(None if limit_s == inf else limit_s):
        for batch in _batches(new, len(new) if limit_s == inf else TOGETHER):
            if limit_s != inf and seconds_left() <= 0:
                break
            counts = _compare(batch, machine, folder, seed)
            for pair, count in zip(batch, counts, strict=True):
                if kept is not None:
                    kept.put(pair.key, str(count).encode())
            compared += len(batch)
            sets += sum(counts)
    left = len(new) - compared
    if left:
        warnings.warn(
            f"{left} of {len(pairs)} kernels were not compared with TVM's own: {limit_s:g} s were "
            "not enough. State more seconds, or False, by validate= of the pipeline or of "
            "SerenityOptions; a second run goes on where this one ended",
            stacklevel=2,
        )
    foreign = len(found) - len(pairs)
    return Validated(compared, len(pairs) - len(new), left, foreign, sets)


@dataclass(frozen=True)
class _Pair:
    """A distinct kernel: its case, the form that runs, and the name of the result in the cache."""

    case: Case
    made: Any
    key: str

    @classmethod
    def of(
        cls, case: Case, functions: dict[str, Any], machine: tvm.target.Target, seed: int
    ) -> "_Pair":
        made = functions.get(f"{case.kernel}_placed", functions.get(case.kernel))
        hashes = [str(compat.structural_hash(compat.anonymous(f))) for f in (case.reference, made)]
        decided = (compat.versions(), _version(), str(machine), str(seed))
        return cls(case, made, cache.key("validated", *decided, *hashes))


@once
def _version() -> str:
    """A digest of the modules that compare."""
    folder = resources.files(__package__ or "tvm_serenity.validation")
    digest = hashlib.sha256()
    for name in CHECKS:
        digest.update((folder / f"{name}.py").read_bytes())
    return digest.hexdigest()


def _batches(pairs: Sequence[_Pair], size: int) -> Iterator[Sequence[_Pair]]:
    return (pairs[i : i + size] for i in range(0, len(pairs), size or 1))


def _compare(
    pairs: Sequence[_Pair], machine: tvm.target.Target, folder: Path, seed: int
) -> list[int]:
    """Compare some kernels; return the sets of inputs that each was compared on.

    Raises :class:`WrongResultError` for the first that is wrong.
    """
    named = {pair.case.kernel: pair.made for pair in pairs}
    references = {pair.case.kernel: pair.case.reference for pair in pairs}
    how = KernelComparison(str(machine), same(machine), seed, folder)
    return validate_kernels(
        [pair.case for pair in pairs], *both_forms(references, named, machine), how
    )


def _has_instructions(kernel: Any) -> bool:
    """Whether a kernel names instructions of a processor: LLVM ends the process for another."""
    return any("llvm" in str(getattr(call.op, "name", "")) for call in parts(kernel.body, Call))
