"""Builds programs: equal kernels and constants once, the arguments of calls, tensor names."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tvm_serenity.firmware.compile.constants import Constants
from tvm_serenity.firmware.compile.interface import Known, named
from tvm_serenity.firmware.program import Argument, Const, Data, Kernel, Place, Program, Scratch
from tvm_serenity.firmware.select.lowered import LoweredLayer


class ProgramMaker:
    """Collects the kernels and constants of a program while its steps are built."""

    def __init__(self) -> None:
        self.constants = Constants()
        self.used: dict[str, Kernel] = {}

    def kernel(self, made: Kernel, shares: str = "") -> str:
        """Return the unique name of a kernel in the program.

        ``shares``: "in_place" or "over" if its result shares bytes with its parameters, else "".
        """
        if shares and made.restrict:
            made = replace(made, name=f"{made.name}_{shares}", restrict=False)
        name, count = made.name, 1
        while self.used.setdefault(name, replace(made, name=name)) != replace(made, name=name):
            count += 1
            name = f"{made.name}_{count}"
        return name

    def passed(self, code: LoweredLayer) -> list[Any]:
        """Return the constant arguments of the kernels of a layer."""
        return [Const(self.constants.number(array)) for array in code.constants]

    def unsplit_call(
        self,
        code: LoweredLayer,
        inputs: Sequence[int],
        outputs: Sequence[int],
        scratch: Scratch | None,
    ) -> tuple[Argument, ...]:
        """Return the arguments of a kernel of unsplit tensors."""
        arguments = self.passed(code)
        for position, tensor in zip(code.data, inputs, strict=True):
            arguments.insert(position, Data(tensor))
        arguments += [Data(tensor) for tensor in outputs]
        return (*arguments, *([] if scratch is None else [scratch]))

    def finished(
        self,
        name: str,
        tensors: Sequence[tuple[str, tuple[int, ...], str]],
        known: Sequence[Known | None],
        **others: Any,
    ) -> Program:
        """Return the program ``name`` with the collected kernels and constants.

        ``tensors``: name, shape and type of each; ``known``: its interface, None without.
        ``others``: the other fields of the program.
        """
        return Program(
            name=name,
            kernels=tuple(self.used.values()),
            constants=tuple(self.constants.all),
            tensors=tuple(named(tensors, known)),
            **others,
        )


def meet(one: Place, one_bytes: int, two: Place, two_bytes: int) -> bool:
    """Return whether two blocks of memory share bytes."""
    a, b = one.offset_bytes, two.offset_bytes
    return one.region == two.region and a < b + two_bytes and b < a + one_bytes
