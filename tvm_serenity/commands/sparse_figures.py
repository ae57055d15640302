"""``sparse figures``: the paper's figures 2 to 8."""

import json as json_text
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, replace
from pathlib import Path

from tvm_serenity.commands.sparse_network import ONNX, SECONDS_LIMIT
from tvm_serenity.errors import InputError
from tvm_serenity.options.option import HelpGroup, Option, OptionGroup, differing, option
from tvm_serenity.options.output import OUTPUT
from tvm_serenity.sparse.figures import FIGURES, QUICK, Effort, draw
from tvm_serenity.sparse.perceptron import from_onnx
from tvm_serenity.system.files import write_bytes
from tvm_serenity.system.plots import check_plot


def numbers_of(text: str) -> tuple[int, ...]:
    """Return the figure numbers of a comma-separated list."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdigit() and int(word) in FIGURES for word in words):
        raise InputError(f"--only {text!r}: write numbers from 2 to 8, like 2,5")
    return tuple(int(word) for word in words)


@dataclass(frozen=True, kw_only=True)
class FiguresOptions(OptionGroup):
    """The options of ``sparse figures``.

    ``only``: the figures. ``quick``: use small networks. ``seeds``: random networks per point.
    ``time_limit_s``: limit per order. ``onnx``: the pruned perceptron. ``format``: format of the
    files in the directory ``output``.
    """

    output: str = option(MISSING, differing(OUTPUT, metavar="DIR", help="Write the figures here."))
    only: tuple[int, ...] = option(
        tuple(FIGURES),
        Option(
            flag="--only",
            help="Figures from 2 to 8, like 2,5. [default: all]",
            group=HelpGroup.MODEL,
            metavar="NUMBERS",
            read=numbers_of,
        ),
    )
    quick: bool = option(
        False,
        Option(
            flag="--quick",
            help="Use small networks: a test run in seconds.",
            group=HelpGroup.SPEED,
        ),
    )
    seeds: int | None = option(
        None,
        Option(flag="--seeds", help="Random networks per point.", group=HelpGroup.SPEED, least=1),
    )
    time_limit_s: float | None = option(
        None, differing(SECONDS_LIMIT, help="Time limit per order. [default: 10]")
    )
    onnx: str | None = option(None, ONNX)
    format: str = option(
        "svg",
        Option(
            flag="--format",
            help="Format: svg, png or pdf.",
            check=lambda form: check_plot(f"figure.{form}"),
        ),
    )

    @property
    def work(self) -> Effort:
        """The networks of the figures, and the time limit."""
        effort = QUICK if self.quick else Effort()
        if self.seeds is not None:
            effort = replace(effort, seeds=self.seeds)
        if self.time_limit_s is not None:
            effort = replace(effort, seconds=self.time_limit_s)
        if self.onnx is not None:
            effort = replace(effort, perceptron=from_onnx(self.onnx))
        return effort


@dataclass(frozen=True)
class Drawn:
    """A written figure."""

    number: int
    title: str
    file: Path


def figures(options: FiguresOptions) -> Iterator[Drawn]:
    """Yield each regenerated figure of the paper, after writing figureN.svg and figureN.json."""
    effort, folder = options.work, Path(options.output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be created: {error.strerror}") from error
    for number in options.only:
        plate = FIGURES[number](effort)
        data = json_text.dumps(plate.json(), indent=1).encode()
        write_bytes(folder / f"figure{number}.json", data)
        file = folder / f"figure{number}.{options.format}"
        draw(plate, file)
        yield Drawn(number, plate.title, file)
