"""SerenityOptions: options of all passes of this package in a ``PassContext``."""

import tvm

from tvm_serenity.relax import in_force
from tvm_serenity.relax.in_force import Stated


class SerenityOptions(tvm.ir.instrument.PassInstrument):  # type: ignore[misc]
    """Options for all passes of this package that run under a ``PassContext``.

        with tvm.transform.PassContext(instruments=[SerenityOptions(time_limit_s=2.0)]):
            tvm.compile(mod, target, relax_pipeline=relax.get_pipeline("serenity"))

    1. ``time_limit_s`` limits SerenitySchedule and SerenityPlanMemory, also those of the pipeline
       ``serenity``. At the limit, each of them ends with the best result so far.
    2. ``method``, ``objective`` and ``on_chip_bytes`` are arguments of SerenitySchedule.
    3. ``validate``: False: the pipeline does not compare kernels with TVM's own kernels; a number:
       it compares them for at most this number of seconds.
    4. An argument of a pass takes precedence over these options. Of nested contexts, the innermost
       one with options takes precedence.

    The class is an instrument because ``PassContext(config=...)`` accepts only keys of TVM's own
    passes. Raises :class:`InputError` if an option has an invalid value.
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
        """Activate the options; TVM calls this at the start of the context."""
        in_force.enter(self._stated)

    def exit_pass_ctx(self) -> None:
        """Deactivate the options; TVM calls this at the end of the context."""
        in_force.leave()
