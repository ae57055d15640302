"""A lower bound on the arena over all orders, placements and band heights.

The bound for bands of one row also holds for taller bands. Proof: take any order of taller bands,
and replace each op by the ops of its single rows, one after the other. A row is live only while its
band is live, because the row's op runs during the band's op, and every reader of the row is part of
a reader of the band. The inputs, outputs and workspace of a row's op are part of the band's op. So
the order of rows has no higher peak than the order of bands, and an arena is never smaller than the
peak of its order. Where an output row may overlap a dying row (``Layer.over``), the peak subtracts
the largest possible saving. Only bands of one row overlap.

Arriving input rows are either stored, or read from the caller's memory. The bound is the smaller
one of these two cases. A certificate holds one order certificate (``schedule.certificate``) per
case; ``check_bound`` verifies it without a search.
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
    """A lower bound for a network: one entry of ``finest`` and ``orders`` per kind of input.

    The kinds are a resident input, or with ``streamed`` arriving rows that are stored or read from
    the caller's memory. ``finest`` is the network in bands of one row, ``orders`` its schedule.
    """

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
    """Return a lower bound on the arena of ``network`` over all band heights.

    The search takes one or two time limits. If an entry of ``known`` has bands of one row, its
    schedule is reused. Raises :class:`InputError` if ``streamed`` is set and the input cannot
    arrive row by row (see ``split``).
    """
    ordered = list(known)
    bands = _finest(network, streamed)
    orders = tuple(_ordered(banded, ordered, limits or Limits()) for banded in bands)
    return RowsBound(streamed, bands, orders)


def _ordered(finest: Banded, known: Sequence[Streaming], limits: Limits) -> Schedule:
    """Return the known schedule of ``finest`` with the highest bound, or search for a schedule."""
    same = [one.schedule for one in known if one.banded.graph == finest.graph]
    if same:
        return max(same, key=lambda schedule: schedule.lower_bound_bytes)
    return order_from(finest, segment_order(finest), limits)


def check_bound(network: Network, claims: Mapping[str, Any]) -> Confirmed:
    """Verify ``claims``, a certificate of ``RowsBound``, and return the confirmed values.

    The confirmed peak is the smallest peak of the certificate's orders. ``bound_checked`` is True
    only if the bound of every order was checked. Raises :class:`CheckError` for a wrong claim.
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
    """Return the network in bands of one row, once per kind of input (see :class:`RowsBound`)."""
    heights = heights_of(network, 1)
    first = split(network, heights, streamed=streamed)
    if first.feeding in (None, SOURCE):
        return (first,)
    return first, split(network, heights, streamed=True, kept=True)
