"""``serenity build --rows``: firmware that runs a network row by row."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tvm_serenity.boards import Board
from tvm_serenity.cli import show
from tvm_serenity.cli.checking import Report, host_build, why_not
from tvm_serenity.cli.reduce import size_bytes
from tvm_serenity.cli.rows import described
from tvm_serenity.errors import InputError
from tvm_serenity.firmware.emit.c import C_TYPES
from tvm_serenity.firmware.emit.project import Files, Layout, metadata_json, write_project
from tvm_serenity.firmware.emit.trial import feeding_rows, trial_source
from tvm_serenity.firmware.fit import Fit, fit
from tvm_serenity.firmware.memory import LIBRARY_BYTES, Placed, rooms
from tvm_serenity.firmware.rehearsal import rehearse
from tvm_serenity.firmware.rows.project import layout_of, row_project
from tvm_serenity.firmware.rows.table import tables
from tvm_serenity.firmware.toolchain import have, make
from tvm_serenity.firmware.verify import REFERENCE, ULP_LIMIT, packed
from tvm_serenity.memory import profile
from tvm_serenity.rows.choose import Choice, Goal, at_most_in_memory, check_splittable, choose
from tvm_serenity.rows.split import heights_of
from tvm_serenity.rows.stream import Limits, Streaming, stream

if TYPE_CHECKING:
    from tvm_serenity.firmware.rows.program import RowProgram
    from tvm_serenity.relax.rows_read import RowModule

OFF, AUTO = "off", "auto"

Rows = Annotated[
    str,
    typer.Option(
        "--rows",
        metavar="N|auto|off",
        help="Run in bands of N rows; auto: the coarsest that fit, if it does not fit whole.",
    ),
]
BuildRam = Annotated[
    str | None,
    typer.Option("--ram", metavar="SIZE", help="With --rows: RAM in all, stack included."),
]


@dataclass(frozen=True)
class Request:
    """What to build: ``bands`` "auto" or a number, the input ``streamed`` or not, into ``ram``.

    ``arena_limit`` bounds the arena. ``whole_only`` are options given that row programs do not
    have. ``time_limit_s`` is for each search.
    """

    model: str
    board: Board
    name: str
    no_check: bool
    bands: str
    streamed: bool
    ram_bytes: int | None
    arena_limit: int | None
    stack_bytes: int
    whole_only: tuple[str, ...]
    time_limit_s: float
    notify: Callable[[str], None]

    @property
    def room_bytes(self) -> int:
        """Bytes an arena may take."""
        return min(rooms(self.board, self.stack_bytes)[0].arena_bytes, self.most_bytes)

    @property
    def most_bytes(self) -> int:
        """Bytes all arenas may take together, whatever the board has."""
        limits = [2**62]
        if self.ram_bytes is not None:
            limits.append(self.ram_bytes - self.stack_bytes - LIBRARY_BYTES)
        if self.arena_limit is not None:
            limits.append(self.arena_limit)
        return min(limits)

    @property
    def only_rows(self) -> bool:
        """Whether the network runs in rows even where it fits whole."""
        return self.bands not in (OFF, AUTO) or self.streamed

    def allows(self, arena_bytes: Mapping[str, int]) -> bool:
        """Whether arenas keep within the limits that were asked for."""
        return sum(arena_bytes.values()) <= self.most_bytes

    def check_options(self) -> None:
        """Raise :class:`InputError` where an option was given that row programs do not have."""
        if self.whole_only:
            raise InputError(f"a program in rows does not take {', '.join(self.whole_only)}")


def requested(rows: str, ram: str | None, streamed: bool, stack: int) -> int | None:
    """Check the options against each other; return the bytes of ``--ram``."""
    if rows not in (OFF, AUTO) and not (rows.isdigit() and int(rows) >= 1):
        raise InputError(f"--rows {rows!r}: write a number of rows from 1 on, {AUTO} or {OFF}")
    if rows == OFF and (ram is not None or streamed):
        raise InputError("--ram and --stream-input go with --rows N or --rows auto")
    if ram is None:
        return None
    given = size_bytes(ram)
    if given <= stack + LIBRARY_BYTES:
        raise InputError(
            f"--ram {ram}: stack ({stack:,} bytes) and C library ({LIBRARY_BYTES}) leave nothing "
            f"for tensors; give more than {stack + LIBRARY_BYTES:,} bytes, or a smaller --stack"
        )
    return given


def build_rows(module: Any, request: Request, output: str, *, force: bool, json: bool) -> None:
    """Write the project, or say what stands in the way and end with status 1."""
    from tvm_serenity.firmware.tir.rows import row_kernels, row_program
    from tvm_serenity.relax.rows_read import read_rows

    request.notify("reading rows")
    model = request.model
    rows = read_rows(module, request.name)
    alignment = request.board.core.alignment_bytes
    kernels = row_kernels(rows, alignment=alignment)
    check_splittable(kernels.network)
    request.notify("ordering and placing bands")
    chosen = _chosen(kernels.network, request)
    best = chosen.best
    region = rooms(request.board, request.stack_bytes)[0].region.name
    program = row_program(kernels, best, request.name, region, alignment)
    found = _fit(request, best, program, region)
    result = _result(chosen, request, model, program, found)
    fits = best.arena_bytes <= request.room_bytes and found.fits
    if fits:
        about = {"model": Path(model).name}
        layout = Layout(request.board, request.stack_bytes, False, about)
        files = row_project(program, layout)
        report, reference = _checked(rows, program, files, request, output)
        result["check"] = {**report.json(), "text": report.text()}
        layout = replace(layout, metadata={**about, "check": report.json()})
        files["metadata.json"] = metadata_json(program.program, layout_of(program, layout))
        files[REFERENCE] = packed(reference)

        def prepare(directory: Path) -> None:
            if have("make", "arm-none-eabi-gcc"):
                request.notify("compiling")
                make(directory, "all")

        write_project(files, output, force, prepare)
    if json:
        show.print_json({**result, "fits": fits})
    else:
        _print(result, best, found, request, output if fits else None)
    if not fits:
        raise typer.Exit(1)


def _checked(
    rows: "RowModule", program: "RowProgram", texts: Files, request: Request, output: str
) -> tuple[Report, dict[str, Any]]:
    """Compare row kernels and the whole network; return how, and what every row must be.

    ``texts`` are the files of the project.
    """
    from tvm_serenity.firmware.tir.row_reference import row_reference
    from tvm_serenity.firmware.tir.row_translation import row_cases
    from tvm_serenity.firmware.tir.translation import validate

    skipped = why_not(request.no_check)
    if skipped:
        request.notify("computing the reference")
        return Report(skipped=skipped), row_reference(rows, program, 0, request.model)
    feeding = None
    if program.streamed:
        known = program.banded.network.features[program.banded.network.inputs[0]]
        ctype = C_TYPES[known.dtype]
        feeding = feeding_rows(program.program, ctype, known.height, known.row_bytes)
    texts = {**texts, "trial.c": trial_source(program.program, False, feeding).encode()}
    with host_build(texts, {}) as started:
        request.notify("comparing kernels with TVM's")
        found = row_cases(rows, program)
        folder = Path(output).parent
        counted = validate(found, rows.executable, started, limit_ulp=ULP_LIMIT, folder=folder)
        request.notify("computing the reference")
        expected = row_reference(rows, program, 0, request.model)
        request.notify("comparing the whole network")
        ran = rehearse(started.library, texts, expected)
    return Report(counted.kernels, counted.sets, ran), expected


def _chosen(network: Any, request: Request) -> Choice:
    limits = Limits(request.time_limit_s)
    goal = Goal(max(request.room_bytes, 0))
    if request.bands == AUTO:
        return choose(network, goal, streamed=request.streamed, limits=limits)
    heights = heights_of(network, int(request.bands))
    found = stream(network, heights, streamed=request.streamed, limits=limits)
    found = at_most_in_memory(found, limits)
    return Choice(found, goal.met(found), (found,), found.seconds)


def _fit(request: Request, best: Streaming, program: "RowProgram", region: str) -> Fit:
    placed = Placed(
        best.ranges,
        (region,) * len(best.ranges),
        best.plan.offsets,
        {region: best.arena_bytes},
        best.arena_bytes <= request.room_bytes,
    )
    constants = program.program.constant_bytes + tables(program).size_bytes
    return fit(request.board, placed, constants, request.stack_bytes)


def _result(
    chosen: Choice, request: Request, model: str, program: "RowProgram", found: Fit
) -> dict[str, Any]:
    return {
        **described(chosen, model),
        "board": request.board.name,
        "room_bytes": request.room_bytes,
        "constant_bytes": program.program.constant_bytes,
        "table_bytes": tables(program).size_bytes,
        "calls": len(program.sequence),
        "kernels": len(program.program.kernels),
        "regions": [
            {
                "name": line.region,
                "need_bytes": line.need_bytes,
                "size_bytes": line.size_bytes,
                "shortfall_bytes": line.shortfall_bytes,
            }
            for line in found.lines
        ],
    }


def _print(
    result: dict[str, Any], best: Streaming, found: Fit, request: Request, output: str | None
) -> None:
    rows = {
        line.region: f"{line.need_bytes:,} of {line.size_bytes:,} bytes ({line.detail})"
        for line in found.lines
    }
    rows["arena"] = (
        f"{best.arena_bytes:,} bytes, {request.room_bytes:,} allowed; no order at these bands "
        f"needs less than {best.lower_bound_bytes:,}"
    )
    rows["rows in a band"] = result["rows"]
    rows["tables"] = f"{result['table_bytes']:,} bytes for {result['calls']:,} calls"
    if result["left_whole"]:
        rows["left whole"] = "; ".join(result["left_whole"])
    if output is None:
        live = profile(best.banded.graph, best.schedule.order).peak_ranges
        rows["alive at the peak"] = ", ".join(f"{r.name} {r.size_bytes:,}" for r in live[:8])
        show.facts(f"{result['model']} does not fit {request.board.name}, in rows either", rows)
        return
    rows["checked"] = result["check"]["text"]
    rows["next"] = f"serenity verify {output}"
    show.facts(f"{result['model']} on {request.board.name} in rows: {output}", rows)
