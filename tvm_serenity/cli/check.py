"""``serenity check``: verify a certificate independently of the search that wrote it."""

from typing import Annotated

import typer

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.options import Model
from tvm_serenity.commands.check import CheckOptions, check
from tvm_serenity.options.output import Shown

Certificate = Annotated[
    str, typer.Argument(metavar="CERTIFICATE.json", help="From schedule or rows --certificate.")
]


@command("check")
def check_command(
    model: Model, certificate: Certificate, options: CheckOptions, shown: Shown
) -> None:
    """Verify a certificate: the peak of its order, and the lower bound of every order.

    A certificate of serenity rows bounds every order, placement and band height.

    An independent checker, which shares no code with the search, recomputes the peak. networkx
    recomputes a cut. A window or an exhausted search is searched again without pruning rules or,
    if that takes too long, by the reference search in Python; the verdict names the method. Exit
    status 2 if a claim is wrong.
    """
    confirmed = check(model, certificate, options, show.progress)
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
