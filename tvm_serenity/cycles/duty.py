"""The share of its time in which a core computes a stream, one call each hop."""

from dataclasses import dataclass
from typing import Any

Range = tuple[float, float]


@dataclass(frozen=True)
class DutyCycle:
    """The time of a call as a share of a hop, the time from one call to the next.

    ``milliseconds``: minimum and maximum time of the call. ``expected_ms``: the same, widened by
    the model's known error. With a share above 1 the core does not keep up with the stream.
    """

    hop_ms: float
    milliseconds: Range
    expected_ms: Range

    @property
    def share(self) -> Range:
        """Minimum and maximum share of the hop."""
        return self._of_hop(self.milliseconds)

    @property
    def expected(self) -> Range:
        """The share, widened by the model's error."""
        return self._of_hop(self.expected_ms)

    def _of_hop(self, times: Range) -> Range:
        low, high = (time / self.hop_ms for time in times)
        return low, high

    def json(self) -> dict[str, Any]:
        """Return the result as ``--json`` prints it."""
        return {"hop_ms": self.hop_ms, "share": list(self.share), "expected": list(self.expected)}

    def text(self) -> str:
        """Return the share in words."""
        shares = [
            f"{100 * low:.3g} to {100 * high:.3g} %" for low, high in (self.share, self.expected)
        ]
        wide = "" if shares[0] == shares[1] else f"; with the model's error {shares[1]}"
        late = " (too slow: the core falls behind)" if self.expected[1] > 1 else ""
        return f"{shares[0]} of a hop of {self.hop_ms:g} ms{wide}{late}"
