"""The constants of a program; constants with the same type and bytes are stored once."""

import numpy as np

from tvm_serenity.firmware.program import Array, Constant


class Constants:
    """The constants of a program, numbered in the order of their first use."""

    def __init__(self) -> None:
        self.all: list[Constant] = []
        self._numbers: dict[tuple[str, bytes], int] = {}

    def number(self, array: Array) -> int:
        """Return the number of the constant with the bytes of ``array``; add it if it is new."""
        array = np.ascontiguousarray(array)
        key = (str(array.dtype), array.tobytes())
        if key not in self._numbers:
            self._numbers[key] = len(self.all)
            self.all.append(Constant(f"c{len(self.all)}", array))
        return self._numbers[key]
