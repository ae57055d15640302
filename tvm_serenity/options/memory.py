"""Options on what shares memory, in which order operators run, and how large the arena may be."""

from dataclasses import dataclass

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
"""Where constants are read from: where they are stored, or the main memory they are copied to."""
BEST = "best"
ORDERS = (BEST, "given")

STACK_BYTES = 1024
"""Stack that is kept free by default; ``verify`` measures what is used."""
LIBRARY_BYTES = 128
"""What start-up code and the C library keep in RAM, at most (measured: newlib-nano)."""

ALL_RULES = "all"
_BY_RULES = "the rules choose copies, concats and operators in place themselves"
_IN_FILE = "what is written runs every operator of the file"
OF_FILES = (
    Conflict("plan", _IN_FILE),
    Conflict("runtime", _IN_FILE),
    Conflict("rewrite", _BY_RULES),
)
"""Conflicts of options that change what a graph means in memory, where an order is searched."""

IN_PLACE = Option(
    flag="--in-place",
    searched=True,
    help="Elementwise operators may overwrite an input that dies.",
    group=HelpGroup.MEMORY,
    conflicts=(
        *not_in_rows("bands are placed apart, no kernel overwrites one"),
        *not_in_steps("rows are placed apart, no kernel overwrites one"),
        Conflict("codegen", "its kernels do not overwrite their inputs"),
    ),
)


@dataclass(frozen=True, kw_only=True)
class InPlace(OptionGroup):
    """``in_place``: elementwise kernels may overwrite an input that dies."""

    in_place: bool = option(False, IN_PLACE)


@dataclass(frozen=True, kw_only=True)
class Views(OptionGroup):
    """What a graph means in memory.

    ``alias_copies``: copies that change nothing are views. ``fold_concat``: what reads a concat
    reads its inputs. ``in_place``: elementwise operators may overwrite an input that dies.
    """

    alias_copies: bool = option(
        False,
        Option(
            flag="--alias-copies",
            help="Copies that change nothing (one-way SPLIT, reshape) are views.",
            group=HelpGroup.MEMORY,
            conflicts=OF_FILES,
        ),
    )
    fold_concat: bool = option(
        False,
        Option(
            flag="--fold-concat",
            help="Concats vanish: consumers read their inputs.",
            group=HelpGroup.MEMORY,
            conflicts=OF_FILES,
        ),
    )
    in_place: bool = option(False, differing(IN_PLACE, conflicts=OF_FILES))


def slice_of(text: str) -> tuple[int, int]:
    """Return the first and the last operator that ``FIRST:LAST`` names."""
    first, colon, last = text.partition(":")
    if not (colon and first.isdigit() and last.isdigit()):
        raise InputError(f"--slice {text!r}: write FIRST:LAST, op indices, both included")
    return int(first), int(last)


@dataclass(frozen=True, kw_only=True)
class Slice(OptionGroup):
    """``slice``: only the operators from the first to the last, both included."""

    slice: tuple[int, int] | None = option(
        None,
        Option(
            flag="--slice",
            help="Only these operators, inclusive.",
            group=HelpGroup.MODEL,
            metavar="FIRST:LAST",
            read=slice_of,
            conflicts=OF_FILES,
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Rewriting(OptionGroup):
    """``rewrite``: rules of ``SerenityRewrite`` ("all", names), none by default."""

    rewrite: str = option(
        "",
        Option(
            flag="--rewrite",
            searched=True,
            help="Rewrite subgraphs for a lower peak before ordering.",
            group=HelpGroup.MEMORY,
            switch=ALL_RULES,
            conflicts=(
                *not_in_rows("its kernels add to, or write parts of, unsplit tensors"),
                *not_in_steps("its kernels write parts of unsplit tensors"),
            ),
        ),
    )


RULES = Option(
    flag="--rules",
    help="all, paper (SERENITY's two, wherever they match), or names of rules.",
    group=HelpGroup.MEMORY,
    metavar="NAMES",
)


@dataclass(frozen=True, kw_only=True)
class RewritingBy(Rewriting):
    """``rewrite``, and ``rules``: which of them, where not all."""

    rules: str = option(
        ALL_RULES, differing(RULES, needs=(Need("rewrite", "it names the rules of rewriting"),))
    )


ALIGN = Option(
    flag="--align",
    help="Alignment of every tensor in the arena.",
    group=HelpGroup.MEMORY,
    unit=BYTES,
)


@dataclass(frozen=True, kw_only=True)
class BuildMemory(InPlace, Rewriting):
    """What firmware keeps in memory, and where.

    * ``order``: "best", or "given", the model's own. ``in_place``: kernels may overwrite an input
      that dies. ``overlap``: results of unsplit layers, or rows, may lie over rows of their
      input that are dead. ``rewrite``: rules of ``SerenityRewrite`` ("all", names), or "".
    * ``constants``: "flash", or "ram", which they are copied to at start, where flash is slow.
    * ``arena_limit_bytes``: no larger arena. ``stack_bytes``: stack that is kept free.
      ``external_arena``: the caller passes the arena.
    """

    overlap: bool = option(
        False,
        Option(
            flag="--overlap",
            searched=True,
            help="Layers may write over rows of their input once read.",
            group=HelpGroup.MEMORY,
            conflicts=(
                *not_in_steps("rows are placed apart"),
                Conflict("codegen", "its kernels read and write in any order"),
            ),
        ),
    )
    order: str = option(
        BEST,
        Option(
            flag="--order",
            searched=True,
            help="best, or given: the model's own order.",
            group=HelpGroup.MEMORY,
            choices=ORDERS,
            conflicts=(
                *not_in_rows("the order of the bands is what saves memory"),
                *not_in_steps("the order of a step's rows is its own"),
            ),
        ),
    )
    constants: str = option(
        FLASH,
        Option(
            flag="--constants",
            searched=True,
            help="ram: copied there at start, for boards whose flash is slower than the core.",
            group=HelpGroup.MEMORY,
            choices=CONSTANTS,
            conflicts=(
                *not_in_rows("bands are for less RAM than that"),
                *not_in_steps("its memory is for what is kept"),
            ),
        ),
    )
    arena_limit_bytes: int | None = option(
        None,
        Option(
            flag="--arena-limit",
            help="Refuse an arena above this.",
            group=HelpGroup.MEMORY,
            unit=BYTES,
            least=0,
        ),
    )
    external_arena: bool = option(
        False,
        Option(
            flag="--external-arena",
            help="The caller passes the arena: re-entrant.",
            group=HelpGroup.MEMORY,
            conflicts=(Conflict("format", "its callers pass no arena", values=OWN_ARENA),),
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Stack(OptionGroup):
    """``stack_bytes``: stack that is kept free."""

    stack_bytes: int = option(
        STACK_BYTES,
        Option(
            flag="--stack",
            help="Stack to keep free.",
            group=HelpGroup.MEMORY,
            unit=BYTES,
            least=0,
            most=2**31 - 1,
        ),
    )
