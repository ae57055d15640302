"""A latency estimate in one line, for ``serenity latency``, ``build`` and ``run``."""

from dataclasses import dataclass

from tvm_serenity.boards import board
from tvm_serenity.cycles.emulate import installed
from tvm_serenity.cycles.estimate import CycleEstimate
from tvm_serenity.errors import SerenityError
from tvm_serenity.firmware.board import image
from tvm_serenity.firmware.board.latency import latency
from tvm_serenity.firmware.result import Project
from tvm_serenity.system.times import range_text


def line(estimate: CycleEstimate) -> str:
    """Return the latency range, the clock and the error of ``estimate`` in one line."""
    return (
        f"{range_text(*estimate.milliseconds)} ms at {estimate.clock_mhz} MHz ({estimate.claim}; "
        f"with {estimate.error_percent} % error {range_text(*estimate.expected_ms)})"
    )


@dataclass(frozen=True)
class Unpriced:
    """The reason why a project has no estimate.

    ``usual``: an optional dependency or a board model is missing; the commands do not print this.
    """

    reason: str
    usual: bool = True


def estimated(project: Project) -> CycleEstimate | Unpriced:
    """Return the latency estimate of a project, or the reason why there is none.

    An estimate needs a board with a timing model, Unicorn, the driver and the board's compiler.
    """
    if not image.linkable(project.metadata["architecture"]) or not installed():
        return Unpriced("the extra 'firmware' or the board's compiler is not installed")
    if project.directory is None or not (project.directory / "Makefile").is_file():
        return Unpriced("the project has no Makefile")
    try:
        target = board(project.metadata["board"])
        if target.timing is None:
            return Unpriced(f"{target.name} has no [timing]")
        return latency(project, target)
    except SerenityError as error:
        return Unpriced(str(error), usual=False)


def rows(estimate: CycleEstimate | Unpriced) -> dict[str, str]:
    """Return the row "estimate", or the row "not estimated" with the reason."""
    if isinstance(estimate, CycleEstimate):
        return {"estimate": line(estimate)}
    return {} if estimate.usual else {"not estimated": estimate.reason}
