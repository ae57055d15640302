"""``verify``: every tensor of a firmware project against TVM and the model's runtime."""

from dataclasses import dataclass
from typing import Any

from tvm_serenity.commands.progress import Progress, silent
from tvm_serenity.errors import WrongResultError
from tvm_serenity.firmware.check.verify_report import report
from tvm_serenity.firmware.result import load
from tvm_serenity.options.checks import HOST, QEMU
from tvm_serenity.options.option import HelpGroup, Option, OptionGroup, option


@dataclass(frozen=True, kw_only=True)
class VerifyOptions(OptionGroup):
    """``host`` and ``qemu``: only there; neither: on both. ``most_inputs``: compared in QEMU."""

    host: bool = option(False, HOST)
    qemu: bool = option(False, QEMU)
    most_inputs: int | None = option(
        None,
        Option(
            flag="--inputs",
            help="Compare the outputs in QEMU on N inputs; by default on all that build recorded, "
            "90 at most, as long as QEMU takes no more than a minute.",
            group=HelpGroup.CHECKS,
            metavar="N",
            least=1,
        ),
    )


@dataclass(frozen=True)
class Verified:
    """What a project computes on the host and in QEMU, beside its reference."""

    directory: str
    name: str
    figures: dict[str, Any]

    def json(self) -> dict[str, Any]:
        """Return what JSON says of it."""
        return self.figures

    def accept(self) -> None:
        """Raise :class:`WrongResultError` where a result differs."""
        for where in ("host", "qemu"):
            part = self.figures[where]
            if part is not None and not part["accepted"]:
                raise WrongResultError(f"{self.directory}, {where}: {_first(part)}")


def verify(
    directory: str, options: VerifyOptions | None = None, tell: Progress = silent
) -> Verified:
    """Return how every tensor of a project compares with its reference, when it is written.

    Raises :class:`InputError` where the directory holds no project.
    """
    options = options or VerifyOptions()
    project = load(directory)
    both = options.host == options.qemu
    with tell("running and comparing every tensor"):
        found = report(
            project,
            on_host=options.host or both,
            on_qemu=options.qemu or both,
            inputs=options.most_inputs,
        )
    return Verified(directory, project.metadata["name"], found)


def _first(part: dict[str, Any]) -> str:
    """What is wrong first."""
    if part["first_difference"] is not None:
        return f"first wrong tensor: {part['first_difference']}"
    if part["input_difference"] is not None:
        return f"wrong {part['input_difference']}"
    if part["litert_difference"] is not None:
        return f"wrong against the model's runtime: {part['litert_difference']}"
    return "an output changes when tensors are traced"
