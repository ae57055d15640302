"""What a graph means in memory, as options of several commands say it."""

from dataclasses import dataclass

from tvm_serenity.errors import InputError
from tvm_serenity.graph import Graph
from tvm_serenity.transform import Reduced, alias_copies, cut, fold_concat, in_place, whole


@dataclass(frozen=True)
class Meaning:
    """``first`` and ``last`` are the slice's ops; the flags are those of ``transform``."""

    alias_copies: bool = False
    fold_concat: bool = False
    in_place: bool = False
    first: int | None = None
    last: int | None = None

    def apply(self, graph: Graph) -> Reduced:
        """Return what is scheduled in place of ``graph``."""
        if self.first is not None and self.last is not None:
            graph = cut(graph, self.first, self.last)
        reduced = whole(graph)
        if self.alias_copies:
            reduced = alias_copies(reduced)
        if self.fold_concat:
            reduced = fold_concat(reduced)
        if self.in_place:
            reduced = in_place(reduced)
        return reduced

    def file_order(self, reduced: Reduced, order: tuple[int, ...]) -> tuple[int, ...]:
        """Return ``order`` of the scheduled graph as op indices of the file."""
        first, found = self.first or 0, reduced.expand(order)
        return tuple(first + op for op in found) if first else found

    def options(self) -> dict[str, object]:
        """Return the choices as JSON has them."""
        cut_text = None if self.first is None else f"{self.first}:{self.last}"
        return {
            "alias_copies": self.alias_copies,
            "fold_concat": self.fold_concat,
            "in_place": self.in_place,
            "slice": cut_text,
        }


def meaning(
    alias_copies: bool, fold_concat: bool, in_place: bool, slice_text: str | None
) -> Meaning:
    """Return the choices; :class:`InputError` where the slice is not FIRST:LAST."""
    if slice_text is None:
        return Meaning(alias_copies, fold_concat, in_place)
    first, colon, last = slice_text.partition(":")
    if not (colon and first.isdigit() and last.isdigit()):
        raise InputError(f"--slice {slice_text!r}: write FIRST:LAST, op indices, both included")
    return Meaning(alias_copies, fold_concat, in_place, int(first), int(last))
