"""The record of a library kernel: everything that is known of it; each folder has one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tvm_serenity.firmware.isa import Isa
from tvm_serenity.firmware.passage import Passage
from tvm_serenity.firmware.program import Array, Kernel

Passages = tuple[Passage | None, ...]
"""The passage over each tensor (or row) that a kernel reads; None: no overlap is allowed."""


class NotCovered(Exception):
    """The library has no kernel for a layer; the message says what it supports instead."""


@dataclass(frozen=True)
class KernelOptions:
    """The options of a kernel for a layer.

    ``gathered``: windows are copied into columns first (im2col). ``once``: sums are rounded once.
    ``plane_rows``: the rows in the plane of a channel, 0 without a plane; ``ring``: the plane is a
    ring of fewer rows than the layer reads. ``coded``: weights are decoded into workspace first.
    """

    gathered: bool = False
    once: bool = False
    plane_rows: int = 0
    ring: bool = False
    coded: bool = False

    @property
    def text(self) -> str:
        """The options as text, each after a comma."""
        words = {
            "rounded once": self.once,
            "gathered": self.gathered,
            "in a ring": self.ring,
            "coded weights": self.coded,
        }
        return "".join(f", {word}" for word, used in words.items() if used)


@dataclass(frozen=True, eq=False)
class KernelCall:
    """The call of a kernel for a layer: the C function, its packed constants, its workspace."""

    kernel: Kernel
    constants: tuple[Array, ...]
    workspace_bytes: int = 0
    options: KernelOptions = KernelOptions()


@dataclass(frozen=True)
class LibraryKernel:
    """A kernel of the library.

    ``name``: the name of its folder. ``computes``: the kind of layers (``layer.computes``).
    ``isa``: the instruction sets that have the kernel. ``refuses``: returns why the kernel does not
    compute a layer, "" if it does. ``calls``: returns the calls for a layer, one for each choice of
    options. ``passages``: returns the order of reads and writes, which decides how the result may
    overlap the inputs. ``cases``: the rows of its price table; ``case``: returns the row of a
    layer, and ``counts`` the counts of its work (``prices.json`` has a price for each count).
    ``driven``: its constants decide how much it does, not only the sizes of the layer.
    ``gathered``: returns the number of elements that a call gathers by vectors of indices.
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
    driven: bool = False
    gathered: Callable[[Any], int] = lambda _layer: 0


@dataclass(frozen=True)
class KernelForm:
    """A library kernel with its options for a layer."""

    kernel: LibraryKernel
    options: KernelOptions = KernelOptions()

    @property
    def text(self) -> str:
        """The kernel's name and its options as text."""
        return self.kernel.name + self.options.text


@dataclass(frozen=True, eq=False)
class LibraryCall:
    """A call of the library for a layer, with its cost.

    ``layer``: what it computes, as kernels test it. ``products``: the number of
    multiply-accumulates. ``passages``: one for each tensor it reads.
    ``refused``: why no kernel for the core's own instruction set computes the layer. ``cost``: of
    one call, in the unit of the core's prices, None on a core without prices; ``code``: the C
    functions it calls, with their bytes.
    """

    form: KernelForm
    kernel: Kernel
    constants: tuple[Array, ...]
    workspace_bytes: int
    layer: Any
    products: int
    passages: Passages = ()
    refused: str = ""
    cost: int | None = None
    code: Mapping[str, int] = field(default_factory=dict)
