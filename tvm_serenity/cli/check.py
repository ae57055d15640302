"""``serenity check``: verify a certificate without the search that made it."""

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
    """Verify a certificate: the order's peak, and the bound that no order can be below.

    One from serenity rows holds for every order, placement and height of bands.

    The peak is recomputed by a referee that shares no code with the search; a cut is computed
    again by networkx; a window or an exhausted search is searched again without the rules, or,
    when that takes too long, by the reference in Python: the verdict says which. Exit status 2
    where a claim is wrong.
    """
    found = check(model, certificate, options, show.progress)
    if shown.json:
        show.print_json(
            {
                "model": model,
                "certificate": certificate,
                "peak_bytes": found.peak_bytes,
                "lower_bound_bytes": found.lower_bound_bytes,
                "bound_checked": found.bound_checked,
                "how": found.method,
            }
        )
        return
    bound = "confirmed" if found.bound_checked else "NOT confirmed"
    show.facts(
        f"{model}: {certificate}",
        {
            "peak": f"{found.peak_bytes:,} bytes, confirmed",
            "bound": f"{found.lower_bound_bytes:,} bytes, {bound}: {found.method}",
        },
    )
