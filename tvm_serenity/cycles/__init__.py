"""Estimates the run time of a linked program on a board, without the board.

Unicorn (the extra ``cycles``) emulates the ELF file. A native driver computes the cycles of each
instruction from the core's timing table (``targets/cores/``) and the board's memory model
(``[timing]`` in its TOML file).

    from tvm_serenity.cycles import cycles_of

    estimate = cycles_of("kws/build/firmware.elf", board("nucleo-l4r5zi"), "kws_run")
    low, high = estimate.milliseconds
"""

from tvm_serenity.cycles.estimate import CycleEstimate, MeasuredCall, Spent, cycles_of

__all__ = ["CycleEstimate", "MeasuredCall", "Spent", "cycles_of"]
