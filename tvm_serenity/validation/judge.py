"""Who judges a network's results."""

from dataclasses import dataclass
from pathlib import Path

from tvm_serenity.validation.references.process import LIMIT_S
from tvm_serenity.validation.report import Tolerance
from tvm_serenity.validation.tolerances import FLOAT


@dataclass(frozen=True)
class Judge:
    """A runtime by name, the file (or its bytes) it loads, and how far floats may be apart.

    ``follow``: each of several runs goes on from the states that the one before has left.
    """

    runtime: str
    model: Path | bytes
    tolerance: Tolerance = FLOAT
    limit_s: float = LIMIT_S
    follow: bool = True
