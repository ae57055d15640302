"""Arguments of several commands; options are fields of ``tvm_serenity.options``."""

from typing import Annotated

import typer

Model = Annotated[str, typer.Argument(metavar="MODEL", help="File, or zoo:NAME?param=value.")]
Board = Annotated[
    str, typer.Option("--board", metavar="NAME", help="A known board, or a .toml file.")
]
Directory = Annotated[str, typer.Argument(metavar="DIR", help="What serenity build wrote.")]
