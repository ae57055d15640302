"""``serenity boards``: list the known boards."""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from tvm_serenity.boards import Board
from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.commands.boards import boards
from tvm_serenity.options.output import Shown

BoardName = Annotated[
    str | None, typer.Argument(metavar="[BOARD]", help="Name of a board, or a .toml file.")
]


@command("boards")
def boards_command(board_name: BoardName = None, *, shown: Shown) -> None:
    """List the known boards, or show one of them.

    A board of your own is a .toml file of the same form: serenity boards my-board.toml
    """
    listed = boards(board_name)
    if shown.json:
        show.print_json({one.name: _json(one) for one in listed})
        return
    if board_name is not None:
        _show(listed[0])
        return
    table = Table(box=None)
    for column in ("board", "core", "MHz", "RAM KiB", "flash KiB", "QEMU"):
        right = column in ("MHz", "RAM KiB", "flash KiB")
        table.add_column(column, justify="right" if right else "left", no_wrap=True)
    for one in listed:
        table.add_row(
            one.name,
            one.core.name,
            str(one.core.clock_mhz),
            f"{one.ram_bytes / 1024:g}",
            f"{one.flash_bytes / 1024:g}",
            one.qemu or "-",
        )
    show.console.print(table)


def _json(target: Board) -> dict[str, object]:
    facts = {k: v for k, v in asdict(target).items() if k not in ("file", "timing")}
    return {**facts, "ram_bytes": target.ram_bytes, "flash_bytes": target.flash_bytes}


def _show(target: Board) -> None:
    rows = {
        "core": f"{target.core.name} at {target.core.clock_mhz} MHz",
        "instructions": ", ".join(target.core.instructions),
        target.compiler: target.gcc,
        "source": target.source,
        "unsourced": ", ".join(target.unsourced) or "-",
        "QEMU": target.qemu or "-",
    }
    for region in target.regions:
        rows[region.name] = f"{region.kind}, {region.size_bytes:,} bytes at 0x{region.address:08x}"
    show.facts(target.title, rows)
