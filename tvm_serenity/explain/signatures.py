"""The entry points of a file, in words."""

from tvm_serenity.explain.claims import Claim, listed, quoted
from tvm_serenity.frontends.model_file import ModelFile

SIGNATURES = "signatures"


def signature_claims(file: ModelFile) -> list[Claim]:
    """Return which signature of a file with several was read, and what the others are called."""
    names, taken = getattr(file, "signatures", ()), getattr(file, "signature", "")
    others = [name for name in names if name != taken]
    if len(names) < 2 or not others:
        return []
    first = f"Signature {quoted(taken)}" if taken else "The first subgraph, which none names,"
    text = (
        f"{first} is read; the file has {listed(others, named=quoted)} beside "
        "(--signature NAME reads another)."
    )
    return [Claim(SIGNATURES, text, {"read": taken, "names": list(names)})]
