"""``serenity check``: verify a certificate independently of the search that wrote it."""

from dataclasses import asdict
from typing import Annotated

import typer

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.options import Model
from tvm_serenity.commands.check import CheckOptions, check
from tvm_serenity.offchip.transfers import ConfirmedTransfers
from tvm_serenity.options.output import Shown

Certificate = Annotated[
    str,
    typer.Argument(
        metavar="CERTIFICATE.json", help="From schedule or rows --certificate, or offchip --plan."
    ),
]


@command("check")
def check_command(
    model: Model, certificate: Certificate, options: CheckOptions, shown: Shown
) -> None:
    """Verify a certificate: the peak of its order, and the lower bound of every order.

    A certificate of serenity rows bounds every order, placement and band height. A plan of serenity
    offchip is replayed step by step on both memories.

    An independent checker, which shares no code with the search, recomputes the peak. networkx
    recomputes a cut. A window or an exhausted search is searched again without pruning rules or,
    if that takes too long, by the reference search in Python; the verdict names the method. Exit
    status 2 if a claim is wrong.
    """
    confirmed = check(model, certificate, options, show.progress)
    if isinstance(confirmed, ConfirmedTransfers):
        _show_transfers(model, certificate, confirmed, shown.json)
        return
    if shown.json:
        show.print_json(
            {
                "model": model,
                "certificate": certificate,
                "peak_bytes": confirmed.peak_bytes,
                "lower_bound_bytes": confirmed.lower_bound_bytes,
                "bound_checked": confirmed.bound_checked,
                "how": confirmed.method,
            }
        )
        return
    bound = "confirmed" if confirmed.bound_checked else "NOT confirmed"
    show.facts(
        f"{model}: {certificate}",
        {
            "peak": f"{confirmed.peak_bytes:,} bytes, confirmed",
            "bound": f"{confirmed.lower_bound_bytes:,} bytes, {bound}: {confirmed.method}",
        },
    )


def _show_transfers(model: str, plan: str, confirmed: ConfirmedTransfers, json: bool) -> None:
    """Print the confirmed claims of a transfer plan."""
    if json:
        show.print_json({"model": model, "certificate": plan, **asdict(confirmed)})
        return
    show.facts(
        f"{model}: {plan}",
        {
            "traffic": f"{confirmed.total_bytes:,} bytes, confirmed: "
            f"{confirmed.read_bytes:,} read, {confirmed.write_bytes:,} written",
            "in place": f"{confirmed.direct_bytes:,} of them by operators in slow memory",
            "moved": f"{confirmed.moved_bytes:,} bytes within fast memory",
            "memory": f"{confirmed.fast_bytes:,} bytes fast of {confirmed.capacity_bytes:,}, "
            f"{confirmed.slow_bytes:,} slow",
            "bound": f"{confirmed.compulsory_bytes:,} bytes compulsory, confirmed",
        },
    )
