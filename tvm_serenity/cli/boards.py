"""``serenity boards``: list the known boards, or those that the best build of a model fits."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from tvm_serenity.boards import Board
from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.commands.boards import BoardsOptions, ListedBoard, boards
from tvm_serenity.options.output import Shown
from tvm_serenity.system.times import milliseconds_text

BoardName = Annotated[
    str | None, typer.Argument(metavar="[BOARD]", help="A board or its chip, or a .toml file.")
]


@command("boards")
def boards_command(board_name: BoardName = None, *, options: BoardsOptions, shown: Shown) -> None:
    """List the known boards, show one of them, or list those that a model fits.

    A board of your own is a .toml file of the same form: serenity boards my-board.toml. With
    --fits, each board has the RAM, the flash with code and the milliseconds of the model's best
    build, which serenity build finds; the searches are kept in the cache.

    [dim]Examples[/dim]
      serenity boards nucleo-l4r5zi
      serenity boards --fits kws.tflite
    """
    listed = boards(board_name, options, show.progress)
    if shown.json:
        show.print_json({one.board.name: _json(one, options.fits is not None) for one in listed})
    elif options.fits is not None:
        _print_fits(options.fits, listed)
    elif board_name is not None:
        _show(listed[0].board)
    else:
        _print([one.board for one in listed])


def _print(listed: Sequence[Board]) -> None:
    table = _table("board", "core", "MHz", "RAM KiB", "flash KiB", "QEMU")
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


def _print_fits(model: str, listed: Sequence[ListedBoard]) -> None:
    """Print the boards that a model fits with the cost of its best build, then the others."""
    table = _table("board", "RAM", "of it", "flash", "of it", "ms")
    for one in listed:
        if one.best is not None and one.fits:
            build = one.best["build"]
            time = build["milliseconds"]
            table.add_row(
                one.board.name,
                f"{build['ram_bytes']:,}",
                f"{build['ram_bytes'] / one.board.ram_bytes:.0%}",
                f"{build['flash_bytes']:,}" + ("" if build["linked"] else " + code"),
                f"{build['flash_bytes'] / one.board.flash_bytes:.0%}",
                "-" if time is None else milliseconds_text(time[1]),
            )
    if table.row_count:
        show.console.print(table)
    rows = {}
    for one in listed:
        if one.best is not None and not one.fits:
            rows[one.board.name] = f"too small: {', '.join(one.best['short']) or 'a limit'} short"
        elif one.best is None:
            rows[one.board.name] = f"not built: {one.why_not}"
    show.facts(f"{model} fits {table.row_count} of {len(listed)} boards", rows)


def _table(*columns: str) -> Table:
    table = Table(box=None)
    for column in columns:
        right = column not in ("board", "core", "QEMU")
        table.add_column(column, justify="right" if right else "left", no_wrap=True)
    return table


def _json(one: ListedBoard, searched: bool) -> dict[str, object]:
    target = one.board
    facts = {k: v for k, v in asdict(target).items() if k not in ("file", "timing")}
    sizes = {
        "compiler": target.compiler,
        "ram_bytes": target.ram_bytes,
        "flash_bytes": target.flash_bytes,
    }
    found = {"best": one.best, "why_not": one.why_not} if searched else {}
    return {**facts, **sizes, **found}


def _show(target: Board) -> None:
    rows = {
        "core": f"{target.core.name} at {target.core.clock_mhz} MHz",
        "instructions": ", ".join(target.core.instructions),
        target.compiler or "compiler": target.gcc or "-",
        "source": target.source,
        "unsourced": ", ".join(target.unsourced) or "-",
        "QEMU": target.qemu or "-",
    }
    for region in target.regions:
        rows[region.name] = f"{region.kind}, {region.size_bytes:,} bytes at 0x{region.address:08x}"
    show.facts(target.title, rows)
