"""``serenity sparse build``: firmware of a sparse network in an I/O-efficient order."""

from typing import TYPE_CHECKING

import typer

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.projects import advice, regions
from tvm_serenity.cli.sparse import sparse_app
from tvm_serenity.cli.sparse_order import progress
from tvm_serenity.commands.sparse_build import SparseBuildOptions, build
from tvm_serenity.errors import FitError
from tvm_serenity.options.output import Shown

if TYPE_CHECKING:
    from tvm_serenity.firmware.result import Project


@command("build", within=sparse_app, required=("output",))
def build_command(options: SparseBuildOptions, shown: Shown) -> None:
    """Write firmware that computes a sparse network in an I/O-efficient order of its connections.

    The search of sparse order finds the order for M values of fast memory. The firmware holds M
    values beside slow memory (weights, inputs, spilled sums), and reads and writes exactly what the
    simulator predicts. Before DIR is written, the program runs on this machine: outputs must equal
    float32 sums in that order bit by bit, and its counted reads and writes the predicted ones.
    serenity run and serenity verify take DIR.

    [dim]Examples[/dim]
      serenity sparse build --mlp 60x3 --density 0.1 --board netduinoplus2 -o net
      serenity sparse build --onnx a.onnx --density 0.05 --board esp32-c3 -o net
      serenity sparse build --edges a.txt --board qemu-virt --count-ios -o net
    """
    try:
        project = build(options, progress)
    except FitError as error:
        if shown.json:
            show.print_json(error.facts)
        else:
            show.facts(str(error), regions(error.facts))
        raise typer.Exit(1) from None
    if shown.json:
        show.print_json(project.facts)
    else:
        _print(project, options)
    if project.facts["network"]["limit"] == "interrupt":
        show.end_interrupted("order")


def _print(project: "Project", options: SparseBuildOptions) -> None:
    facts = project.facts
    network, found = facts["network"], facts["sparse"]
    least, total = network["bounds"]["total"], found["reads"] + found["writes"]
    rows = {
        "I/Os": f"{total:,}: {found['reads']:,} reads, {found['writes']:,} writes; "
        f"{total / least:.4f} times the bound",
        "order": network["order"],
        "fast memory": f"{found['slots']:,} values and the connection, of {found['memory']:,}; "
        f"{found['spilled']:,} values spilled",
        **regions(facts),
        "checks": facts["check"]["text"],
        "next": advice(options.format, str(options.output), project.metadata["name"]),
    }
    show.facts(f"{network['name']} on {facts['board']}: {options.output}", rows)
