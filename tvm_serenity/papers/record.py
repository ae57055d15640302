"""The records of a paper's figures and tables: its values, and ours."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Value = float | str | None
Kind = Literal["figure", "table"]
KINDS: tuple[Kind, ...] = ("figure", "table")


@dataclass(frozen=True)
class Budget:
    """The limits of a comparison.

    ``seeds``: random networks for each point. ``seconds``: time limit of each order search.
    """

    seeds: int = 1
    seconds: float = 2.0


@dataclass(frozen=True)
class PaperCell:
    """A value of the paper and ours: the quantity, both values, and why they differ.

    ``paper`` is None if the paper shows a bar or a point without a number; ``ours`` is None if the
    value cannot be computed here, and ``note`` says why.
    """

    quantity: str
    paper: Value
    ours: Value
    unit: str = ""
    note: str = ""

    @property
    def difference(self) -> float | None:
        """Return our value over the paper's, minus 1; None unless both are numbers."""
        if not isinstance(self.paper, int | float) or not isinstance(self.ours, int | float):
            return None
        return self.ours / self.paper - 1 if self.paper else None

    def json(self) -> dict[str, Any]:
        """Return the cell as a JSON object."""
        difference = self.difference
        return {
            "quantity": self.quantity,
            "paper": self.paper,
            "ours": self.ours,
            "unit": self.unit,
            "difference": None if difference is None else round(difference, 4),
            "note": self.note,
        }


@dataclass(frozen=True)
class Exhibit:
    """A figure or table of a paper.

    ``title``: what it shows. ``setting``: what ours computes, and on which networks. ``compute``
    returns the cells.
    """

    kind: Kind
    number: int
    title: str
    setting: str
    compute: Callable[[Budget], Sequence[PaperCell]]

    @property
    def name(self) -> str:
        """Return the exhibit's name, like "figure 10"."""
        return f"{self.kind} {self.number}"


@dataclass(frozen=True)
class Paper:
    """A paper, with the numbers of the figures and tables that are computed here."""

    name: str
    title: str
    authors: str
    venue: str
    figures: tuple[int, ...] = ()
    tables: tuple[int, ...] = ()

    def numbers(self, kind: Kind) -> tuple[int, ...]:
        """Return the numbers of its figures or tables."""
        return self.figures if kind == "figure" else self.tables
