"""The search for the best build of a network for a board.

    from tvm_serenity.fitting import FitGoal, fitted

    found = fitted("vww.tflite", "nucleo-l4r5zi", FitGoal(minimise="ram"))
    print(found.chosen.strategy, found.chosen.ram_bytes, found.lower_bound_bytes)

``candidates`` compiles the network with each strategy, ``measure`` links and times the promising
builds, ``choose`` keeps the Pareto front and takes the best build for a ``goal``, ``search`` does
all of this within a time limit, and ``described`` converts the result to JSON.
"""

from typing import TYPE_CHECKING

from tvm_serenity.system.lazy import lazily

if TYPE_CHECKING:
    from tvm_serenity.fitting.choose import Fitted
    from tvm_serenity.fitting.goal import FitGoal
    from tvm_serenity.fitting.search import build_chosen, fitted

_LAZY = {
    "FitGoal": "tvm_serenity.fitting.goal",
    "Fitted": "tvm_serenity.fitting.choose",
    "build_chosen": "tvm_serenity.fitting.search",
    "fitted": "tvm_serenity.fitting.search",
}
"""The modules of the public names, which are imported at first use."""
__all__ = ["FitGoal", "Fitted", "build_chosen", "fitted"]

__getattr__, __dir__ = lazily(__name__, _LAZY)
