"""``serenity plan``: offsets for buffers with live ranges, from CSV to CSV."""

from typing import Annotated

import typer

from tvm_serenity.cli import app, show
from tvm_serenity.cli.options import Json, TimeLimit, sized
from tvm_serenity.deadline import within
from tvm_serenity.outcome import Outcome
from tvm_serenity.plan import PlanOptions, check_plan, plan, read_csv, write_csv

SEARCH_SHARE = 0.92
"""Of the time limit: what is checked, printed and written after the search takes time as well."""


@app.command("plan")
def plan_command(
    file: Annotated[str, typer.Argument(metavar="FILE.csv", help="id,lower,upper,size[,...].")],
    output: Annotated[
        str | None, typer.Option("-o", "--output", help="Write the CSV with an offset column.")
    ] = None,
    capacity: Annotated[int | None, sized("Does it fit this many bytes?")] = None,
    align: Annotated[int, sized("Least alignment of every buffer.")] = 1,
    time_limit: TimeLimit = None,
    json: Json = False,
    check: Annotated[bool, typer.Option("--check", help="Verify by the naive checker.")] = False,
) -> None:
    """Place buffers in the smallest arena.

    FILE.csv has the columns id,lower,upper,size and optionally alignment and offset (fixed); a
    buffer is live in the steps lower <= t < upper. Exit status 1 when it does not fit --capacity.
    """
    buffers = read_csv(file)
    limit = PlanOptions().time_limit_s if time_limit is None else SEARCH_SHARE * time_limit
    with within(limit), show.progress(f"placing {len(buffers)} buffers") as report:
        found = plan(
            buffers,
            options=PlanOptions(
                capacity_bytes=capacity,
                alignment=align,
                time_limit_s=limit,
                progress=report,
                keep_on_interrupt=True,
            ),
        )
    placed = bool(found.offsets) or not buffers
    if check and placed:
        check_plan(buffers, found.offsets, capacity)
    if output is not None and placed:
        write_csv(output, buffers, found.offsets, source=file)
    if json:
        show.print_json(
            {
                "model": file,
                "buffers": len(buffers),
                "lower_bound_bytes": found.lower_bound_bytes,
                "arena_bytes": found.arena_bytes if placed else None,
                "outcome": str(found.outcome),
                "method": found.method,
                "seconds": found.seconds,
                "statistics": dict(found.statistics),
                "checked": check,
            }
        )
    else:
        show.console.print(str(found))
    if found.interrupted:
        show.end_interrupted("placement")
    if found.outcome is Outcome.INFEASIBLE:
        raise typer.Exit(1)
