"""The constants of a program: equal bytes of one type are stored once."""

import numpy as np

from tvm_serenity.firmware.program import Array, Constant


class Constants:
    """Constants by number, in the order they were first asked for."""

    def __init__(self) -> None:
        self.all: list[Constant] = []
        self._numbers: dict[tuple[str, bytes], int] = {}

    def number(self, array: Array) -> int:
        """The number of the constant with the bytes of ``array``, made if there is none."""
        array = np.ascontiguousarray(array)
        key = (str(array.dtype), array.tobytes())
        if key not in self._numbers:
            self._numbers[key] = len(self.all)
            self.all.append(Constant(f"c{len(self.all)}", array))
        return self._numbers[key]
