"""The reference runtime of a network: its name, model and tolerance."""

from dataclasses import dataclass
from pathlib import Path

from tvm_serenity.validation.references.process import LIMIT_S
from tvm_serenity.validation.report import Tolerance
from tvm_serenity.validation.tolerances import FLOAT


@dataclass(frozen=True)
class ReferenceSpec:
    """A reference runtime by name, the model it loads, and the tolerance of its results.

    ``model``: a file or its bytes. ``limit_s``: the time limit of one request in seconds.
    ``follow``: each run starts from the states that the previous run left.
    """

    runtime: str
    model: Path | bytes
    tolerance: Tolerance = FLOAT
    limit_s: float = LIMIT_S
    follow: bool = True
