"""The parts of a graph: operators and tensors with sizes in bytes."""

from dataclasses import dataclass
from enum import StrEnum

MAX_BYTES = 2**63 - 1
"""Limit in bytes on any tensor, and on the sum of all tensors and workspaces."""


class Role(StrEnum):
    """The role of a tensor in memory."""

    ACTIVATION = "activation"
    CONSTANT = "constant"  # A weight.
    STATE = "state"  # A variable that persists between runs.
    EXTERNAL = "external"  # A computed tensor in memory that the caller provides.


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor; ``shape`` is None and ``dtype`` (numpy's name) is "" if they are unknown."""

    name: str
    size_bytes: int
    shape: tuple[int, ...] | None = None
    dtype: str = ""
    role: Role = Role.ACTIVATION


@dataclass(frozen=True, slots=True)
class Op:
    """An operator; all fields except ``name``, ``kind`` and byte counts are indices of tensors.

    The module's docstring defines the fields.
    """

    name: str
    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    workspace_bytes: int = 0
    view_of: int | None = None
    in_place: tuple[int, ...] = ()
    over: tuple[int, ...] = ()
    over_bytes: int = 0
