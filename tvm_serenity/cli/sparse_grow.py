"""``serenity sparse grow``: networks without temporary I/O, and the memory that takes."""

import typer

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.sparse import sparse_app
from tvm_serenity.commands.sparse_grow import GrowOptions, grow
from tvm_serenity.options.output import Shown


@command("grow", within=sparse_app)
def grow_command(options: GrowOptions, shown: Shown) -> None:
    """Grow a network that M values compute without temporary I/O, or examine one.

    Without a network, Compact Growth makes one for M. Says whether N + W reads
    and S writes are enough at M, and the smallest M the search finds for that
    (with an order as proof) and the M it cannot be below. Exit status 1 where
    it is proved that M is too small.

    [dim]Examples[/dim]
      serenity sparse grow --memory 100 -o grown.txt
      serenity sparse grow --edges net.txt --memory 40 --time-limit 5
    """
    grown = grow(options)
    if shown.json:
        show.print_json(grown.json())
    else:
        found, output = grown.found, options.output
        answer = {True: "yes", False: "no, proved", None: "no order found"}[grown.computable]
        show.facts(
            grown.network.title(),
            {
                f"M = {options.memory} is enough": answer,
                "smallest M found": f"{found.memory} ({found.outcome})",
                "no M below": str(found.least),
                **({"written to": output} if output else {}),
            },
        )
    if grown.computable is False:
        raise typer.Exit(1)
