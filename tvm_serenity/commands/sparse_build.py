"""``sparse build``: the firmware of a sparse network in an I/O-efficient order."""

import shlex
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_serenity.commands.sparse_network import subject
from tvm_serenity.commands.sparse_order import OrderSearch, Told, searched
from tvm_serenity.errors import InputError
from tvm_serenity.options.board import BoardOrChip
from tvm_serenity.options.checks import CheckedByDefault
from tvm_serenity.options.memory import Stack
from tvm_serenity.options.option import (
    HelpGroup,
    Option,
    described,
    differing,
    flags_of,
    option,
    options_of,
)
from tvm_serenity.options.output import PROJECT, SOURCES, BuildOutput, Directory, NamePrefix

if TYPE_CHECKING:
    from tvm_serenity.firmware.result import Project


@dataclass(frozen=True, kw_only=True)
class SparseBuildOptions(OrderSearch, BoardOrChip, Stack, NamePrefix, Directory, CheckedByDefault):
    """The options of ``sparse build``: the network, the search for its order, board and output.

    ``format``: one of ``SOURCES``. ``count_ios``: the firmware counts its reads and writes.
    """

    format: str = option(
        PROJECT,
        differing(
            described(BuildOutput, "format"),
            help="Write a project, or the format of another build system.",
            choices=SOURCES,
        ),
    )
    count_ios: bool = option(
        False,
        Option(
            flag="--count-ios",
            help="Count reads and writes on the core; the firmware has them as a second output, "
            "which verify compares with the prediction.",
            group=HelpGroup.CHECKS,
        ),
    )


def build(options: SparseBuildOptions, told: Told = lambda _network: nullcontext()) -> "Project":
    """Return the firmware project of a sparse network, after writing it to ``options.output``.

    ``facts["network"]`` describes the network, its bounds and the order. Raises
    :class:`InputError` without a board, and what ``firmware.sparse.building.build`` raises.
    """
    target = options.target
    if target is None:
        raise InputError("no board: give --board NAME, or --cpu CORE with --ram and --flash")
    asked = subject(options)
    from tvm_serenity.firmware.emit.project import check_target
    from tvm_serenity.firmware.sparse.building import SparseSettings
    from tvm_serenity.firmware.sparse.building import build as built

    if options.output is not None:
        check_target(Path(options.output), options.force)
    start, found = searched(asked, options, told)
    settings = SparseSettings(
        memory=options.memory,
        policy=options.policy,
        counted=options.count_ios,
        name=options.name or "sparse",
        stack_bytes=options.stack_bytes,
        check=options.check,
        format=options.format,
        output=options.output,
        force=options.force,
        command=_command(options),
    )
    project = built(asked.net, found.order, target, settings)
    network: dict[str, Any] = {
        "name": asked.name,
        **asked.facts(),
        "bounds": asked.bounds(),
        "order": found.method,
        "start": start.total,
        "total": found.total,
        "limit": found.limit or None,
    }
    return replace(project, facts={**project.facts, "network": network})


def _command(options: SparseBuildOptions) -> str:
    """Return the command that repeats the build, without its folder."""
    left_out = ("output", "force", "check")
    names = [name for name in options_of(SparseBuildOptions) if name not in left_out]
    words = ["serenity", "sparse", "build", *flags_of(options, names)]
    return shlex.join([*words, "-o", options.name or "sparse"])
