"""``check``: verify a certificate independently of the search that wrote it."""

import json as json_module
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm_serenity.commands.meaning import meaning_of
from tvm_serenity.commands.models import source
from tvm_serenity.commands.progress import Progress, silent
from tvm_serenity.errors import InputError
from tvm_serenity.offchip.transfers import FORMAT as TRANSFERS
from tvm_serenity.offchip.transfers import ConfirmedTransfers, check_transfers
from tvm_serenity.options.model import ReadOptions
from tvm_serenity.rows.bound import FORMAT, check_bound
from tvm_serenity.schedule.certificate import Confirmed, check_certificate
from tvm_serenity.system.files import read_text

MAX_FILE_BYTES = 2**30


@dataclass(frozen=True, kw_only=True)
class CheckOptions(ReadOptions):
    """The options of ``check``: how the model is read."""


def check(
    model: str, certificate: str, options: CheckOptions | None = None, tell: Progress = silent
) -> Confirmed | ConfirmedTransfers:
    """Check a certificate of ``schedule`` or ``rows``, or a plan; return its confirmed claims.

    ``certificate``: a JSON file with the claims and their proofs. Raises :class:`CheckError` if a
    claim is wrong.
    """
    claims = read_certificate(certificate)
    with tell(f"checking {certificate}"):
        return _confirmed(model, certificate, claims, options or CheckOptions())


def _confirmed(
    model: str, certificate: str, claims: Mapping[str, Any], reading: ReadOptions
) -> Confirmed | ConfirmedTransfers:
    """Return the confirmed claims about one order, all bands of rows, or transfers."""
    if claims.get("format") == TRANSFERS:
        return check_transfers(source(model, reading).file().graph, claims)
    if claims.get("format") == FORMAT:
        from tvm_serenity.commands.rows import network_of

        how = bool(claims.get("graph_only")), bool(claims.get("recompute"))
        return check_bound(network_of(model, reading, *how), claims)
    options = claims.get("options", {})
    if not isinstance(options, Mapping):
        raise InputError(f"{certificate}: 'options' is not a JSON object")
    choices = meaning_of(options)
    graph = choices.apply(source(model, reading).file().graph).graph
    return check_certificate(graph, claims)


def read_certificate(path: str) -> dict[str, Any]:
    """Return the JSON object in the file ``path``; raise :class:`InputError` if there is none."""
    try:
        if Path(path).stat().st_size > MAX_FILE_BYTES:
            raise InputError(f"{path}: larger than {MAX_FILE_BYTES:,} bytes")
        claims = json_module.loads(read_text(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON ({error})") from None
    if not isinstance(claims, dict):
        raise InputError(f"{path}: not a certificate (no JSON object)")
    return claims
