"""The parts that all programs share: kernels and constants stored once, calls, named tensors."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tvm_serenity.firmware.compile.constants import Constants
from tvm_serenity.firmware.compile.interface import Known, named
from tvm_serenity.firmware.program import Argument, Const, Data, Kernel, Place, Program, Scratch
from tvm_serenity.firmware.select.lowered import LoweredLayer


class ProgramMaker:
    """Collects the kernels and constants of a program while its steps are created."""

    def __init__(self) -> None:
        self.constants = Constants()
        self.used: dict[str, Kernel] = {}

    def kernel(self, made: Kernel, shares: str = "") -> str:
        """Return a name for the kernel that is unique in the program.

        ``shares`` is the suffix of a kernel whose parameters share bytes ("in_place", "over").
        """
        if shares and made.restrict:
            made = replace(made, name=f"{made.name}_{shares}", restrict=False)
        name, count = made.name, 1
        while self.used.setdefault(name, replace(made, name=name)) != replace(made, name=name):
            count += 1
            name = f"{made.name}_{count}"
        return name

    def passed(self, code: LoweredLayer) -> list[Any]:
        """Return the constant arguments of a layer's kernels."""
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
        """Return the program ``name`` with all collected parts; ``others`` are its other fields.

        ``tensors``: name, shape and type of each; ``known``: the model's description of each, or
        None.
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
