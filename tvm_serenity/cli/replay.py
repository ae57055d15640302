"""``serenity replay``: run the reproducer of a wrong kernel again."""

from pathlib import Path
from typing import Annotated

import typer

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.commands.replay import replay

File = Annotated[Path, typer.Argument(help="serenity-wrong-KERNEL.npz, which an error names.")]


@command("replay")
def replay_command(file: File) -> None:
    """Run the reproducer of a wrong kernel again.

    Exit status 1 if the kernel is still wrong, 2 if FILE is not a reproducer.
    """
    show.console.print(replay(file))
