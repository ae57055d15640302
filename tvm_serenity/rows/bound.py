"""A lower bound for all bands: no order, placement or band height needs a smaller arena.

It is the bound of bands of one row. Take any order of taller bands, and run each of its ops as the
single rows that it computes, one after the other. A row is live only while its band is: its op runs
inside the band's op, and its last reader is one of the band's readers. The inputs, outputs and
workspace of an op of one row are part of those of its band's op. So the order of rows has no higher
peak, and a bound on the peak of every order of rows holds for bands; an arena is at least the peak
of its order. Where an output row may overlap a dying row (``Layer.over``), the peaks subtract the
largest saving, for bands of one row alone: taller bands do not overlap.

Input rows that arrive are either stored, or read from the caller's memory; the bound is the smaller
of both. A certificate holds one order certificate for each (``schedule.certificate``), which
``check_bound`` verifies without the search.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm_serenity.errors import CheckError
from tvm_serenity.rows.limits import Limits
from tvm_serenity.rows.network import Network
from tvm_serenity.rows.segments import segment_order
from tvm_serenity.rows.split import SOURCE, Banded, heights_of, split
from tvm_serenity.rows.stream import Streaming, order_from
from tvm_serenity.schedule import Schedule
from tvm_serenity.schedule.certificate import Confirmed, certificate, check_certificate

FORMAT = "tvm-serenity rows certificate 1"


@dataclass(frozen=True)
class RowsBound:
    """Bands of one row, for each way in which the input may arrive, with the order of each."""

    streamed: bool
    finest: tuple[Banded, ...]
    orders: tuple[Schedule, ...]

    @property
    def lower_bound_bytes(self) -> int:
        """A lower bound on every arena of the network, whatever its bands."""
        return min(order.lower_bound_bytes for order in self.orders)

    def certificate(self) -> dict[str, Any]:
        """Return the certificate for ``check_bound``, ready for ``json.dump``."""
        pairs = zip(self.finest, self.orders, strict=True)
        return {
            "format": FORMAT,
            "streamed": self.streamed,
            "lower_bound_bytes": self.lower_bound_bytes,
            "orders": [certificate(banded.graph, order) for banded, order in pairs],
        }


def rows_bound(
    network: Network,
    *,
    streamed: bool = False,
    limits: Limits | None = None,
    known: Iterable[Streaming] = (),
) -> RowsBound:
    """Return a lower bound for ``network`` in bands of any heights.

    The search takes one or two time limits. Orders in ``known`` are reused for equal bands. Raises
    :class:`InputError` if the input cannot arrive by rows, as ``split`` does.
    """
    ordered = list(known)
    bands = _finest(network, streamed)
    orders = tuple(_ordered(banded, ordered, limits or Limits()) for banded in bands)
    return RowsBound(streamed, bands, orders)


def _ordered(finest: Banded, known: Sequence[Streaming], limits: Limits) -> Schedule:
    """Return the best known order for the same bands, or search one."""
    same = [one.schedule for one in known if one.banded.graph == finest.graph]
    if same:
        return max(same, key=lambda schedule: schedule.lower_bound_bytes)
    return order_from(finest, segment_order(finest), limits)


def check_bound(network: Network, claims: Mapping[str, Any]) -> Confirmed:
    """Return the confirmed claims of a certificate of ``network``.

    The peak is the smallest over its orders of rows; the bound counts as checked only if the bound
    of every order is. Raises :class:`CheckError`, which names the wrong claim.
    """
    try:
        if claims["format"] != FORMAT:
            raise CheckError(
                f"{network.name}: the certificate's format is {claims['format']!r}, not {FORMAT!r}"
            )
        streamed, bound, orders = claims["streamed"], claims["lower_bound_bytes"], claims["orders"]
        bands = _finest(network, bool(streamed))
        if not isinstance(orders, list) or len(orders) != len(bands):
            raise CheckError(f"{network.name}: the certificate must hold {len(bands)} orders")
        confirmed = [check_certificate(b.graph, c) for b, c in zip(bands, orders, strict=True)]
    except (KeyError, TypeError) as error:
        raise CheckError(
            f"{network.name}: the certificate is not well formed ({error!r})"
        ) from error
    least = min(one.lower_bound_bytes for one in confirmed)
    if bound != least:
        raise CheckError(f"{network.name}: the orders give a bound of {least} bytes, not {bound}")
    return Confirmed(
        min(one.peak_bytes for one in confirmed),
        least,
        all(one.bound_checked for one in confirmed),
        "; ".join(dict.fromkeys(part.method for part in confirmed)),
    )


def _finest(network: Network, streamed: bool) -> tuple[Banded, ...]:
    """Return the network in bands of one row, for each way in which its input may arrive."""
    heights = heights_of(network, 1)
    first = split(network, heights, streamed=streamed)
    if first.feeding in (None, SOURCE):
        return (first,)
    return first, split(network, heights, streamed=True, kept=True)
