"""``serenity boards``: the boards that are known."""

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
    str | None, typer.Argument(metavar="[BOARD]", help="One board, or a .toml file.")
]


@command("boards")
def boards_command(board_name: BoardName = None, *, shown: Shown) -> None:
    """List the boards that are known, or show one.

    A file of your own, in the same form, is given by its path: serenity boards my-board.toml.
    """
    found = boards(board_name)
    if shown.json:
        show.print_json({b.name: _json(b) for b in found})
        return
    if board_name is not None:
        _show(found[0])
        return
    table = Table(box=None)
    for column in ("board", "core", "MHz", "RAM KiB", "flash KiB", "QEMU"):
        right = column in ("MHz", "RAM KiB", "flash KiB")
        table.add_column(column, justify="right" if right else "left", no_wrap=True)
    for b in found:
        table.add_row(
            b.name,
            b.core.name,
            str(b.core.clock_mhz),
            f"{b.ram_bytes / 1024:g}",
            f"{b.flash_bytes / 1024:g}",
            b.qemu or "-",
        )
    show.console.print(table)


def _json(found: Board) -> dict[str, object]:
    facts = {k: v for k, v in asdict(found).items() if k not in ("file", "timing")}
    return {**facts, "ram_bytes": found.ram_bytes, "flash_bytes": found.flash_bytes}


def _show(found: Board) -> None:
    rows = {
        "core": f"{found.core.name} at {found.core.clock_mhz} MHz",
        "instructions": ", ".join(found.core.instructions),
        found.compiler: found.gcc,
        "source": found.source,
        "unsourced": ", ".join(found.unsourced) or "-",
        "QEMU": found.qemu or "-",
    }
    for r in found.regions:
        rows[r.name] = f"{r.kind}, {r.size_bytes:,} bytes at 0x{r.address:08x}"
    show.facts(found.title, rows)
