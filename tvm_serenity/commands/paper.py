"""``paper``: a figure or table of a paper, its values beside ours."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm_serenity.commands.progress import Progress, silent
from tvm_serenity.commands.sparse_network import SECONDS_LIMIT
from tvm_serenity.options.option import Conflict, HelpGroup, Option, OptionGroup, differing, option
from tvm_serenity.papers import KINDS, Budget, Exhibit, Paper, PaperCell, exhibit
from tvm_serenity.papers import paper as known_paper

DEFAULT = Budget()


@dataclass(frozen=True, kw_only=True)
class PaperOptions(OptionGroup):
    """``figure``, ``table``: the number of what is computed; without either all are listed.

    ``seeds``: random networks for each point; ``time_limit_s``: of each order search. Both are for
    figures of sparse networks.
    """

    figure: int | None = option(
        None,
        Option(
            flag="--figure",
            help="Number of the figure to compute.",
            group=HelpGroup.MODEL,
            metavar="N",
            conflicts=(Conflict("table", "one exhibit is computed at a time"),),
        ),
    )
    table: int | None = option(
        None,
        Option(
            flag="--table",
            help="Number of the table to compute.",
            group=HelpGroup.MODEL,
            metavar="N",
        ),
    )
    seeds: int = option(
        DEFAULT.seeds,
        Option(
            flag="--seeds",
            help="Random networks for each point.",
            group=HelpGroup.SPEED,
            metavar="N",
            least=1,
        ),
    )
    time_limit_s: float = option(
        DEFAULT.seconds, differing(SECONDS_LIMIT, help="Time limit of each order search.")
    )


@dataclass(frozen=True)
class Listed:
    """The figures and tables of a paper that are computed here."""

    paper: Paper
    exhibits: Sequence[Exhibit]

    def json(self) -> dict[str, Any]:
        """Return the list as JSON has it."""
        return {
            "paper": self.paper.title,
            "exhibits": [{"exhibit": one.name, "title": one.title} for one in self.exhibits],
        }


@dataclass(frozen=True)
class Reproduced:
    """A figure or table, its values beside ours."""

    paper: Paper
    exhibit: Exhibit
    cells: Sequence[PaperCell]
    seconds: float

    def json(self) -> dict[str, Any]:
        """Return the comparison as JSON has it."""
        return {
            "paper": self.paper.title,
            "exhibit": self.exhibit.name,
            "title": self.exhibit.title,
            "setting": self.exhibit.setting,
            "cells": [cell.json() for cell in self.cells],
            "seconds": round(self.seconds, 3),
        }


def paper(
    name: str, options: PaperOptions | None = None, tell: Progress = silent
) -> Listed | Reproduced:
    """Return a figure or table of the paper ``name`` with ours beside it, or the list of them.

    Raises ``InputError`` for a paper, figure or table that is not known.
    """
    options = options or PaperOptions()
    found = known_paper(name)
    if options.figure is not None:
        asked = exhibit(name, "figure", options.figure)
    elif options.table is not None:
        asked = exhibit(name, "table", options.table)
    else:
        return Listed(found, [exhibit(name, k, n) for k in KINDS for n in found.numbers(k)])
    began = time.perf_counter()
    with tell(f"computing {asked.name}"):
        cells = asked.compute(Budget(options.seeds, options.time_limit_s))
    return Reproduced(found, asked, cells, time.perf_counter() - began)
