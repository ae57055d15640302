"""``build`` finds the faults that are planted in what makes firmware; ``verify`` finds the rest."""

from pathlib import Path

import pytest

pytest.importorskip("tvm")

from tests.cases import only_exhaustive
from tests.firmware.faults import FAULTS, Fault, caught, outcome
from tests.firmware.projects import needs_board

FIRST = {fault.kind: name for name, fault in reversed(FAULTS.items())}
"""One fault of each kind."""
BY_VERIFY = {name for name, fault in FAULTS.items() if fault.hidden}
PLAIN = {
    (fault.network.__name__, fault.board, str(fault.settings), fault.bare): fault
    for fault in FAULTS.values()
}
"""The networks, each as its faults have it built."""


def each(names: dict[str, Fault]) -> list[object]:
    return [n if n in FIRST.values() else only_exhaustive(n) for n in names]


@needs_board
@pytest.mark.parametrize("name", each(FAULTS))
def test_a_fault_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by, said = caught(FAULTS[name], tmp_path, monkeypatch)
    assert by == ("verify" if name in BY_VERIFY else "build"), said
    assert "Traceback" not in said


def test_of_thirty_faults_build_finds_all_but_one() -> None:
    assert len(FAULTS) >= 30
    assert len(BY_VERIFY) <= 1


@needs_board
@pytest.mark.parametrize("built", [*PLAIN][:1] + [only_exhaustive((p,)) for p in [*PLAIN][1:]])
def test_without_a_fault_nothing_is_found(
    built: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = PLAIN[built]  # type: ignore[index]
    path = fault.network(tmp_path)
    monkeypatch.chdir(tmp_path)
    by, said = outcome(fault, path, tmp_path)
    assert not by, said
