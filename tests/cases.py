"""How many cases the tests over seeds take: fewer where the native core runs under sanitizers.

A memory error shows in the first of them or in none; what the answers are, the plain build's tests
say, over all cases. ``scripts/sanitize.sh`` sets the variable.
"""

import os

SANITIZED = "SERENITY_SANITIZED" in os.environ


def cases(count: int, start: int = 0) -> range:
    """The seeds from ``start`` on, ``count`` of them, or a quarter."""
    return range(start, start + (-(-count // 4) if SANITIZED else count))
