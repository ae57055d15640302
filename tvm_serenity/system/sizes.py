"""Sizes in text, as all options of the command line read them: ``65536``, ``64K``, ``1.5M``.

A size is a number of bytes, or a number with K, M or G, which are 1024, 1024**2 and 1024**3 bytes;
KB and KiB are the same as K. Lower case is allowed. A size must be a whole number of bytes.
"""

import re
from fractions import Fraction

from tvm_serenity.errors import InputError

UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
MAX_BYTES = 2**62
GRAMMAR = "write bytes, or a number with K, M or G (1024 each), like 64K, 64KiB or 1.5M"

_SIZE = re.compile(r"(\d{1,20}(?:\.\d{1,20})?) ?(?:([KMG])i?)?B?", re.IGNORECASE | re.ASCII)


def size_bytes(text: str, least: int = 0) -> int:
    """Return the bytes that ``text`` names; raise :class:`InputError` if below ``least``."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise InputError(f"size {text!r}: {GRAMMAR}")
    size = Fraction(match[1]) * UNITS[(match[2] or "").upper()]
    if size.denominator != 1:
        raise InputError(f"size {text!r}: not a whole number of bytes")
    if not least <= size <= MAX_BYTES:
        raise InputError(f"size {text!r}: out of range; write from {least} to {MAX_BYTES} bytes")
    return int(size)


def check_work_factor(factor: float) -> None:
    """Raise :class:`InputError` if ``factor`` on the multiply-accumulates is below 1."""
    if not 1.0 <= factor < float("inf"):
        raise InputError(
            f"--recompute {factor:g}: write the allowed factor on multiply-accumulates, 1 or more"
        )
