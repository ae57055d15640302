"""What becomes of one case of a conformance test, and how results are compared."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
TARGET = {"kind": "llvm", "opt-level": 0}
"""What cases are compiled for: the same kernels, without LLVM's optimisations."""
EQUAL, REFUSED, DIFFERENT, CRASHED = "equal", "refused", "different", "crashed"


@dataclass(frozen=True)
class Verdict:
    """What became of a case; ``detail`` is the refusal, the difference, or the traceback."""

    status: str
    detail: str = ""

    @property
    def is_right(self) -> bool:
        """Whether the result is equal, or refused in one line."""
        return self.status in (EQUAL, REFUSED)


def difference(found: Sequence[Array], expected: Sequence[Array], rtol: float, atol: float) -> str:
    """Return how ``found`` differs from ``expected``, or nothing where it does not.

    Types and shapes must be equal, and integers; floats within ``rtol`` and ``atol``, with equal
    infinities and NaNs.
    """
    if len(found) != len(expected):
        return f"{len(found)} outputs, expected {len(expected)}"
    for index, (got, want) in enumerate(zip(found, expected, strict=True)):
        if got.shape != want.shape or got.dtype != want.dtype:
            return f"output {index}: {got.dtype}{got.shape}, expected {want.dtype}{want.shape}"
        if got.dtype.kind in "biu":
            if not np.array_equal(got, want):
                return f"output {index}: {np.sum(got != want)} of {got.size} integers differ"
        elif not np.allclose(got, want, rtol=rtol, atol=atol, equal_nan=True):
            with np.errstate(all="ignore"):
                largest = np.nanmax(np.abs(got.astype(np.float64) - want.astype(np.float64)))
            return f"output {index}: differs by {largest:.3g}"
    return ""
