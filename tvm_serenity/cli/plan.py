"""``serenity plan``: place the buffers of a CSV file in one arena."""

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

    FILE.csv has the columns id,lower,upper,size and, optionally, alignment and offset. A buffer is
    live in the steps lower <= t < upper; a given offset is fixed. Exit status 1 if no placement
    fits --capacity.
    """
    result = plan(file, options, show.progress)
    if shown.json:
        show.print_json(result.json())
    else:
        show.console.print(str(result.plan))
    if result.plan.interrupted:
        show.end_interrupted("placement")
    if result.plan.outcome is Outcome.INFEASIBLE:
        raise typer.Exit(1)
