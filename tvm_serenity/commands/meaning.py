"""The memory semantics of a graph, as options of several commands set them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tvm_serenity.errors import InputError
from tvm_serenity.graph import Graph
from tvm_serenity.graph.reduced import Reduced, cut, unreduced
from tvm_serenity.options.memory import Slice, Views, slice_of


@dataclass(frozen=True, kw_only=True)
class Meaning(Views, Slice):
    """Copies as views, folded concats, in-place operators, and a slice of the graph."""

    @property
    def first(self) -> int:
        """The index in the file of the first operator of the slice."""
        return 0 if self.slice is None else self.slice[0]

    def apply(self, graph: Graph) -> Reduced:
        """Return the graph that is scheduled instead of ``graph``."""
        if self.slice is not None:
            graph = cut(graph, *self.slice)
        reduced = unreduced(graph)
        if not (self.alias_copies or self.fold_concat or self.in_place):
            return reduced
        from tvm_serenity.operators.sharing import (  # the records of operators load slowly
            alias_copies,
            fold_concat,
            in_place,
        )

        if self.alias_copies:
            reduced = alias_copies(reduced)
        if self.fold_concat:
            reduced = fold_concat(reduced)
        if self.in_place:
            reduced = in_place(reduced)
        return reduced

    def file_order(self, reduced: Reduced, order: tuple[int, ...]) -> tuple[int, ...]:
        """Return ``order``, an order of the scheduled graph, as operator indices of the file."""
        first, found = self.first, reduced.expand(order)
        return tuple(first + op for op in found) if first else found

    def choices(self) -> dict[str, object]:
        """Return the choices as ``--json`` prints them."""
        cut_text = None if self.slice is None else f"{self.slice[0]}:{self.slice[1]}"
        return {
            "alias_copies": self.alias_copies,
            "fold_concat": self.fold_concat,
            "in_place": self.in_place,
            "slice": cut_text,
        }


def meaning_of(choices: Mapping[str, Any]) -> Meaning:
    """Return the choices in JSON; raise :class:`InputError` for an invalid slice."""
    cut_text = choices.get("slice")
    if not isinstance(cut_text, str | None):
        raise InputError(f'slice {cut_text!r}: not a text; write "FIRST:LAST"')
    return Meaning(
        alias_copies=bool(choices.get("alias_copies")),
        fold_concat=bool(choices.get("fold_concat")),
        in_place=bool(choices.get("in_place")),
        slice=None if cut_text is None else slice_of(cut_text),
    )
