"""``serenity plan``: offsets for buffers with live ranges, from CSV to CSV."""

from typing import Annotated

import typer

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.commands.plan import PlanFileOptions, plan
from tvm_serenity.options.output import Shown
from tvm_serenity.search.outcome import Outcome

File = Annotated[str, typer.Argument(metavar="FILE.csv", help="id,lower,upper,size[,...].")]


@command("plan")
def plan_command(file: File, options: PlanFileOptions, shown: Shown) -> None:
    """Place buffers in the smallest arena.

    FILE.csv has the columns id,lower,upper,size and optionally alignment and offset (fixed); a
    buffer is live in the steps lower <= t < upper. Exit status 1 when it does not fit --capacity.
    """
    found = plan(file, options, show.progress)
    if shown.json:
        show.print_json(found.json())
    else:
        show.console.print(str(found.plan))
    if found.plan.interrupted:
        show.end_interrupted("placement")
    if found.plan.outcome is Outcome.INFEASIBLE:
        raise typer.Exit(1)
