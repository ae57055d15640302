"""``serenity sparse figures``: the paper's figures 2 to 8."""

import json as json_text
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tvm_serenity.cli import show
from tvm_serenity.cli.sparse import Onnx, sparse_app
from tvm_serenity.errors import InputError
from tvm_serenity.files import write_bytes
from tvm_serenity.plots import check_plot
from tvm_serenity.sparse.figures import FIGURES, QUICK, Effort, draw
from tvm_serenity.sparse.perceptron import from_onnx


@sparse_app.command("figures")
def figures_command(
    output: Annotated[str, typer.Option("-o", "--output", metavar="DIR", help="Where they go.")],
    only: Annotated[
        str | None, typer.Option(metavar="NUMBERS", help="Of 2 to 8, like 2,5. [default: all]")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small networks: whether it works, in seconds.")
    ] = False,
    seeds: Annotated[int | None, typer.Option(min=1, help="Random networks a point.")] = None,
    time_limit: Annotated[
        float | None,
        typer.Option("--time-limit", metavar="S", help="For an order. [default: 10]"),
    ] = None,
    onnx: Onnx = None,
    form: Annotated[str, typer.Option("--format", help="svg, png or pdf.")] = "svg",
) -> None:
    """Regenerate the paper's Figures 2 to 8, ours beside the paper's method.

    Writes figureN.svg and figureN.json with the numbers: medians over five
    random networks, least and largest. "start" is the 2-optimal order, "paper"
    its Connection Reordering (T = 10^6, ended by the time limit), "ours" the
    order "auto" (figures 2 to 6) or our execution (7 and 8). Figures 6 and 8
    prune random weights of BERT's shape, or the perceptron of --onnx.

    [dim]Examples[/dim]
      serenity sparse figures -o figures --only 2,3
      serenity sparse figures -o figures --quick
    """
    numbers = _numbers(only)
    check_plot(f"figure.{form}")
    effort = QUICK if quick else Effort()
    if seeds is not None:
        effort = replace(effort, seeds=seeds)
    if time_limit is not None:
        effort = replace(effort, seconds=time_limit)
    if onnx is not None:
        effort = replace(effort, perceptron=from_onnx(onnx))
    folder = Path(output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{output}: cannot be made: {error.strerror}") from error
    for number in numbers:
        plate = FIGURES[number](effort)
        data = json_text.dumps(plate.json(), indent=1).encode()
        write_bytes(folder / f"figure{number}.json", data)
        draw(plate, folder / f"figure{number}.{form}")
        show.console.print(f"figure {number}: {plate.title}: {folder}/figure{number}.{form}")


def _numbers(only: str | None) -> list[int]:
    if only is None:
        return list(FIGURES)
    words = [word.strip() for word in only.split(",")]
    if not all(word.isdigit() and int(word) in FIGURES for word in words):
        raise InputError(f"--only {only!r}: numbers of 2 to 8, like 2,5")
    return [int(word) for word in words]
