"""``verify``: compare each tensor of a firmware project with TVM and the reference runtime."""

from dataclasses import dataclass
from typing import Any

from tvm_serenity.commands.progress import Progress, silent
from tvm_serenity.errors import InputError, WrongResultError
from tvm_serenity.firmware.check.verify import without_machine
from tvm_serenity.firmware.check.verify_report import report
from tvm_serenity.firmware.result import load
from tvm_serenity.options.checks import HOST, QEMU
from tvm_serenity.options.option import HelpGroup, Option, OptionGroup, option


@dataclass(frozen=True, kw_only=True)
class VerifyOptions(OptionGroup):
    """The options of ``verify``.

    ``host``, ``qemu``: run only there; neither: run on both. ``most_inputs``: inputs in QEMU.
    """

    host: bool = option(False, HOST)
    qemu: bool = option(False, QEMU)
    most_inputs: int | None = option(
        None,
        Option(
            flag="--inputs",
            help="Compare the outputs in QEMU on N inputs. [default: all recorded inputs, at most "
            "90, within a minute]",
            group=HelpGroup.CHECKS,
            metavar="N",
            least=1,
        ),
    )


@dataclass(frozen=True)
class Verified:
    """The comparison of a project with its reference, on the host and in QEMU."""

    directory: str
    name: str
    figures: dict[str, Any]

    def json(self) -> dict[str, Any]:
        """Return the result as ``--json`` prints it."""
        return self.figures

    def accept(self) -> None:
        """Raise :class:`WrongResultError` if a result differs."""
        for where in ("host", "qemu"):
            part = self.figures[where]
            if part is not None and not part["accepted"]:
                raise WrongResultError(f"{self.directory}, {where}: {_first(part)}")


def verify(
    directory: str, options: VerifyOptions | None = None, tell: Progress = silent
) -> Verified:
    """Return the comparison of each tensor of a project with its reference.

    Each tensor is compared as soon as it is written. Raises :class:`InputError` if ``directory`` is
    not a project, or if it shall run in QEMU alone and QEMU has no machine for its board.
    """
    options = options or VerifyOptions()
    project = load(directory)
    both = options.host == options.qemu
    if options.qemu and not both and project.metadata["qemu"] is None:
        raise InputError(without_machine(project))
    with tell("running and comparing every tensor"):
        found = report(
            project,
            on_host=options.host or both,
            on_qemu=options.qemu or both,
            inputs=options.most_inputs,
        )
    return Verified(directory, project.metadata["name"], found)


def _first(part: dict[str, Any]) -> str:
    """Return the first difference as text."""
    if part["first_difference"] is not None:
        return f"first wrong tensor: {part['first_difference']}"
    if part["input_difference"] is not None:
        return f"wrong {part['input_difference']}"
    if part["litert_difference"] is not None:
        return f"wrong against the model's runtime: {part['litert_difference']}"
    return "an output changes when tensors are traced"
