"""A program compiled for a board, and what it was made from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import tvm

from tvm_serenity.firmware.board.fit import Attempt
from tvm_serenity.firmware.place.memory_map import MemoryMap
from tvm_serenity.firmware.program import Program
from tvm_serenity.offchip.transfers import TransferPlan
from tvm_serenity.relax.compiled import HERE, compiled_here
from tvm_serenity.relax.constant_channels import FoldedChannels
from tvm_serenity.relax.read import BoundGraph
from tvm_serenity.rows.choose import Choice
from tvm_serenity.sliding import SlidingStep
from tvm_serenity.validation.compiling import reference_target

if TYPE_CHECKING:
    from tvm_serenity.firmware.select.choices import KernelChoice


@dataclass(frozen=True)
class Source:
    """What a step computes: operator ``op`` of the region, of the program's tensors ``inputs``.

    These are the operator's arguments that are no constants, in order. Of a step that finishes
    sums they are what is summed. ``before``: operators that the step computes first, in order,
    each of the one before, the first of ``inputs``, ``op`` of the last.
    """

    op: int
    inputs: tuple[int, ...]
    before: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """A network compiled for a board, whole or by rows.

    ``lowered`` holds TVM's own kernels, before any schedule of ours, in the given order; ``region``
    is read off a module of the same calls. ``sources`` are one for each step of the program,
    ``tensors`` one of the region for each of the program's (None: sums, which no whole kernel
    stores). ``compiled_here``: kernels that LLVM compiled for the board, as TIR. ``chosen``: the
    bands, where it runs by rows. ``choices``: the kernel of each operator, and why. ``tried``:
    where it does not fit as it is, the ways it was built in until one does, this one among them.
    ``moved``: the step, of a window that moves. ``transfers``: the plan, of a network that runs
    from slow memory; its operators are numbered in the order in which they run.
    """

    program: Program
    lowered: tvm.IRModule
    region: BoundGraph
    sources: tuple[Source, ...]
    tensors: tuple[int | None, ...]
    placed: MemoryMap
    peak_bytes: int
    lower_bound_bytes: int
    kept_float: tuple[str, ...]
    folded: FoldedChannels
    choices: "tuple[KernelChoice, ...]"
    compiled_here: Mapping[str, Any] = field(default_factory=dict)
    chosen: Choice | None = None
    tried: tuple[Attempt, ...] = ()
    moved: SlidingStep | None = None
    transfers: TransferPlan | None = None

    @cached_property
    def library(self) -> tvm.runtime.Module:
        """``lowered`` compiled for this machine; kernels with few steps are not optimised."""
        return compiled_here(self.lowered, reference_target(HERE))
