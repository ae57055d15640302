"""The report of a rewrite run, match by match."""

from collections.abc import Mapping
from dataclasses import dataclass

from tvm_serenity.rewrite.rule import Match


@dataclass(frozen=True)
class Entry:
    """One match: refused with a ``reason``, or with the peak before and after the rewrite.

    The peaks are those of the best order of the region around the match, in bytes, with the bytes
    live across it. For a rejected match, ``peak_after_bytes`` is the peak that it would give to the
    final net, None if no order within the peak was found in time.
    """

    match: Match
    reason: str = ""
    peak_before_bytes: int | None = None
    peak_after_bytes: int | None = None

    def json(self) -> dict[str, object]:
        """Return the entry as a JSON object."""
        result: dict[str, object] = {"rule": self.match.rule, "node": self.match.node}
        if self.match.form:
            result["form"] = self.match.form
        if self.reason:
            result["reason"] = self.reason
        if self.peak_before_bytes is not None:
            result["peak_before_bytes"] = self.peak_before_bytes
            result["peak_after_bytes"] = self.peak_after_bytes
        return result


@dataclass(frozen=True)
class Report:
    """All matches of a run: ``applied``, ``refused`` with reasons, ``rejected`` by their peaks."""

    applied: tuple[Entry, ...] = ()
    refused: tuple[Entry, ...] = ()
    rejected: tuple[Entry, ...] = ()

    def json(self) -> dict[str, list[Mapping[str, object]]]:
        """Return the report as a JSON object."""
        return {
            "applied": [e.json() for e in self.applied],
            "refused": [e.json() for e in self.refused],
            "rejected": [e.json() for e in self.rejected],
        }

    def lines(self) -> list[str]:
        """Return the report as text, one line per match."""
        result = []
        for verdict, entries in (
            ("applied", self.applied),
            ("refused", self.refused),
            ("not worth it", self.rejected),
        ):
            for e in entries:
                peaks = ""
                if e.peak_before_bytes is not None:
                    after = "?" if e.peak_after_bytes is None else f"{e.peak_after_bytes:,}"
                    peaks = f": peak {e.peak_before_bytes:,} -> {after}"
                result.append(
                    f"{verdict}: {e.match}{peaks}" + (f": {e.reason}" if e.reason else "")
                )
        return result
