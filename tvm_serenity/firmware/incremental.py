"""Incremental inference: the rows and states that a program retains from step to step."""

from dataclasses import dataclass

from tvm_serenity.sliding.steady import WINDOWS

STEPS = 64
"""Number of consecutive steps on which a network without retained rows is verified."""


@dataclass(frozen=True, slots=True)
class KeptRows:
    """Retained rows of a tensor: rows ``first`` to ``end - 1``, which are contiguous.

    At the start of a step the rows move up by ``shift`` rows, and the first ``shift`` rows are
    dropped. If the stream has phases, each other phase has a store for its retained rows;
    ``stores`` are their offsets in the region of the rows. At the start of a step the phases
    rotate: the rows move to the first store, the content of each store to the next store, and the
    content of the last store to the place of the rows.
    """

    tensor: int
    first: int
    end: int
    shift: int
    stores: tuple[int, ...] = ()

    @property
    def rows(self) -> int:
        """The number of rows in memory, over all phases."""
        return self.end - self.first + len(self.stores) * (self.end - self.first - self.shift)


@dataclass(frozen=True, slots=True)
class State:
    """A tensor that receives tensor ``made`` after each step; ``initial``: its first value."""

    tensor: int
    made: int
    initial: int


@dataclass(frozen=True, slots=True)
class Moving:
    """The window moves by ``step`` rows; after ``steps_to_fill`` steps the first one is full.

    ``compared``: the number of windows of a run that is verified; None for the usual number.
    """

    step: int
    steps_to_fill: int
    kept: tuple[KeptRows, ...]
    states: tuple[State, ...] = ()
    compared: int | None = None

    @property
    def phases(self) -> int:
        """After how many steps the rows of every tensor are there again."""
        return 1 + max((len(rows.stores) for rows in self.kept), default=0)

    @property
    def windows(self) -> int:
        """Results of a run that is verified."""
        return self.compared or (WINDOWS if self.kept else STEPS)

    @property
    def steps(self) -> int:
        """Steps of a run that is verified."""
        return self.steps_to_fill + self.windows - 1
