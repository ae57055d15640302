"""Ctrl-C keeps the finished points of a sweep under keys that another run asks for."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tvm_serenity.commands.sweeping import SweepInterrupted, kept_on_interrupt
from tvm_serenity.search.sweeps import PointFile, Row, run_sweep


@dataclass(frozen=True)
class Point:
    name: str
    interrupts: bool = False

    def key(self) -> str:
        return f"digest of {self.name}"

    def rows(self) -> list[Row]:
        if self.interrupts:
            raise KeyboardInterrupt
        return [{"name": self.name}]


@pytest.mark.parametrize("resumed", [False, True])
def test_what_ctrl_c_keeps_is_found_again(resumed: bool, tmp_path: Path) -> None:
    keep = PointFile(tmp_path / "kept.points", "points", ("name",))
    points = [Point("first"), Point("second", interrupts=True)]
    with pytest.raises(SweepInterrupted) as ended:
        kept_on_interrupt(partial(run_sweep, points), keep, resumed)
    assert ended.value.exit_status == 130
    assert keep.load() == {"digest of first": [{"name": "first"}]}
    again = [Point("first", interrupts=True), Point("second")]  # the first one is not run again
    rows = kept_on_interrupt(partial(run_sweep, again), keep, resumed=True)
    assert [row["name"] for row in rows] == ["first", "second"]
