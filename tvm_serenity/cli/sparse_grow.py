"""``serenity sparse grow``: networks without temporary I/O, and the memory that they need."""

import typer

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.sparse import sparse_app
from tvm_serenity.commands.sparse_grow import GrowOptions, grow
from tvm_serenity.options.output import Shown


@command("grow", within=sparse_app)
def grow_command(options: GrowOptions, shown: Shown) -> None:
    """Grow a network that needs no temporary I/O with M values of fast memory, or examine one.

    Without a network, Compact Growth generates one for M. The command prints whether N + W reads
    and S writes are enough at M, the smallest M that the search finds (with an order as proof),
    and a lower bound of M. Exit status 1 if M is proved to be too small.

    [dim]Examples[/dim]
      serenity sparse grow --memory 100 -o grown.txt
      serenity sparse grow --edges net.txt --memory 40 --time-limit 5
    """
    grown = grow(options)
    if shown.json:
        show.print_json(grown.json())
    else:
        growth, output = grown.found, options.output
        answer = {True: "yes", False: "no, proved", None: "no order found"}[grown.computable]
        show.facts(
            grown.network.title(),
            {
                f"M = {options.memory} is enough": answer,
                "smallest M": f"{growth.memory} ({growth.outcome})",
                "lower bound of M": str(growth.least),
                **({"written to": output} if output else {}),
            },
        )
    if grown.computable is False:
        raise typer.Exit(1)
