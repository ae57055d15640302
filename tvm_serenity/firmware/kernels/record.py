"""All that is known of a kernel of the library, in one record; each folder beside has one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tvm_serenity.firmware.isa import Isa
from tvm_serenity.firmware.passage import Passage
from tvm_serenity.firmware.program import Array, Kernel

Passages = tuple[Passage | None, ...]
"""How a kernel goes over each tensor, or row of it, that it reads; None: it stays apart from it."""


class NotCovered(Exception):
    """The library has no form of a kernel; the message says what it has, or does, instead."""


@dataclass(frozen=True)
class KernelOptions:
    """How a kernel goes about a layer, where it has a choice.

    ``gathered``: windows are gathered into columns first (im2col). ``once``: sums are rounded once.
    ``plane_rows``: of a plane of a channel, 0 without one; ``ring``: fewer than are read in all.
    """

    gathered: bool = False
    once: bool = False
    plane_rows: int = 0
    ring: bool = False

    @property
    def text(self) -> str:
        """The options in words, each behind a comma."""
        said = {"rounded once": self.once, "gathered": self.gathered, "in a ring": self.ring}
        return "".join(f", {what}" for what, taken in said.items() if taken)


@dataclass(frozen=True, eq=False)
class KernelCall:
    """A kernel's call for a layer: C, the constants it takes after its tensors, workspace."""

    kernel: Kernel
    constants: tuple[Array, ...]
    workspace_bytes: int = 0
    options: KernelOptions = KernelOptions()


@dataclass(frozen=True)
class LibraryKernel:
    """A kernel of the library.

    ``name``: of its folder. ``computes``: of layers that it is for (``layer.computes``); ``isa``:
    instructions that it is for; ``refuses``: why it does not make a layer, "" where it does.
    ``calls``: its calls for a layer, with packed constants and workspace, one for each way to go
    about it. ``passages``: in which order it reads and writes pixels, which says what its result
    may lie over. ``cases``: which rows its table of prices has; ``case``: which of them prices a
    layer, and ``counts``: of what (``prices.json`` has a price for each).
    """

    name: str
    computes: str
    isa: frozenset[Isa]
    refuses: Callable[[Any], str]
    calls: Callable[[str, Any], Sequence[KernelCall]]
    passages: Callable[[Any, KernelOptions], Passages]
    cases: tuple[str, ...]
    case: Callable[[Any, KernelOptions], str]
    counts: Callable[[Any, KernelOptions], list[float]]


@dataclass(frozen=True)
class KernelForm:
    """A kernel of the library and how it goes about a layer."""

    kernel: LibraryKernel
    options: KernelOptions = KernelOptions()

    @property
    def text(self) -> str:
        """The form in words."""
        return self.kernel.name + self.options.text


@dataclass(frozen=True, eq=False)
class LibraryCall:
    """A call of the library for a layer, and what is known of it.

    ``products``: how many it sums up; ``passages``: of each tensor it reads. ``refused``: why none
    is for the board's core alone. ``cost``: of a call, in the units of the core's prices, and
    ``code``: the functions it calls, with their bytes; None and nothing on a core without prices.
    """

    form: KernelForm
    kernel: Kernel
    constants: tuple[Array, ...]
    workspace_bytes: int
    products: int
    passages: Passages = ()
    refused: str = ""
    cost: int | None = None
    code: Mapping[str, int] = field(default_factory=dict)
