"""The best build of a network for a board, found by trying what there is to choose.

    from tvm_serenity.fitting import FitGoal, fitted

    found = fitted("vww.tflite", "nucleo-l4r5zi", FitGoal(minimise="ram"))
    print(found.chosen.how, found.chosen.ram_bytes, found.lower_bound_bytes)

``candidates`` compiles the network in each way, ``measure`` links and times what may be worth it,
``choose`` keeps those that no other beats and takes the best for the goal, ``search`` does it all
within a time limit, and ``described`` says it as JSON.
"""

from tvm_serenity.fitting.choose import FitGoal, Fitted
from tvm_serenity.fitting.search import build_chosen, fitted

__all__ = ["FitGoal", "Fitted", "build_chosen", "fitted"]
