"""Calls replayed on a map of owners: plans that are right, and each wrong in one place."""

from dataclasses import replace
from typing import Any

import pytest

from tvm_serenity.errors import CheckError
from tvm_serenity.firmware.check.calls import check
from tvm_serenity.firmware.emit.calls import calls
from tvm_serenity.firmware.program import (
    ARRIVAL,
    Bands,
    Count,
    Data,
    Fed,
    Kernel,
    Param,
    Place,
    Program,
    Row,
    Scratch,
    Step,
    Tensor,
)
from tvm_serenity.firmware.trace import written

X, OUT = Param("x", "uint8", True), Param("out", "uint8", False)


def at(*offsets: int, region: str = "sram") -> tuple[Place, ...]:
    return tuple(Place(region, offset) for offset in offsets)


def whole(**changes: Any) -> Program:
    """Tensors x -> a -> b, eight bytes each; b where x was, and a uses scratch."""
    kernels = (
        Kernel("first", (X, OUT, Param("workspace", "uint8", False)), ""),
        Kernel("second", (X, OUT), ""),
    )
    steps = (
        Step(("first",), (Data(0), Data(1), Scratch(Place("sram", 16), 4)), (1,)),
        Step(("second",), (Data(1), Data(2)), (2,)),
    )
    tensors = tuple(Tensor(name, (8,), "uint8") for name in "xab")
    bands = tuple(Bands.unsplit("sram", offset) for offset in (0, 8, 0))
    made = Program("net", kernels, (), tensors, bands, steps, (0,), (2,), {"sram": 24}, 4)
    return replace(made, **changes)


def rows(**changes: Any) -> Program:
    """Four rows of two bytes: a[y] of x[y] and x[y + 1], in bands that take turns; b whole, of a.

    The rows of a lie in one place after the other; x, which nobody needs any more, makes room.
    """
    kernels = (
        Kernel("by_row", (X, Param("next", "uint8", True), OUT), ""),
        Kernel("copied", (X, OUT, Param("n", "uint32", True)), ""),
    )
    steps = (
        Step(("by_row",), (Row(0), Row(0, 1, 1), Row(1)), (1,), (0,) * 4),
        Step(("copied",), (Row(1), Row(2), Count()), (2,), (0,) * 4, 2),
    )
    tensors = tuple(Tensor(name, (1, 4, 1, 2), "uint8") for name in "xab")
    bands = (Bands(at(0, 2, 4, 6), 4, 1), Bands(at(8, 0), 4, 2), Bands(at(12), 4, 4))
    sequence = ((0, 0), (0, 1), (1, 0), (0, 2), (0, 3), (1, 1))
    made = Program(
        "net", kernels, (), tensors, bands, steps, (0,), (2,), {"sram": 20}, 1, sequence=sequence
    )
    return replace(made, **changes)


def fed() -> Program:
    """The same, x kept row by row as it arrives."""
    sequence = ((ARRIVAL, 0), (ARRIVAL, 1), (0, 0), (ARRIVAL, 2), (0, 1), (1, 0), (ARRIVAL, 3))
    return rows(inputs=(), fed=Fed(0, 4, 2), sequence=(*sequence, (0, 2), (0, 3), (1, 1)))


def sums() -> Program:
    """Three rows of x added up, then finished."""
    kernels = (
        Kernel("begin", (X, OUT), ""),
        Kernel("add", (X, OUT), ""),
        Kernel("end", (X, OUT), ""),
    )
    steps = (
        Step(("begin", "add"), (Row(0), Data(1)), (1,), (0, 1, 1), 3, adds=True),
        Step(("end",), (Data(1), Data(2)), (2,)),
    )
    tensors = (Tensor("x", (1, 3, 1, 2), "uint8"), Tensor("s", (2,), "uint8"))
    bands = (Bands(at(0), 3, 3), Bands.unsplit("sram", 6), Bands.unsplit("sram", 8))
    return Program(
        "net", kernels, (), (*tensors, Tensor("y", (2,), "uint8")), bands, steps, (0,), (2,),
        {"sram": 10}, 1,
    )  # fmt: skip


def without(number: int, program: Program) -> Program:
    calls = program.calls
    return replace(program, sequence=calls[:number] + calls[number + 1 :])


def moved(program: Program, tensor: int, *offsets: int) -> Program:
    bands = list(program.bands)
    bands[tensor] = replace(bands[tensor], places=at(*offsets))
    return replace(program, bands=tuple(bands))


@pytest.mark.parametrize("program", [whole(), rows(), fed(), sums()])
def test_what_is_right_is_accepted(program: Program) -> None:
    check(program)


def scratched(offset: int) -> Program:
    program = whole()
    x, a, scratch = program.steps[0].arguments
    assert isinstance(scratch, Scratch)
    step = replace(program.steps[0], arguments=(x, a, replace(scratch, place=at(offset)[0])))
    return replace(program, steps=(step, program.steps[1]))


WRONG = {
    "b on a, which it reads": (
        moved(whole(), 2, 4),
        r"call 1 \(second\): .*'a' is overwritten by 'b'",
    ),
    "a outside": (moved(whole(), 1, 17), "outside of the arena in sram"),
    "scratch on a": (scratched(12), "its workspace overlaps tensor 'a'"),
    "scratch outside": (scratched(22), "its workspace is outside"),
    "scratch between words": (scratched(18), "its workspace is not aligned"),
    "a call left out": (without(0, whole()), r"call 0 \(second\): tensor 'a' is overwritten by"),
    "other parameters": (whole(kernels=(Kernel("first", (X, OUT), ""),)), "its kernel takes"),
    "a row left out": (without(1, rows()), r"call 1 \(copied\): row 1 of tensor 'a'"),
    "a row on one that is needed": (
        moved(rows(), 1, 8, 4),
        r"row 2 of tensor 'x' is overwritten by 'a'",
    ),
    "an output in pieces": (
        rows(bands=(*rows().bands[:2], Bands(at(16, 12), 4, 2))),
        "tensor 'b': its rows are not contiguous",
    ),
    "a band twice": (
        replace(fed(), sequence=(fed().calls[0], *fed().calls)),
        "arrives out of order",
    ),
    "rows that have not arrived": (without(1, fed()), "row 1 of tensor 'x' is overwritten by"),
    "sums that are overwritten": (moved(sums(), 1, 4), "row 2 of tensor 'x' is overwritten by s"),
    "sums that are not begun": (without(0, sums()), "reads a sum of 0 rows; expected all 3"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found(name: str) -> None:
    program, message = WRONG[name]
    with pytest.raises(CheckError, match=message):
        check(program)


def test_in_place_only_where_the_kernel_expects_it() -> None:
    program = moved(whole(), 2, 8)
    with pytest.raises(CheckError, match="'a' is overwritten by 'b'"):
        check(program)
    loose = replace(program.kernels[1], restrict=False)
    check(replace(program, kernels=(program.kernels[0], loose)))


def test_calls_that_run_once_are_a_list_and_others_a_table() -> None:
    assert whole().straight
    assert calls(whole(), False).definitions == ""
    for program in (rows(), fed(), sums()):
        assert not program.straight
        assert "walk(" in calls(program, False).definitions


def test_rows_of_which_there_is_one_are_called_and_shown() -> None:
    """A row kernel in a list of calls: outside is NULL, the number of rows is one."""
    arguments = (Row(0, 1, -1), Row(0), Row(1), Count())
    kernel = Kernel("k", (X, Param("next", "uint8", True), OUT, Param("n", "uint32", True)), "")
    tensors = tuple(Tensor(name, (1, 1, 1, 2), "uint8") for name in "xy")
    bands = (Bands.unsplit("sram", 4), Bands.unsplit("sram", 0))
    step = Step(("k",), arguments, (1,))
    made = Program("net", (kernel,), (), tensors, bands, (step,), (0,), (1,), {"sram": 6}, 1)
    check(made)
    assert made.straight
    assert [line.strip() for line in calls(made, False).body][1:] == [
        "net_k(NULL, (arena_sram + 4), arena_sram, &(const uint32_t){1u});",
        "TRACE(1, arena_sram, 2);",
    ]
    assert written(made) == [(1, 0)]


def test_what_is_shown() -> None:
    assert written(whole()) == [(1, None), (2, None)]
    assert written(rows())[:4] == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert written(fed())[:3] == [(0, 0), (0, 1), (1, 0)]
    assert written(sums()) == [(2, None)]
