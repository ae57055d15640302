"""Names and sizes among which the options of ``serenity build`` choose; imports nothing."""

PROJECT = "project"
FORMATS = (PROJECT, "mlf", "zephyr", "arduino")
"""The forms that firmware is written in (``firmware.forms``)."""
OWN_ARENA = ("mlf", "arduino")
"""Forms with the one static arena; their callers have no place to pass another."""

STACK_BYTES = 1024
"""Stack that is kept free by default; ``verify`` measures what is used."""
LIBRARY_BYTES = 128
"""What start-up code and the C library keep in RAM, at most (measured: newlib-nano)."""

FLASH, RAM = "flash", "ram"
CONSTANTS = (FLASH, RAM)
"""Where constants are read from: where they are stored, or the main memory they are copied to."""

NEEDED = "needed"
"""``rows``: bands, as rewriting and working in place, only where a network does not fit without."""
