"""A network compiled for a board: program, memory map, kernels and their sources."""

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
from tvm_serenity.validation.compiling import reference_target

if TYPE_CHECKING:
    from tvm_serenity.firmware.select.choices import KernelChoice


@dataclass(frozen=True)
class Source:
    """The operators that a step computes: ``op`` of the region, from the tensors ``inputs``.

    ``inputs`` are the arguments that are not constants, in order; for a step that finishes sums,
    the summed tensor. ``before``: operators that the step computes first, as a chain: the first one
    reads ``inputs``, each other one its predecessor, and ``op`` the last one.
    """

    op: int
    inputs: tuple[int, ...]
    before: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """A network compiled for a board, unsplit or in bands of rows.

    ``lowered``: the module with TVM's own kernels, without our schedules, in the given order;
    ``region``: its graph. ``sources``: the operators of each step of the program that computes.
    ``tensors``: the tensor of the region for each tensor of the program, None for sums, which only
    the program has.
    ``compiled_here``: the TIR of kernels that LLVM compiled for the board. ``chosen``: the bands,
    if it runs by rows. ``choices``: the kernel of each operator, with the reason. ``tried``: the
    strategies that were tried until one fits, if the plain network does not fit.
    ``transfers``: the transfer plan of a network in slow memory; its operators are numbered in
    the order of execution.
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
    transfers: TransferPlan | None = None

    @cached_property
    def library(self) -> tvm.runtime.Module:
        """``lowered`` compiled for this machine; kernels with few steps are not optimised."""
        return compiled_here(self.lowered, reference_target(HERE))
