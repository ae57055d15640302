"""Programs that run again on a window that has moved: what stays from one step to the next."""

from dataclasses import dataclass

from tvm_serenity.sliding.steady import WINDOWS


@dataclass(frozen=True, slots=True)
class KeptRows:
    """Rows ``first`` to before ``end`` of a tensor lie one after the other, between steps too.

    At the start of a step each moves up by ``shift`` rows; the first ``shift`` ones are gone.
    ``stores``: where windows of other phases keep theirs but the first ``shift``, as offsets in
    the rows' region. At the start of a step they take turns: the last one's are moved to the rows'
    own place, the rows to the first one, and each other one's to the next.
    """

    tensor: int
    first: int
    end: int
    shift: int
    stores: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """A tensor that holds what the step before has ``made``; ``initial`` before the first one."""

    tensor: int
    made: int
    initial: int


@dataclass(frozen=True, slots=True)
class Moving:
    """The window moves by ``step`` rows; after ``steps_to_fill`` steps the first one is full."""

    step: int
    steps_to_fill: int
    kept: tuple[KeptRows, ...]
    states: tuple[State, ...] = ()

    @property
    def phases(self) -> int:
        """After how many steps the rows of every tensor are there again."""
        return 1 + max((len(rows.stores) for rows in self.kept), default=0)

    @property
    def steps(self) -> int:
        """Steps of a run that is verified."""
        return self.steps_to_fill + WINDOWS - 1
