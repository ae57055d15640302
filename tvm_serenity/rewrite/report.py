"""What a rewrite run did and did not do, match by match."""

from collections.abc import Mapping
from dataclasses import dataclass

from tvm_serenity.rewrite.rule import Match


@dataclass(frozen=True)
class Entry:
    """One match: refused with a ``reason``, or with the peak before and after the rewrite.

    The peaks are of the best order of the part of the network around the match, in bytes, what
    is held across it included. ``peak_after_bytes`` of a match that is not worth it is what it
    would have made of the final network, None where no order within the peak was found in time.
    """

    match: Match
    reason: str = ""
    peak_before_bytes: int | None = None
    peak_after_bytes: int | None = None

    def json(self) -> dict[str, object]:
        """Return the entry as JSON has it."""
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
        """Return the report as JSON has it."""
        return {
            "applied": [e.json() for e in self.applied],
            "refused": [e.json() for e in self.refused],
            "rejected": [e.json() for e in self.rejected],
        }

    def lines(self) -> list[str]:
        """Return the report as text, a line a match."""
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
