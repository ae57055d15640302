"""Arguments and options that several commands share."""

from typing import Annotated

import typer

Model = Annotated[str, typer.Argument(metavar="MODEL", help="File, or zoo:NAME?param=value.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Dims = Annotated[
    list[str] | None,
    typer.Option("--dim", metavar="NAME=SIZE", help="Size of a named dimension (.onnx)."),
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
Slice = Annotated[
    str | None, typer.Option("--slice", metavar="FIRST:LAST", help="Only these ops, inclusive.")
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        "--memory-limit",
        metavar="SIZE",
        help="Memory of the search itself, like 500M or 2G. [default: a share of what is free]",
    ),
]
Rewrite = Annotated[
    bool, typer.Option("--rewrite", help="Rewrite subgraphs for a lower peak before ordering.")
]
TimeLimit = Annotated[
    float | None, typer.Option("--time-limit", metavar="SECONDS", help="Stop with the best so far.")
]
