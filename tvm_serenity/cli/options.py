"""Arguments that several commands share; options are fields of ``tvm_serenity.options``."""

from typing import Annotated

import typer

from tvm_serenity.options.option import HelpGroup

BOARD_HELP = "Board or its chip (serenity boards), CORE:RAM:FLASH, or a .toml file."

Model = Annotated[str, typer.Argument(metavar="MODEL", help="File, or zoo:NAME?param=value.")]
Board = Annotated[
    str, typer.Option("--board", metavar="NAME", help=BOARD_HELP, rich_help_panel=HelpGroup.MODEL)
]
Directory = Annotated[str, typer.Argument(metavar="DIR", help="A project of serenity build.")]
