"""``plan``: place the buffers of a CSV file in one arena."""

from dataclasses import dataclass
from typing import Any

from tvm_serenity.commands.progress import SEARCH_SHARE, Progress, silent
from tvm_serenity.options.checks import Check
from tvm_serenity.options.memory import ALIGN
from tvm_serenity.options.option import BYTES, HelpGroup, Option, differing, option
from tvm_serenity.options.output import OUTPUT
from tvm_serenity.options.speed import TimeLimit
from tvm_serenity.plan import Plan, PlanOptions, check_plan, read_csv, write_csv
from tvm_serenity.plan import plan as placed
from tvm_serenity.search.deadline import within


@dataclass(frozen=True, kw_only=True)
class PlanFileOptions(TimeLimit, Check):
    """The options of ``plan``.

    ``capacity_bytes``: check whether a placement fits. ``align``: minimum alignment of each buffer.
    ``output``: the CSV file with offsets.
    """

    output: str | None = option(
        None, differing(OUTPUT, help="Write the CSV with a column of offsets here.")
    )
    capacity_bytes: int | None = option(
        None,
        Option(
            flag="--capacity",
            help="Check whether a placement fits this size.",
            group=HelpGroup.MEMORY,
            unit=BYTES,
        ),
    )
    align: int = option(1, differing(ALIGN, help="Minimum alignment of each buffer."))


@dataclass(frozen=True)
class PlannedFile:
    """The placement of the buffers of a file."""

    file: str
    buffers: int
    plan: Plan
    checked: bool

    def json(self) -> dict[str, Any]:
        """Return the result as ``--json`` prints it."""
        found = self.plan
        return {
            "model": self.file,
            "buffers": self.buffers,
            "lower_bound_bytes": found.lower_bound_bytes,
            "arena_bytes": found.arena_bytes if found.offsets or not self.buffers else None,
            "outcome": str(found.outcome),
            "method": found.method,
            "seconds": found.seconds,
            "statistics": dict(found.statistics),
            "checked": self.checked,
        }


def plan(file: str, options: PlanFileOptions | None = None, tell: Progress = silent) -> PlannedFile:
    """Return the placement of the buffers of ``file`` in the smallest arena that was found.

    The file has the columns id,lower,upper,size and optionally alignment and offset (fixed). The
    placement is written to ``options.output``.
    """
    options = options or PlanFileOptions()
    buffers = read_csv(file)
    limit = options.time_limit_s
    limit = PlanOptions().time_limit_s if limit is None else SEARCH_SHARE * limit
    with within(limit), tell(f"placing {len(buffers)} buffers") as line:
        found = placed(
            buffers,
            options=PlanOptions(
                capacity_bytes=options.capacity_bytes,
                alignment=options.align,
                time_limit_s=limit,
                progress=line,
                keep_on_interrupt=True,
            ),
        )
    if found.offsets or not buffers:
        if options.check:
            check_plan(buffers, found.offsets, options.capacity_bytes)
        if options.output is not None:
            write_csv(options.output, buffers, found.offsets, source=file)
    return PlannedFile(file, len(buffers), found, options.check)
