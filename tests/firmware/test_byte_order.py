"""Projects for a target whose bytes stand in the other order are refused when they are compiled."""

import subprocess
from pathlib import Path

import pytest

from tests.firmware.projects import needs_host
from tests.firmware.small import build, windows

OTHER = ("-U__BYTE_ORDER__", "-D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__")


@needs_host
def test_big_endian_targets_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert build(monkeypatch, windows(), tmp_path) == 0
    (source,) = (tmp_path / "made").glob("*_model.c")
    command = ["cc", "-std=gnu11", "-fsyntax-only", "-w", str(source)]
    assert subprocess.run(command, check=False).returncode == 0
    for flags in (OTHER, ("-D__BIG_ENDIAN__",), ("-D__ARM_BIG_ENDIAN",)):
        done = subprocess.run([*command, *flags], capture_output=True, text=True, check=False)
        assert done.returncode != 0
        assert "little-endian" in done.stderr
