"""``.pt2`` files, exported PyTorch programs, as graphs of their nodes.

Weights are loaded as numbers only, so that a file cannot run code. Orders are of the program's
nodes; to store another order, export the program again after ``torch.compile`` or another pass.
"""

import io
import os
import warnings
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tvm_serenity.errors import InputError, MissingPartError, UnsupportedError
from tvm_serenity.frontends.torch_nodes import read_program
from tvm_serenity.graph import Graph
from tvm_serenity.without_torch import with_torch

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

NUMBERS_ONLY = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
"""PyTorch's environment variable that refuses pickles with more than tensors."""


@dataclass(frozen=True)
class ProgramFile:
    """An exported program as ``torch.export.save`` wrote it."""

    format: ClassVar[str] = "pt2"
    path: Path
    graph: Graph
    program: "torch.export.ExportedProgram"

    def reordered(self, order: Sequence[int]) -> bytes:
        """Refuse: PyTorch stores no order of nodes other than the graph's."""
        raise UnsupportedError(
            "a PyTorch program cannot be written in another order; compile or build it, "
            "or export it as .onnx"
        )

    def check_operators(self, integers: bool = True) -> None:
        """Do nothing: the conversion of the program names unsupported nodes."""


def read(path: Path, data: bytes) -> ProgramFile:
    """Return the program in ``data``.

    Raises :class:`InputError` if it is no program, and :class:`MissingPartError` without PyTorch.
    """
    try:
        with with_torch():
            import torch
    except ImportError:
        raise MissingPartError(
            f"{path}: reading it needs PyTorch; run pip install 'tvm-serenity[torch]'"
        ) from None
    try:
        with with_torch(), _numbers_only():
            program = torch.export.load(io.BytesIO(data))
    except Exception as error:  # torch, zipfile and json raise many types
        said = str(error).strip().splitlines()
        reason = said[0] if said else type(error).__name__
        raise InputError(f"not a readable PyTorch program ({reason})") from error
    return ProgramFile(path, read_program(program).graph.replace(name=path.name), program)


@contextmanager
def _numbers_only() -> "Iterator[None]":
    before = os.environ.get(NUMBERS_ONLY)
    os.environ[NUMBERS_ONLY] = "1"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        os.environ.pop(NUMBERS_ONLY)
        if before is not None:
            os.environ[NUMBERS_ONLY] = before
