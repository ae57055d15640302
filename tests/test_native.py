"""The C++ sources: folders named as the packages they serve, one suffix, one include style."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1] / "tvm_serenity"
SOURCES = [p for p in (ROOT / "cpp").glob("*/*") if p.is_file()]
INCLUDE = re.compile(r'^#include "(.*)"', re.MULTILINE)


def test_folders_are_packages() -> None:
    assert {p.parent.name for p in SOURCES} == {"cycles", "offchip", "plan", "schedule", "sparse"}
    for source in SOURCES:
        assert (ROOT / source.parent.name / "__init__.py").exists()
        assert source.suffix in (".cpp", ".hpp")
        assert f"namespace {source.parent.name}" in source.read_text() or "NB_MODULE" in (
            source.read_text()
        )


def test_includes_name_folder_and_file() -> None:
    named = [(s.name, name) for s in SOURCES for name in INCLUDE.findall(s.read_text())]
    assert len(named) > 50
    assert not [(s, name) for s, name in named if not (ROOT / "cpp" / name).is_file()]
