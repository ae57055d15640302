"""Options of shared memory, the order of operators, and the limit on the arena."""

from dataclasses import dataclass, replace

from tvm_serenity.errors import InputError
from tvm_serenity.options.option import (
    BYTES,
    Conflict,
    HelpGroup,
    Need,
    Option,
    OptionGroup,
    differing,
    option,
)
from tvm_serenity.options.output import OWN_ARENA
from tvm_serenity.options.rows import not_in_rows, not_in_steps

FLASH, RAM = "flash", "ram"
CONSTANTS = (FLASH, RAM)
"""The memory from which kernels read constants: flash, or a copy in RAM."""
FAST, SMALL, CODED = "fast", "small", "coded"
WEIGHTS = (FAST, SMALL, CODED)
"""How kernels store weights: for the fastest kernel, without zeros, or in an entropy code."""
BEST = "best"
ORDERS = (BEST, "given")

STACK_BYTES = 1024
"""The stack that is kept free by default; ``verify`` measures its use."""
LIBRARY_BYTES = 128
"""Most RAM that start-up code and the C library take (measured: newlib-nano)."""

ALL_RULES = "all"
_BY_RULES = "the rules choose copies, concats and in-place operators themselves"
_IN_FILE = "the written plan runs every operator of the file"
OF_FILES = (
    Conflict("plan", _IN_FILE),
    Conflict("runtime", _IN_FILE),
    Conflict("rewrite", _BY_RULES),
)
"""Conflicts of options that change the memory semantics of a graph before the order search."""

IN_PLACE = Option(
    flag="--in-place",
    searched=True,
    help="Let elementwise operators overwrite an input that dies.",
    group=HelpGroup.MEMORY,
    conflicts=(
        *not_in_rows("bands are placed separately, so that no kernel overwrites one"),
        *not_in_steps("rows are placed separately, so that no kernel overwrites one"),
        Conflict("codegen", "its kernels do not overwrite their inputs"),
    ),
)


@dataclass(frozen=True, kw_only=True)
class InPlace(OptionGroup):
    """``in_place``: elementwise kernels may overwrite an input that dies."""

    in_place: bool = option(False, IN_PLACE)


@dataclass(frozen=True, kw_only=True)
class Views(OptionGroup):
    """The memory semantics of a graph.

    ``alias_copies``: copies that change no bytes are views. ``fold_concat``: readers of a concat
    read its inputs instead. ``in_place``: elementwise operators may overwrite an input that dies.
    """

    alias_copies: bool = option(
        False,
        Option(
            flag="--alias-copies",
            help="Treat copies that change no bytes (one-way SPLIT, reshape) as views.",
            group=HelpGroup.MEMORY,
            conflicts=OF_FILES,
        ),
    )
    fold_concat: bool = option(
        False,
        Option(
            flag="--fold-concat",
            help="Remove concats: their readers read the inputs instead.",
            group=HelpGroup.MEMORY,
            conflicts=OF_FILES,
        ),
    )
    in_place: bool = option(False, differing(IN_PLACE, conflicts=OF_FILES))


def slice_of(text: str) -> tuple[int, int]:
    """Return the indices of the first and the last operator of ``FIRST:LAST``."""
    first, colon, last = text.partition(":")
    if not (colon and first.isdigit() and last.isdigit()):
        raise InputError(
            f"--slice {text!r}: write FIRST:LAST, the indices of the first and last operator"
        )
    return int(first), int(last)


@dataclass(frozen=True, kw_only=True)
class Slice(OptionGroup):
    """``slice``: read only the operators from the first to the last, both included."""

    slice: tuple[int, int] | None = option(
        None,
        Option(
            flag="--slice",
            help="Read only these operators, both included.",
            group=HelpGroup.MODEL,
            metavar="FIRST:LAST",
            read=slice_of,
            conflicts=OF_FILES,
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Rewriting(OptionGroup):
    """``rewrite``: rules of ``SerenityRewrite`` ("all", or names); none by default."""

    rewrite: str = option(
        "",
        Option(
            flag="--rewrite",
            searched=True,
            help="Rewrite subgraphs to lower the peak before ordering.",
            group=HelpGroup.MEMORY,
            switch=ALL_RULES,
            conflicts=(
                *not_in_rows("its kernels accumulate into, or write parts of, unsplit tensors"),
                *not_in_steps("its kernels write parts of unsplit tensors"),
            ),
        ),
    )


RULES = Option(
    flag="--rules",
    help="Apply all rules, paper (SERENITY's two, wherever they match), or rules by name.",
    group=HelpGroup.MEMORY,
    metavar="NAMES",
)


@dataclass(frozen=True, kw_only=True)
class RewritingBy(Rewriting):
    """``rewrite``, and ``rules``: the rules to apply, if not all."""

    rules: str = option(
        ALL_RULES, differing(RULES, needs=(Need("rewrite", "it chooses among the rewrite rules"),))
    )


ALIGN = Option(
    flag="--align",
    help="Align every tensor in the arena to this.",
    group=HelpGroup.MEMORY,
    unit=BYTES,
)


@dataclass(frozen=True, kw_only=True)
class BuildMemory(InPlace, Rewriting):
    """Options of the memory of firmware.

    * ``order``: "best", or "given" for the model's own order. ``in_place``: kernels may overwrite
      an input that dies. ``overlap``: output rows may overlap dead rows of the input. ``rewrite``:
      rules of ``SerenityRewrite`` ("all", names), or "".
    * ``fast_memory_bytes``: tensors are computed on in so much of the fast memory, and streamed
      from and to the slower one, or accessed there.
    * ``constants``: "flash", or "ram", which they are copied to at start-up, for slow flash.
    * ``weights``: "fast" takes the fastest kernel of a layer, "small" one whose weights take the
      fewest bytes, without their zeros; "coded" also stores them in an entropy code, which each
      layer decodes into its workspace.
    * ``constants_limit_bytes``: with "small" and "coded" weights, layers keep faster weights as
      far as all constants fit into this, so that the least time is lost; if they cannot fit, all
      weights are as small as they can be.
    * ``arena_limit_bytes``: refuse a larger arena. ``stack_bytes``: stack to keep free.
      ``external_arena``: the caller passes the arena.
    """

    overlap: bool = option(
        False,
        Option(
            flag="--overlap",
            searched=True,
            help="Let output rows of a layer overlap dead rows of its input.",
            group=HelpGroup.MEMORY,
            conflicts=(
                *not_in_steps("rows are placed separately"),
                Conflict("codegen", "its kernels read and write in any order"),
            ),
        ),
    )
    order: str = option(
        BEST,
        Option(
            flag="--order",
            searched=True,
            help="Run operators in the best order, or in the given order of the model.",
            group=HelpGroup.MEMORY,
            choices=ORDERS,
            conflicts=(
                *not_in_rows("the order of the bands is the source of the saving"),
                *not_in_steps("a step has an order of its own"),
            ),
        ),
    )
    constants: str = option(
        FLASH,
        Option(
            flag="--constants",
            searched=True,
            help="Read constants from flash, or from ram: copied there at start-up, for boards "
            "whose "
            "flash is slower than the core.",
            group=HelpGroup.MEMORY,
            choices=CONSTANTS,
            conflicts=(
                *not_in_rows("bands are for devices with too little RAM for copies"),
                *not_in_steps("RAM is for retained rows"),
            ),
        ),
    )
    weights: str = option(
        FAST,
        Option(
            flag="--weights",
            searched=True,
            help="Store weights for the fastest kernels (fast), or in fewer bytes: without zeros "
            "where they are many (small), or in an entropy code too, which each layer decodes into "
            "the arena (coded).",
            group=HelpGroup.MEMORY,
            choices=WEIGHTS,
            conflicts=(
                Conflict("codegen", "the kernels with such weights are written in C"),
                *(
                    replace(one, mine=(CODED,))
                    for one in (
                        *not_in_rows("each call for rows would decode all weights"),
                        *not_in_steps("each step would decode all weights"),
                        Conflict("fast_memory_bytes", "decoded weights would evict tensors"),
                    )
                ),
            ),
        ),
    )
    constants_limit_bytes: int | None = option(
        None,
        Option(
            flag="--constants-limit",
            searched=True,
            help="With --weights small or coded: keep faster weights of as many layers as fit into "
            "this, those that save the most time.",
            group=HelpGroup.MEMORY,
            unit=BYTES,
            least=0,
            conflicts=(
                *not_in_rows("the costs of layers in bands depend on the bands"),
                *not_in_steps("the costs of layers in a step depend on its rows"),
                Conflict("weights", "all weights are the fastest then", values=(FAST,)),
            ),
        ),
    )
    arena_limit_bytes: int | None = option(
        None,
        Option(
            flag="--arena-limit",
            help="Refuse an arena above this size.",
            group=HelpGroup.MEMORY,
            unit=BYTES,
            least=0,
        ),
    )
    fast_memory_bytes: int | None = option(
        None,
        Option(
            flag="--fast-memory",
            help="Use at most this much of the board's fast memory: copy tensors from and to its "
            "slower memory (psram), or access them there, whichever moves fewer bytes.",
            group=HelpGroup.MEMORY,
            unit=BYTES,
            least=1,
            conflicts=(
                Conflict("stream_input", "its inputs are in the slower memory"),
                Conflict("recompute", "tiles of columns are in one memory"),
                *not_in_steps("retained rows are not copied"),
                Conflict("overlap", "tensors are copied whole"),
                Conflict("workspace", "workspace evicts tensors"),
                Conflict("ram_bytes", "it is the limit on RAM itself"),
                Conflict("format", "its linker script places both memories"),
            ),
        ),
    )
    external_arena: bool = option(
        False,
        Option(
            flag="--external-arena",
            help="Let the caller pass the arena, so that the code is re-entrant.",
            group=HelpGroup.MEMORY,
            conflicts=(
                Conflict("format", "callers of this format pass no arena", values=OWN_ARENA),
            ),
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Stack(OptionGroup):
    """``stack_bytes``: stack to keep free."""

    stack_bytes: int = option(
        STACK_BYTES,
        Option(
            flag="--stack",
            help="Keep this much stack free.",
            group=HelpGroup.MEMORY,
            unit=BYTES,
            least=0,
            most=2**31 - 1,
        ),
    )
