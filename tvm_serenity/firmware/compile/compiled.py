"""A program compiled for a board, and the modules it was compiled from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import tvm

from tvm_serenity.firmware.board.fit import Attempt
from tvm_serenity.firmware.place.memory_map import MemoryMap
from tvm_serenity.firmware.program import Program
from tvm_serenity.relax.compiled import compiled_here
from tvm_serenity.relax.constant_channels import FoldedChannels
from tvm_serenity.relax.read import BoundGraph
from tvm_serenity.rows.choose import Choice
from tvm_serenity.sliding import SlidingStep

if TYPE_CHECKING:
    from tvm_serenity.firmware.select.choices import KernelChoice


@dataclass(frozen=True)
class Source:
    """The operator ``op`` of the region that a step computes from the program's tensors ``inputs``.

    ``inputs`` are the operator's non-constant arguments in order; for a step that finishes sums,
    they are the tensors that were summed. ``before`` are operators that the step computes first, in
    order: each reads the result of the previous one, the first reads ``inputs``, and ``op`` reads
    the last result.
    """

    op: int
    inputs: tuple[int, ...]
    before: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """A network compiled for a board, unsplit or by rows.

    ``lowered`` holds TVM's own kernels, without any schedule of ours, in the given order;
    ``region`` is read from a module with the same calls. ``sources`` has an entry for each step of
    the program. ``tensors`` maps the program's tensors to those of the region (None: sums, which no
    unsplit kernel stores). ``compiled_here``: kernels that LLVM compiled for the board, as TIR.
    ``chosen``: the bands of a network that runs by rows. ``choices``: the kernel of each operator,
    and why. ``tried``: the strategies that were built until one fitted, including this one.
    ``moved``: the step of incremental inference.
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

    @cached_property
    def library(self) -> tvm.runtime.Module:
        """``lowered`` compiled for this machine."""
        return compiled_here(self.lowered)
