"""``serenity replay``: run a reproducer of a wrong kernel again."""

from pathlib import Path
from typing import Annotated

import typer

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.commands.replay import replay

File = Annotated[Path, typer.Argument(help="serenity-wrong-KERNEL.npz, as a refusal names it.")]


@command("replay")
def replay_command(file: File) -> None:
    """Run the reproducer of a wrong kernel again.

    Ends with 1 where the kernel is still wrong, with 2 where FILE is no reproducer.
    """
    show.console.print(replay(file))
