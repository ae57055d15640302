"""Buffers as columns, and from files: the same answers and refusals as buffer by buffer."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cases import scaled
from tvm_serenity.errors import CheckError, InputError, ParseError
from tvm_serenity.plan import (
    Buffer,
    BufferColumns,
    FreeBuffers,
    PlanOptions,
    check_plan,
    csvfile,
    plan,
    read_csv,
    write_csv,
)

CELL = st.sampled_from(["0", "1", "7", " 3", "-2", "", "x", "1_0", "+1", "٣", "9" * 19, "9" * 21])
NUMBER = st.one_of(st.integers(0, 9).map(str), CELL)


def free(buffers: list[Buffer]) -> FreeBuffers:
    return FreeBuffers(BufferColumns.of(buffers))


@st.composite
def plain(draw: st.DrawFn) -> list[Buffer]:
    """Up to eight buffers without constraints but alignments."""
    found = []
    for i in range(draw(st.integers(0, 8))):
        lower = draw(st.integers(0, 5))
        upper, size = lower + draw(st.integers(0, 4)), draw(st.integers(0, 9))
        found.append(Buffer(f"b{i}", lower, upper, size, draw(st.sampled_from([1, 2, 4]))))
    return found


@settings(max_examples=scaled(100, 300), deadline=None, derandomize=True)
@given(plain(), st.data())
def test_columns_are_planned_and_checked_as_buffers(
    buffers: list[Buffer], data: st.DataObject
) -> None:
    columns = free(buffers)
    assert list(columns) == buffers == [columns[i] for i in range(len(buffers))]
    assert columns[1:] == tuple(buffers[1:])
    one, two = (plan(given_, options=PlanOptions(steps=100)) for given_ in (buffers, columns))
    assert list(two.buffers) == buffers
    assert replace(one, buffers=(), seconds=0.0) == replace(two, buffers=(), seconds=0.0)
    check_plan(columns, two.offsets, two.arena_bytes)
    offsets = [data.draw(st.integers(-1, 12)) for _ in buffers]
    said = []
    for asked in (buffers, columns):
        try:
            check_plan(asked, offsets, 15)
            said.append("")
        except CheckError as error:
            said.append(str(error))
    assert said[0] == said[1]


def test_columns_refuse_what_a_buffer_refuses() -> None:
    good = BufferColumns.of([Buffer("a", 0, 2, 8), Buffer("b", 1, 3, 4)])
    wrong = np.array([0, -1])
    with pytest.raises(InputError, match="'b': its size is -1 bytes"):
        FreeBuffers(replace(good, size_bytes=wrong))
    with pytest.raises(InputError, match="'b': its lifetime starts at step 1, after its end -1"):
        FreeBuffers(replace(good, upper=np.array([2, -1])))
    with pytest.raises(InputError, match="'a': its alignment 0"):
        FreeBuffers(replace(good, alignment=wrong))
    with pytest.raises(InputError, match="differ in length"):
        FreeBuffers(replace(good, name=["a"]))
    with pytest.raises(InputError, match="'a': two buffers have this name"):
        plan(FreeBuffers(replace(good, name=["a", "a"])))


@st.composite
def tables(draw: st.DrawFn) -> str:
    """CSV files, most of them plain, some with what is unusual or wrong."""
    header = ["id", "lower", "upper", "size"]
    header += draw(st.lists(st.sampled_from(["alignment", "offset", "note"]), unique=True))
    odd = draw(st.booleans())
    rows = []
    for i in range(draw(st.integers(0, 7))):
        lower = draw(st.integers(-1, 5))
        row = [
            f"b{i}",
            str(lower),
            str(lower + draw(st.integers(0, 4))),
            str(draw(st.integers(0, 9))),
        ]
        row += ["" if name == "offset" else draw(st.sampled_from(["", "2"])) for name in header[4:]]
        if odd and draw(st.integers(0, 3)) == 0:
            row[draw(st.integers(1, len(row) - 1))] = draw(NUMBER)
        if odd and draw(st.integers(0, 9)) == 0:
            row.pop()
        rows.append(",".join(row))
        rows += [""] * (odd and draw(st.integers(0, 5)) == 0)
    return "\n".join([",".join(header), *rows]) + "\n"


@settings(
    max_examples=scaled(200, 600),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(text=tables(), block=st.sampled_from([1, 2, 3, 100]))
def test_blocks_are_read_as_rows(text: str, block: int, tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text(text)
    answers: list[object] = []
    for by_row in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(csvfile, "BLOCK_ROWS", block)
            if by_row:
                patch.setattr(csvfile, "_free", lambda *_: None)
            try:
                answers.append(list(read_csv(path)))
            except ParseError as error:
                answers.append(str(error))
    assert answers[0] == answers[1]
    if isinstance(answers[0], list) and answers[0]:
        offsets = list(range(len(answers[0])))
        write_csv(tmp_path / "out.csv", answers[0], offsets, path)
        again = (tmp_path / "out.csv").read_text().splitlines()
        kept = [line for line in text.splitlines() if line]
        assert len(again) == len(kept)
        at = again[0].split(",").index("offset")
        assert [int(line.split(",")[at]) for line in again[1:]] == offsets
        for before, after in zip(kept, again, strict=True):
            cells = [cell.strip() for cell in before.split(",")]
            assert [*after.split(",")[:at], *after.split(",")[at + 1 :]] == [
                *cells[:at],
                *cells[at + 1 :],
            ]


def test_files_without_fixed_offsets_are_columns(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("id,lower,upper,size,Offset\na,0,2,8,\nb,1,3,4,\n")
    found = read_csv(path)
    assert isinstance(found, FreeBuffers)
    write_csv(path, found, [0, 8], path)
    assert path.read_text() == "id,lower,upper,size,Offset\na,0,2,8,0\nb,1,3,4,8\n"
    again = read_csv(path)
    assert isinstance(again, tuple)
    assert [b.offset for b in again] == [0, 8]
    path.write_text("id,lower,upper,size,offset\n")
    assert list(read_csv(path)) == []
    write_csv(path, [], [], path)
    write_csv(tmp_path / "own.csv", found, [0, 8])
    assert (tmp_path / "own.csv").read_text() == (
        "id,lower,upper,size,alignment,offset\na,0,2,8,1,0\nb,1,3,4,1,8\n"
    )
