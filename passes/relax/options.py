"""SerenityOptions: options of our passes in a ``PassContext``."""

import tvm

from tvm_serenity.relax import in_force
from tvm_serenity.relax.in_force import Stated


class SerenityOptions(tvm.ir.instrument.PassInstrument):  # type: ignore[misc]
    """State options for all of our passes that run under a context.

        with tvm.transform.PassContext(instruments=[SerenityOptions(time_limit_s=2.0)]):
            tvm.compile(mod, target, relax_pipeline=relax.get_pipeline("serenity"))

    1. ``time_limit_s`` holds for each of SerenitySchedule and SerenityPlanMemory, the pipeline's
       as well: they end with the best found so far.
    2. ``method``, ``objective`` and ``on_chip_bytes`` are those of SerenitySchedule.
    3. ``validate``: False, and the pipeline does not compare kernels with TVM's own; a number, and
       it does for at most so many seconds.
    4. What a pass is constructed with wins; of nested contexts, the innermost that states any.

    An instrument, as ``PassContext(config=...)`` takes the keys of TVM's own passes alone. Raises
    :class:`InputError` where an option is none.
    """

    __slots__ = ("_stated",)

    def __init__(
        self,
        time_limit_s: float | None = None,
        method: str | None = None,
        objective: str | None = None,
        on_chip_bytes: int | None = None,
        validate: bool | float | None = None,
    ) -> None:
        super().__init__()
        self._stated = Stated(time_limit_s, method, objective, on_chip_bytes, validate)

    def enter_pass_ctx(self) -> None:
        """Begin the context."""
        in_force.enter(self._stated)

    def exit_pass_ctx(self) -> None:
        """End it."""
        in_force.leave()
