"""Objects that builds share: compiled once for equal sources and flags, again for any other."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tvm_serenity.fitting import shared

PROGRAM: Any = SimpleNamespace(name="net", transferred_bytes=None)
FILES = {
    "Makefile": "CFLAGS := -O2\n",
    "net_model.c": '#include "net_model.h"\n',
    "net_kernels.c": '#include "net_kernels.h"\n',
    "net_weights.c": "const int weights = 1;\n",
    "net_model.h": '#include "net_kernels.h"\n',
    "net_kernels.h": "void kernel(void);\n",
}
OBJECTS = ["build/net_kernels.o", "build/net_model.o", "build/net_weights.o"]


def project(folder: Path, **changed: str) -> Path:
    """Write a project; ``changed``: other texts, by names without their suffix."""
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(changed.get(name.replace(".", "_"), text))
    return folder


@pytest.fixture(name="compiled")
def _compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is compiled, in place of a compiler."""
    found: list[str] = []

    def make(folder: Path, goal: str) -> None:
        found.append(goal)
        (folder / "build").mkdir(exist_ok=True)
        (folder / goal).write_text(f"{goal} of {folder.name}")

    monkeypatch.setattr(shared, "make", make)
    return found


@pytest.mark.parametrize(
    ("changed", "again"),
    [
        ({}, []),
        ({"net_weights_c": "const int weights = 2;\n"}, OBJECTS[2:]),
        ({"net_kernels_h": "int kernel(void);\n"}, OBJECTS[:2]),
        ({"net_model_h": "\n"}, OBJECTS[1:2]),
        ({"Makefile": "CFLAGS := -O3\n"}, OBJECTS),
    ],
)
def test_only_what_differs_is_compiled_again(
    tmp_path: Path, compiled: list[str], changed: dict[str, str], again: list[str]
) -> None:
    objects = shared.SharedObjects()
    objects.compile(PROGRAM, project(tmp_path / "a"))
    assert sorted(compiled) == OBJECTS
    objects.compile(PROGRAM, project(tmp_path / "b", **changed))
    assert sorted(compiled[3:]) == again
    for name in OBJECTS:
        of = "b" if name in again else "a"
        assert (tmp_path / "b" / name).read_text() == f"{name} of {of}"


def test_threads_compile_each_object_once(tmp_path: Path, compiled: list[str]) -> None:
    objects, folders = shared.SharedObjects(), [project(tmp_path / str(i)) for i in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda folder: objects.compile(PROGRAM, folder), folders))
    assert sorted(compiled) == OBJECTS
    assert all((folder / name).is_file() for folder in folders for name in OBJECTS)
