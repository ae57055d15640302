"""Translation validation of a module's kernels while the module is compiled.

Both forms of each distinct kernel, ours as placed in the arena and TVM's own, are compiled and run
on the inputs of :mod:`tvm_serenity.validation`. The cache stores the outcome under structural
hashes. If this machine cannot run the target, the kernels are compiled for this machine: that finds
wrong TIR and wrong lowering by TVM, but no error of the target's code generator.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache as once
from functools import partial
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
from tvm_serenity.system import cache, sources
from tvm_serenity.system.counted import Counted
from tvm_serenity.validation.kernels import Case, KernelComparison, cases, validate_kernels
from tvm_serenity.validation.report import EXACT, Tolerance
from tvm_serenity.validation.steps import steps_of
from tvm_serenity.validation.tolerances import FUSED

FunctionOf = Callable[[str], Any]

DEFAULT_S = 60.0
"""Default time limit of the comparison in seconds."""
TOGETHER = 8
"""Kernels compiled as one module under a time limit: larger modules would overrun it."""
HERE = "llvm"
"""The target that replaces a target which this machine cannot run."""
FEW_STEPS = 2_000_000
"""Innermost loop steps of a kernel below which running it costs less than optimising it."""
CHECKS = ("execute", "inputs", "kernels", "ranges", "report", "steps", "tolerances")
"""Modules that decide the outcome of a comparison: the cache key contains their digest."""


@dataclass(frozen=True)
class Validated:
    """Counts of distinct kernels.

    ``compared`` now, ``known`` from the cache, ``left`` at the time limit.

    ``sets``: sets of inputs, of both together. ``foreign``: kernels with instructions that this
    machine's processor lacks, which were not compared.
    """

    compared: int = 0
    known: int = 0
    left: int = 0
    foreign: int = 0
    sets: int = 0

    @property
    def kernels(self) -> int:
        """The number of distinct kernels that are known to equal TVM's own."""
        return self.compared + self.known


@dataclass(frozen=True)
class Modules:
    """Three forms of a network.

    ``plain``: with TVM's own kernels; ``lean``: with ours; ``placed``: with ours, in an arena.
    """

    plain: tvm.IRModule
    lean: tvm.IRModule
    placed: tvm.IRModule


def reference_target(machine: tvm.target.Target) -> TargetOf:
    """Return the target of TVM's own kernels, given the target ``machine`` of ours.

    Loops are not vectorised; kernels with few steps are not optimised at all.
    """
    plain = tvm_targets.with_plain_loops(machine)
    quick = tvm_targets.unoptimised(plain)
    return lambda kernel: quick if steps_of(kernel) <= FEW_STEPS else plain


def same(machine: tvm.target.Target) -> Tolerance:
    """Return the tolerance between two forms of a kernel.

    Zero unless ``machine`` fuses multiply-add.
    """
    return FUSED if compat.contracts(machine) else EXACT


def both_forms(
    references: dict[str, Any], made: dict[str, Any], machine: tvm.target.Target
) -> tuple[FunctionOf, FunctionOf]:
    """Return two lookup functions from a name to a compiled kernel: TVM's own, and ours.

    Our kernels are compiled for ``machine``, TVM's for the reference target of it.
    """
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

    ``seed`` determines the inputs. Raises :class:`WrongResultError`, which names the kernel and the
    first wrong index, and writes a reproducer to ``folder``.
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
            told = partial(_told, notify, compared, len(new))
            counts = _compare(batch, machine, folder, seed, told)
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
    """A distinct kernel: its case, the form that runs, and its key in the cache."""

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
    """Return a digest of the modules in ``CHECKS``."""
    folder = Path(__file__).parent
    return sources.digest_of({name: folder / f"{name}.py" for name in CHECKS})


def _batches(pairs: Sequence[_Pair], size: int) -> Iterator[Sequence[_Pair]]:
    return (pairs[i : i + size] for i in range(0, len(pairs), size or 1))


def _told(notify: Notify, before: int, total: int, count: int) -> None:
    """Say how many kernels of ``total`` are equal: ``count`` of this batch, and those before."""
    notify(Counted("validating kernels", before + count, total))


def _compare(
    pairs: Sequence[_Pair],
    machine: tvm.target.Target,
    folder: Path,
    seed: int,
    said: Callable[[int], None],
) -> list[int]:
    """Compare kernels; return the number of input sets each was compared on.

    Raises :class:`WrongResultError` for the first wrong kernel.
    """
    named = {pair.case.kernel: pair.made for pair in pairs}
    references = {pair.case.kernel: pair.case.reference for pair in pairs}
    how = KernelComparison(str(machine), same(machine), seed, folder)
    return validate_kernels(
        [pair.case for pair in pairs], *both_forms(references, named, machine), how, said
    )


def _has_instructions(kernel: Any) -> bool:
    """Return whether a kernel names a processor's instructions: LLVM aborts on foreign ones."""
    return any("llvm" in str(getattr(call.op, "name", "")) for call in parts(kernel.body, Call))
