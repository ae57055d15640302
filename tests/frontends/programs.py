"""Small ExecuTorch programs, written without ExecuTorch."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import flatbuffers

FLOAT, NULL, INT, TENSOR, TENSOR_LIST = 6, 1, 2, 5, 10
KERNEL, DELEGATE, MOVE, JUMP, FREE = 1, 2, 3, 4, 5


@dataclass(frozen=True)
class Held:
    """A tensor of floats at a place, a constant (``data``), or a list of tensors (``items``)."""

    sizes: tuple[int, ...] = (4,)
    place: tuple[int, int] | None = None
    data: int = 0
    items: tuple[int, ...] = ()
    name: str = ""
    dynamism: int = 0
    scalar: int = FLOAT


RELU, ADD, LIST = "aten::relu", "aten::add", "aten::split_copy"


def program(
    values: Sequence[Held] = (
        Held(place=(1, 0)),
        Held(data=1, name="weight"),
        Held(place=(1, 16)),
        Held(place=(1, 32)),
        Held(place=(1, 0)),
    ),
    calls: Sequence[tuple[int, int, tuple[int, ...]]] = (
        (KERNEL, 0, (0, 2, 2)),
        (KERNEL, 1, (0, 1, 3, 3)),
        (KERNEL, 1, (2, 3, 4, 4)),
    ),
    inputs: Sequence[int] = (0,),
    outputs: Sequence[int] = (4,),
    memories: Sequence[int] = (0, 48),
    kernels: Sequence[tuple[str, str]] = ((RELU, "out"), (ADD, "out"), (LIST, "out")),
    methods: Sequence[str] = ("forward",),
    delegates: Sequence[str] = (),
) -> bytes:
    """A program; every method has the same values and calls."""
    made = _Writer()
    plans = []
    for method in methods:
        chain = made.table({2: made.tables(made.call(*call) for call in calls)})
        fields = {
            0: made.string(method),
            2: made.tables([made.value(value) for value in values]),
            3: made.numbers(inputs),
            4: made.numbers(outputs),
            5: made.tables([chain]),
            6: made.tables(
                [made.table({0: made.string(a), 1: made.string(b)}) for a, b in kernels]
            ),
            7: made.tables([made.table({0: made.string(name)}) for name in delegates]),
            8: made.numbers(memories, 8),
        }
        plans.append(made.table(fields))
    made.builder.Finish(made.table({1: made.tables(plans)}), b"ET12")
    return bytes(made.builder.Output())


class _Writer:
    def __init__(self) -> None:
        self.builder: Any = flatbuffers.Builder(1024)

    def string(self, text: str) -> int:
        return int(self.builder.CreateString(text))

    def numbers(self, listed: Iterable[int], width: int = 4) -> int:
        every = list(listed)
        self.builder.StartVector(width, len(every), width)
        for number in reversed(every):
            (self.builder.PrependInt64 if width == 8 else self.builder.PrependInt32)(number)
        return int(self.builder.EndVector())

    def tables(self, listed: Iterable[int]) -> int:
        every = list(listed)
        self.builder.StartVector(4, len(every), 4)
        for offset in reversed(every):
            self.builder.PrependUOffsetTRelative(offset)
        return int(self.builder.EndVector())

    def table(
        self,
        offsets: dict[int, int],
        words: dict[int, int] | None = None,
        small: dict[int, int] | None = None,
    ) -> int:
        self.builder.StartObject(12)
        for slot, offset in offsets.items():
            self.builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
        for slot, word in (words or {}).items():
            self.builder.PrependUint32Slot(slot, word, 0)
        for slot, byte in (small or {}).items():
            self.builder.PrependUint8Slot(slot, byte, 0)
        return int(self.builder.EndObject())

    def union(self, kind: int, table: int) -> int:
        return self.table({1: table}, small={0: kind})

    def call(self, kind: int, number: int, arguments: Sequence[int]) -> int:
        return self.union(kind, self.table({1: self.numbers(arguments)}, {0: number}))

    def value(self, held: Held) -> int:
        if held.items:
            return self.union(TENSOR_LIST, self.table({0: self.numbers(held.items)}))
        offsets = {2: self.numbers(held.sizes)}
        if held.place is not None:
            memory, offset = held.place
            low, high = offset & 0xFFFFFFFF, offset >> 32
            offsets[6] = self.table({}, {0: memory, 1: low, 2: high})
        if held.name:
            offsets[9] = self.table({1: self.string(held.name)})
        small = {0: held.scalar, 8: held.dynamism}
        return self.union(TENSOR, self.table(offsets, {5: held.data}, small))
