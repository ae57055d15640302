"""``.pt2`` files, exported PyTorch programs, as graphs of their nodes.

Weights are loaded as numbers only: a file cannot run code of its own. Orders are of the program's
nodes; a file of another order is exported again, after ``torch.compile`` or another pass set it.
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
"""PyTorch's variable that refuses pickles which are more than tensors."""


@dataclass(frozen=True)
class ProgramFile:
    """An exported program as ``torch.export.save`` wrote it."""

    format: ClassVar[str] = "pt2"
    path: Path
    graph: Graph
    program: "torch.export.ExportedProgram"

    def reordered(self, order: Sequence[int]) -> bytes:
        """Refuse: PyTorch keeps no order of a program's nodes but that of its graph."""
        raise UnsupportedError(
            "a PyTorch program is not written in another order: compile or build it, or export it "
            "as .onnx"
        )

    def check_operators(self, integers: bool = True) -> None:
        """Every node is tried when the program is converted, which names what has no meaning."""


def read(path: Path, data: bytes) -> ProgramFile:
    """Return the program in ``data``.

    Raises :class:`InputError` for what is none, and :class:`MissingPartError` without PyTorch.
    """
    try:
        with with_torch():
            import torch
    except ImportError:
        raise MissingPartError(
            f"{path}: needs PyTorch: pip install 'tvm-serenity[torch]'"
        ) from None
    try:
        with with_torch(), _numbers_only():
            program = torch.export.load(io.BytesIO(data))
    except Exception as error:  # whatever its zip, JSON and tensors raise
        said = str(error).strip().splitlines()
        reason = said[0] if said else type(error).__name__
        raise InputError(f"no PyTorch program that can be read ({reason})") from error
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
