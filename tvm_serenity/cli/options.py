"""Arguments that several commands share; options are fields of ``tvm_serenity.options``."""

from typing import Annotated

import typer

from tvm_serenity.options.board import BOARD
from tvm_serenity.options.option import HelpGroup

Model = Annotated[str, typer.Argument(metavar="MODEL", help="File, or zoo:NAME?param=value.")]
Board = Annotated[
    str | None,
    typer.Option(
        BOARD.flag, metavar=BOARD.metavar, help=BOARD.help, rich_help_panel=HelpGroup.MODEL
    ),
]
Directory = Annotated[str, typer.Argument(metavar="DIR", help="A project of serenity build.")]
