"""The cache: what is found again, what is not, and what many processes do to it at once."""

import os
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.firmware.projects import HELLO, needs_board, needs_host, project
from tvm_serenity.errors import CheckError, InputError
from tvm_serenity.firmware.board import toolchain
from tvm_serenity.firmware.board.toolchain import make, self_contained
from tvm_serenity.firmware.check import trial
from tvm_serenity.firmware.check.verify import run_qemu
from tvm_serenity.system import cache

PARTS = st.lists(st.one_of(st.binary(max_size=4), st.text(max_size=4)), max_size=4)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(cache.FOLDER, str(tmp_path / "cache"))
    return tmp_path / "cache"


def held() -> cache.Cache:
    found = cache.opened()
    assert found is not None
    return found


@given(PARTS, PARTS)
def test_keys_are_equal_only_for_equal_parts(one: list[str], other: list[str]) -> None:
    same = [p.encode() if isinstance(p, str) else p for p in one] == [
        p.encode() if isinstance(p, str) else p for p in other
    ]
    assert (cache.key("kind", *one) == cache.key("kind", *other)) == same
    assert cache.key("kind", *one) != cache.key("other", *one)


def test_an_entry_is_made_once() -> None:
    made: list[int] = []

    def make_it() -> bytes:
        made.append(1)
        return b"content"

    name = cache.key("kind", "part")
    assert [cache.remembered(name, make_it) for _ in range(3)] == [b"content"] * 3
    assert len(made) == 1
    cache.remembered(cache.key("kind", "another part"), make_it)
    assert len(made) == 2
    with cache.switched_off():
        cache.remembered(name, make_it)
    assert len(made) == 3


def test_it_is_off_where_the_environment_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.FOLDER, cache.OFF)
    assert cache.opened() is None


def test_it_lies_in_the_users_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(cache.FOLDER)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert held().folder == tmp_path / "xdg" / "tvm-serenity"
    assert held().folder.stat().st_mode & 0o777 == 0o700
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # ignored, as the specification says
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert held().folder == tmp_path / "home" / ".cache" / "tvm-serenity"


@pytest.mark.parametrize("damage", [b"", b"x", b"content" + bytes(32)])
def test_a_damaged_entry_is_absent(damage: bytes, folder: Path) -> None:
    name = cache.key("kind")
    held().put(name, b"content")
    (file,) = folder.glob("??/*")
    assert held().get(name) == b"content"
    file.write_bytes(damage)
    assert held().get(name) is None
    assert not file.exists()


def test_a_folder_that_others_may_write_to_is_refused(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(InputError, match="other users may write"):
        cache.opened()


def test_a_limit_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.LIMIT, "1 GB")
    with pytest.raises(InputError, match="not a number of bytes"):
        cache.opened()


def test_what_was_not_used_for_longest_goes_first(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(cache.LIMIT, "10000")
    names = [cache.key("kind", str(i)) for i in range(20)]
    for i, name in enumerate(names):
        held().put(name, bytes(1000))
        file = folder / name[:2] / name[2:]
        if file.exists():
            os.utime(file, ns=(i, i))
        assert held().get(names[0]) is not None  # used all the time
    held().trim()
    left = [name for name in names if held().get(name) is not None]
    assert left[0] == names[0]
    assert left[1:] == names[-len(left) + 1 :]
    assert 4 <= len(left) <= 9
    assert sum(f.stat().st_size for f in folder.glob("??/*")) <= 10_000


def test_a_folder_that_cannot_be_written_costs_the_entry_alone(folder: Path) -> None:
    name = cache.key("kind")
    folder.mkdir(mode=0o700)
    (folder / name[:2]).write_text("a file where the folder would be")
    assert cache.remembered(name, lambda: b"content") == b"content"
    assert held().get(name) is None


def _hammer(where: str) -> int:
    store = cache.Cache(Path(where), limit_bytes=300_000)
    wrong = 0
    for i in range(300):
        content = str(i % 7).encode() * 20_000
        name = cache.key("kind", str(i % 7))
        found = store.get(name)
        wrong += found not in (None, content)
        store.put(name, content)
        if i % 10 == 0:
            store.trim()
    return wrong


def test_writers_and_readers_at_once(folder: Path) -> None:
    with ProcessPoolExecutor(4) as pool:
        assert list(pool.map(_hammer, [str(folder)] * 4)) == [0] * 4
    assert not list(folder.glob("??/.*"))


def test_packed_files_are_what_they_were(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"first")
    (tmp_path / "b").write_bytes(b"second")
    (tmp_path / "b").chmod(0o755)
    files = {"deep/a": tmp_path / "a", "b": tmp_path / "b"}
    packed = cache.pack(files)
    os.utime(tmp_path / "a", (1, 1))
    assert cache.pack(dict(reversed(files.items()))) == packed
    assert cache.contents(packed) == {"b": b"second", "deep/a": b"first"}
    cache.unpack(packed, tmp_path / "out")
    assert (tmp_path / "out" / "deep" / "a").read_bytes() == b"first"
    assert os.access(tmp_path / "out" / "b", os.X_OK)


MAKEFILE = """HOST_CC ?= cc
host: build/host
build/host: main.c part.h
\tmkdir -p build
\t$(HOST_CC) $(CFLAGS) main.c -o $@
\techo ran >> ../runs
"""


def small(folder: Path) -> Path:
    """A project of two sources; ``runs`` beside it has a line for each time that make made it."""
    folder.mkdir()
    (folder / "Makefile").write_text(MAKEFILE)
    (folder / "main.c").write_text('#include "part.h"\nint main(void) { return PART; }\n')
    (folder / "part.h").write_text("#define PART 1\n")
    return folder


def runs(folder: Path) -> int:
    file = folder.parent / "runs"
    return len(file.read_text().splitlines()) if file.exists() else 0


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small project, whose Makefile may name the file that counts."""
    monkeypatch.setattr(toolchain, "ELSEWHERE", re.compile(rb"-I"))
    return small(tmp_path / "project")


@needs_host
def test_a_project_is_made_once(counted: Path) -> None:
    before = dict(os.environ)
    for _ in range(3):
        make(counted, "host")
        assert (counted / "build" / "host").is_file()
        shutil.rmtree(counted / "build")
    assert runs(counted) == 1
    assert dict(os.environ) == before


CHANGES: dict[str, Callable[[Path, pytest.MonkeyPatch], object]] = {
    "a source": lambda p, _m: (p / "main.c").write_text("int main(void) { return 2; }\n"),
    "a header": lambda p, _m: (p / "part.h").write_text("#define PART 2\n"),
    "the Makefile": lambda p, _m: (p / "Makefile").write_text(MAKEFILE + "# more\n"),
    "flags": lambda _p, m: m.setenv("CFLAGS", "-O1"),
    "a tool": lambda _p, m: m.setattr(toolchain, "identity", lambda tool: f"{tool} 99"),
}


@needs_host
@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_another_entry(
    what: str, counted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(counted, "host")
    shutil.rmtree(counted / "build")
    CHANGES[what](counted, monkeypatch)
    make(counted, "host")
    assert runs(counted) == 2


@needs_host
def test_what_fails_is_not_kept(counted: Path) -> None:
    (counted / "main.c").write_text("int main(void) { return wrong; }\n")
    for _ in range(2):
        with pytest.raises(CheckError, match="wrong"):
            make(counted, "host")
    (counted / "part.h").write_text("")
    (counted / "main.c").write_text("int main(void) { return 0; }\n")
    make(counted, "host")


@pytest.mark.parametrize(
    ("sources", "alone"),
    [
        ({"a.c": b'#include "a.h"\n', "a.h": b"#include <stdint.h>\n"}, True),
        ({"a.c": b'#include "../a.h"\n'}, False),
        ({"a.c": b' # include "other.h"\n'}, False),
        ({"Makefile": b"all:\n\tcc -I/usr/local a.c\n"}, False),
        ({"Makefile": b"include ../common.mk\n"}, False),
        ({"Makefile": b"CC = /opt/bin/cc\n"}, False),
        ({"Makefile": b"S := $(wildcard *.c)\n"}, False),
        ({"Makefile": b"all: build/a.o\n"}, True),
    ],
)
def test_projects_that_name_other_files_are_not_kept(
    sources: dict[str, bytes], alone: bool
) -> None:
    assert self_contained(sources) == alone


@needs_board
def test_a_run_in_qemu_is_kept_by_image_and_inputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = project(tmp_path / "hello", HELLO, "stm32vldiscovery")
    one, other = (np.full((1, 1), value, np.int8) for value in (17, 90))
    first = run_qemu(made, [one], traced=False)
    again = run_qemu(made, [one], traced=False)
    assert first == again
    assert run_qemu(made, [other], traced=False).outputs != first.outputs
    with cache.switched_off():
        assert run_qemu(made, [one], traced=False) == first
    key = cache.key
    blind = lambda kind, *parts: key(kind, *(() if kind == "qemu" else parts))  # noqa: E731
    monkeypatch.setattr(cache, "key", blind)
    assert run_qemu(made, [one], traced=False).outputs == first.outputs
    assert run_qemu(made, [other], traced=False).outputs == first.outputs  # stale: that is seen


@needs_host
def test_compiled_kernels_are_kept_by_their_sources(tmp_path: Path) -> None:
    found = []
    for number, value in enumerate((1, 1, 2)):
        here = tmp_path / str(number)
        here.mkdir()
        texts = {"k.c": f"int value(void) {{ return {value}; }}\n".encode()}
        work = trial.compilation(here, texts, ["k.c"])
        found.append((work.process is None, work.library.value()))
    assert found == [(False, 1), (True, 1), (False, 2)]
