"""Arguments and options that several commands share."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, TypeVar

import typer

from tvm_serenity.errors import InputError
from tvm_serenity.sizes import size_bytes

T = TypeVar("T")


def sized(help: str, *names: str, least: int = 0) -> Any:
    """Return an option that takes a size in bytes, ``least`` or more (``tvm_serenity.sizes``)."""
    parser = partial(_size, least=least)
    return typer.Option(*names, metavar="SIZE", help=help, parser=parser)


def _size(text: str, least: int) -> int:
    try:
        return size_bytes(str(text), least)
    except InputError as error:
        raise typer.BadParameter(str(error)) from None


def value_of(name: str, read: Callable[[str], T], text: str) -> T:
    """Return what ``read`` makes of the option ``name``, which its error names."""
    try:
        return read(text)
    except InputError as error:
        raise typer.BadParameter(str(error), param_hint=f"'{name}'") from None


Model = Annotated[str, typer.Argument(metavar="MODEL", help="File, or zoo:NAME?param=value.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Dims = Annotated[
    list[str] | None,
    typer.Option(
        "--dim", metavar="NAME=SIZE", help="Size of a dimension by its name, or by INPUT:AXIS."
    ),
]
Signature = Annotated[
    str | None,
    typer.Option("--signature", metavar="NAME", help="Which entry point is read (.tflite)."),
]
Opaque = Annotated[
    list[str] | None,
    typer.Option(
        "--opaque", metavar="NAME=SIZE", help="Plan around operator NAME, which you compute."
    ),
]
Alias = Annotated[
    bool, typer.Option("--alias-copies", help="No-op copies (one-way SPLIT, reshape) are views.")
]
Fold = Annotated[
    bool, typer.Option("--fold-concat", help="Concats vanish: consumers read their inputs.")
]
InPlace = Annotated[
    bool, typer.Option("--in-place", help="Elementwise ops may overwrite an input that dies.")
]
WriteOver = Annotated[
    bool, typer.Option("--write-over", help="Layers may write over rows of their input once read.")
]
Slice = Annotated[
    str | None, typer.Option("--slice", metavar="FIRST:LAST", help="Only these ops, inclusive.")
]
MemoryLimit = Annotated[
    int | None,
    sized(
        "Memory of the search itself, like 500M or 2G. [default: a share of what is free]",
        "--memory-limit",
    ),
]
Rewrite = Annotated[
    bool, typer.Option("--rewrite", help="Rewrite subgraphs for a lower peak before ordering.")
]
Target = Annotated[
    str,
    typer.Option(
        metavar="TARGET",
        help="native: this machine's processor; llvm: any of its kind; or a target of TVM's.",
    ),
]
StreamInput = Annotated[
    bool, typer.Option("--stream-input", help="Input rows arrive one by one, as from a camera.")
]

Recompute = Annotated[
    float | None,
    typer.Option(
        "--recompute",
        metavar="FACTOR",
        help="Layers in tiles of columns, with up to so many times the products, like 1.15.",
    ),
]
Sliding = Annotated[
    int | None,
    typer.Option(
        "--sliding",
        metavar="ROWS",
        help="The input is a window that moves by so many rows: one step, with what is kept.",
    ),
]


def _seconds(value: float | None) -> float | None:
    if value is not None and not value >= 0:
        raise InputError(f"time_limit_s must be 0 or more, got {value}")
    return value


SEARCH_SHARE = 0.92
"""Of a time limit, for all searches: what is checked, printed and written after takes time too."""

TimeLimit = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        metavar="SECONDS",
        callback=_seconds,
        help="Stop with the best so far: for all that follows the reading of the model.",
    ),
]
