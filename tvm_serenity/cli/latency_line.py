"""An estimate in one line, for ``serenity latency`` and at the end of ``build`` and ``run``."""

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


def rows(project: Project) -> dict[str, str]:
    """Return the line of a project under "estimate", none where nothing can be estimated.

    Its board has a timing, and Unicorn, the driver and a compiler are installed; why a program
    cannot be priced is said.
    """
    if not linkable() or not installed():
        return {}
    if project.directory is None or not (project.directory / "Makefile").is_file():
        return {}
    try:
        target = board(project.metadata["board"])
        if target.timing is None:
            return {}
        return {"estimate": line(latency(project, target))}
    except SerenityError as error:
        return {"not estimated": str(error)}
