"""What benchmarks and scripts import of the project is there: no test runs most of them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted([*ROOT.glob("benchmarks/*.py"), *ROOT.glob("scripts/*.py")])
OURS = ("tvm_serenity", "tests", "benchmarks")


def missing(text: str) -> Iterator[str]:
    """Yield the names that a source imports from modules of ours that do not have them."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in OURS:
            known = names(node.module)
            for one in node.names:
                if one.name not in known and not source(f"{node.module}.{one.name}"):
                    yield f"{node.module}.{one.name}"


def source(module: str) -> Path | None:
    """Return the file of a module, None where there is none."""
    path = ROOT / module.replace(".", "/")
    found = [p for p in (path.with_suffix(".py"), path / "__init__.py") if p.is_file()]
    return found[0] if found else None


def names(module: str) -> set[str]:
    """Return the names that a module binds at its top level, those of ``__getattr__`` too."""
    path = source(module)
    if path is None:
        return set()
    tree = ast.parse(path.read_text())
    found = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {one.asname or one.name for one in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)  # what is loaded when it is asked for
    return found


@pytest.mark.parametrize("path", FILES, ids=[p.name for p in FILES])
def test_what_is_imported_is_there(path: Path) -> None:
    assert list(missing(path.read_text())) == []


def test_a_name_that_moved_is_found() -> None:
    driver = "tvm_serenity.firmware.compile.driver"
    moved = f"from {driver} import make\nfrom tvm_serenity.nowhere import x\n"
    assert list(missing(moved)) == [f"{driver}.make", "tvm_serenity.nowhere.x"]
