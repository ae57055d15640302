"""The claim about the entry points of a file."""

from tvm_serenity.explain.claims import Claim, listed, quoted
from tvm_serenity.frontends.model_file import ModelFile

SIGNATURES = "signatures"


def signature_claims(file: ModelFile) -> list[Claim]:
    """Return the claim that names the read signature of a file and the others; [] for one."""
    names, taken = getattr(file, "signatures", ()), getattr(file, "signature", "")
    others = [name for name in names if name != taken]
    if len(names) < 2 or not others:
        return []
    first = f"Signature {quoted(taken)}" if taken else "The first subgraph, which has no name,"
    text = (
        f"{first} is read; the file also has {listed(others, named=quoted)} "
        "(--signature NAME reads another)."
    )
    return [Claim(SIGNATURES, text, {"read": taken, "names": list(names)})]
