"""Milliseconds before flashing: the time of a linked program on a board, without the board.

Unicorn (the extra ``cycles``) emulates the ELF file. A native driver prices every instruction by a
table of the core (``targets/cores/``) and a model of the board's memories (``[timing]``).

    from tvm_serenity.cycles import cycles_of

    estimate = cycles_of("kws/build/firmware.elf", board("nucleo-l4r5zi"), "kws_run")
    low, high = estimate.milliseconds
"""

from tvm_serenity.cycles.estimate import CycleEstimate, MeasuredCall, Spent, cycles_of

__all__ = ["CycleEstimate", "MeasuredCall", "Spent", "cycles_of"]
