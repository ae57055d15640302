"""``serenity check``: verify a certificate without the search that made it."""

import json as json_module
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from tvm_serenity.cli import app, show
from tvm_serenity.cli.models import Part, part, source
from tvm_serenity.cli.options import Dims, Json, Model, Signature
from tvm_serenity.cli.reduce import meaning
from tvm_serenity.errors import InputError
from tvm_serenity.files import read_text
from tvm_serenity.rows.bound import FORMAT, check_bound
from tvm_serenity.schedule.certificate import Confirmed, check_certificate

MAX_FILE_BYTES = 2**30


@app.command("check")
def check_command(
    model: Model,
    certificate: Annotated[
        str, typer.Argument(metavar="CERTIFICATE.json", help="From schedule or rows --certificate.")
    ],
    dim: Dims = None,
    signature: Signature = None,
    json: Json = False,
) -> None:
    """Verify a certificate: the order's peak, and the bound that no order can be below.

    One from serenity rows holds for every order, placement and height of bands.

    The peak is recomputed by a referee that shares no code with the search; a cut is computed
    again by networkx; a window or an exhausted search is searched again without the rules, or,
    when that takes too long, by the reference in Python: the verdict says which. Exit status 2
    where a claim is wrong.
    """
    claims = read_certificate(certificate)
    with show.progress(f"checking {certificate}"):
        found = _confirmed(model, certificate, claims, part(dim, signature))
    if json:
        show.print_json(
            {
                "model": model,
                "certificate": certificate,
                "peak_bytes": found.peak_bytes,
                "lower_bound_bytes": found.lower_bound_bytes,
                "bound_checked": found.bound_checked,
                "how": found.how,
            }
        )
        return
    bound = "confirmed" if found.bound_checked else "NOT confirmed"
    show.facts(
        f"{model}: {certificate}",
        {
            "peak": f"{found.peak_bytes:,} bytes, confirmed",
            "bound": f"{found.lower_bound_bytes:,} bytes, {bound}: {found.how}",
        },
    )


def _confirmed(model: str, certificate: str, claims: Mapping[str, Any], of: Part) -> Confirmed:
    """What is confirmed of an order's certificate, or of one for all bands of rows."""
    if claims.get("format") == FORMAT:
        from tvm_serenity.cli.rows import network_of

        how = bool(claims.get("graph_only")), bool(claims.get("recompute"))
        return check_bound(network_of(model, of, *how), claims)
    options = claims.get("options", {})
    if not isinstance(options, Mapping):
        raise InputError(f"{certificate}: its options are not an object")
    choices = meaning(
        bool(options.get("alias_copies")),
        bool(options.get("fold_concat")),
        bool(options.get("in_place")),
        options.get("slice"),
    )
    graph = choices.apply(source(model, of).file().graph).graph
    return check_certificate(graph, claims)


def read_certificate(path: str) -> dict[str, Any]:
    """Return the JSON object in a file; :class:`InputError` where it is none."""
    try:
        if Path(path).stat().st_size > MAX_FILE_BYTES:
            raise InputError(f"{path}: larger than {MAX_FILE_BYTES} bytes")
        claims = json_module.loads(read_text(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON ({error})") from None
    if not isinstance(claims, dict):
        raise InputError(f"{path}: is not a certificate")
    return claims
