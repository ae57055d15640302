"""One bound for all bands: no order, placement or height of bands needs a smaller arena.

It is that of bands of one row. Take any order of taller bands and run each of its ops as the rows
that it makes, one after the other. A row is live only while its band is: it is made no earlier, by
an op that runs inside of the band's, and is read last by one of those that read the band. What an
op of one row reads, makes and works in is part of what the op of its band does. So the rows' order
has no higher peak, and a bound on the peaks of all orders of rows holds for those of bands; an
arena is no smaller than the peak of its order. Where rows may lie over rows that die as they are
made, as a network's layers say (``Layer.over``), the peaks count what that saves at most: at bands
of one row alone, as taller ones stay apart.

Rows of an input that arrives are taken in, or read from the caller's memory as they come: a bound
is the less of both. A certificate holds one of an order for each (``schedule.certificate``), which
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
    """Bands of one row, in each way the input may come, with the order that was found for them."""

    streamed: bool
    finest: tuple[Banded, ...]
    orders: tuple[Schedule, ...]

    @property
    def lower_bound_bytes(self) -> int:
        """No arena of the network is below, whatever its bands."""
        return min(found.lower_bound_bytes for found in self.orders)

    def certificate(self) -> dict[str, Any]:
        """What ``check_bound`` verifies, ready for ``json.dump``."""
        pairs = zip(self.finest, self.orders, strict=True)
        return {
            "format": FORMAT,
            "streamed": self.streamed,
            "lower_bound_bytes": self.lower_bound_bytes,
            "orders": [certificate(banded.graph, found) for banded, found in pairs],
        }


def rows_bound(
    network: Network,
    *,
    streamed: bool = False,
    limits: Limits | None = None,
    known: Iterable[Streaming] = (),
) -> RowsBound:
    """Return a bound for ``network`` in bands of any heights, within a time limit or two.

    Bands that are among the ``known`` ones were ordered already. Raises :class:`InputError` where
    the input cannot arrive by rows, as ``split`` does.
    """
    ordered = list(known)
    bands = _finest(network, streamed)
    found = tuple(_ordered(one, ordered, limits or Limits()) for one in bands)
    return RowsBound(streamed, bands, found)


def _ordered(finest: Banded, known: Sequence[Streaming], limits: Limits) -> Schedule:
    """The order among ``known`` ones with the best bound for the same bands, or one searched."""
    same = [one.schedule for one in known if one.banded.graph == finest.graph]
    if same:
        return max(same, key=lambda schedule: schedule.lower_bound_bytes)
    return order_from(finest, segment_order(finest), limits)


def check_bound(network: Network, claims: Mapping[str, Any]) -> Confirmed:
    """Confirm a certificate of ``network``, or raise :class:`CheckError` with what is wrong.

    The peak that is returned is the least of its orders of rows; the bound is checked only if that
    of every order is.
    """
    try:
        if claims["format"] != FORMAT:
            raise CheckError(f"not a certificate in the format {FORMAT!r}")
        streamed, bound, orders = claims["streamed"], claims["lower_bound_bytes"], claims["orders"]
        bands = _finest(network, bool(streamed))
        if not isinstance(orders, list) or len(orders) != len(bands):
            raise CheckError(f"{network.name}: {len(bands)} orders are to be certified")
        found = [check_certificate(b.graph, c) for b, c in zip(bands, orders, strict=True)]
    except (KeyError, TypeError) as error:
        raise CheckError(f"{network.name}: not a well-formed certificate ({error!r})") from error
    least = min(one.lower_bound_bytes for one in found)
    if bound != least:
        raise CheckError(f"{network.name}: the orders give a bound of {least}, not {bound}")
    return Confirmed(
        min(one.peak_bytes for one in found),
        least,
        all(one.bound_checked for one in found),
        "; ".join(dict.fromkeys(part.method for part in found)),
    )


def _finest(network: Network, streamed: bool) -> tuple[Banded, ...]:
    """The network in bands of one row, for each way in which its input may come."""
    heights = heights_of(network, 1)
    first = split(network, heights, streamed=streamed)
    if first.feeding in (None, SOURCE):
        return (first,)
    return first, split(network, heights, streamed=True, kept=True)
