"""An estimate in one line, for ``serenity latency`` and at the end of ``build`` and ``run``."""

from dataclasses import dataclass

from tvm_serenity.boards import board
from tvm_serenity.cycles.emulate import installed
from tvm_serenity.cycles.estimate import CycleEstimate
from tvm_serenity.errors import SerenityError
from tvm_serenity.firmware.image import linkable
from tvm_serenity.firmware.latency import latency
from tvm_serenity.firmware.result import Project


def line(found: CycleEstimate) -> str:
    """Return an estimate in one line."""
    low, high = found.milliseconds
    least, most = found.expected_ms
    return (
        f"{low:.3g} to {high:.3g} ms at {found.clock_mhz} MHz ({found.claim}; "
        f"with {found.error_percent} % error {least:.3g} to {most:.3g})"
    )


@dataclass(frozen=True)
class Unpriced:
    """Why a project has no estimate; ``usual``: a part is missing, which is not worth a line."""

    reason: str
    usual: bool = True


def estimated(project: Project) -> CycleEstimate | Unpriced:
    """Return the estimate of a project, or why there is none.

    Its board has a timing, and Unicorn, the driver and a compiler are installed.
    """
    if not linkable() or not installed():
        return Unpriced("the extra 'firmware' or the board's compiler is not installed")
    if project.directory is None or not (project.directory / "Makefile").is_file():
        return Unpriced("it has no Makefile")
    try:
        target = board(project.metadata["board"])
        if target.timing is None:
            return Unpriced(f"{target.name} has no [timing]")
        return latency(project, target)
    except SerenityError as error:
        return Unpriced(str(error), usual=False)


def rows(found: CycleEstimate | Unpriced) -> dict[str, str]:
    """Return the line under "estimate", or why a program cannot be priced."""
    if isinstance(found, CycleEstimate):
        return {"estimate": line(found)}
    return {} if found.usual else {"not estimated": found.reason}
