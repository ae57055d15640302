import os
import stat
from pathlib import Path

import pytest

from tests.frontends.models import small_tflite
from tvm_serenity.errors import InputError, MissingPartError, ParseError
from tvm_serenity.frontends import load, save
from tvm_serenity.frontends.model_file import unique
from tvm_serenity.graph import text

DIAMOND = """graph diamond.txt
input x[4]
a: x -> a[4]
b: x -> b[4]
c: a b -> c[4]
output c
"""


def bad(tmp_path: Path, name: str, content: bytes | None) -> Path:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        (
            "model.h5",
            b"x",
            "suffix '.h5'; the known model files end in .tflite, .onnx, .pte, .pt2, .txt, .graph",
        ),
        ("model", b"x", "no suffix"),
        ("missing.tflite", None, "No such file"),
        ("empty.onnx", b"", "the file is empty"),
        ("words.tflite", b"hello, this is not a model", "not a TFL3 flatbuffer"),
        ("words.onnx", b"hello, this is not a model", "not an ONNX model"),
        ("bytes.txt", b"\xff\xfe", "not UTF-8 text"),
        ("root.tflite", b"\xff\xff\xff\x7fTFL3", "truncated or corrupt"),
        ("zeros.tflite", b"\x08\0\0\0TFL3" + bytes(100), "corrupt"),
        ("zeros.onnx", bytes(100), "not an ONNX model"),
    ],
)
def test_bad_files_are_refused_in_one_line(
    tmp_path: Path, name: str, content: bytes | None, reason: str
) -> None:
    path = bad(tmp_path, name, content)
    with pytest.raises(InputError) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_directories_and_pipes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a directory"):
        load(tmp_path)
    os.mkfifo(tmp_path / "pipe.onnx")
    with pytest.raises(InputError, match="not a regular file"):
        load(tmp_path / "pipe.onnx")
    with pytest.raises(InputError, match="null"):
        load("\0.onnx")


def test_absurd_sizes_are_refused_before_reading(tmp_path: Path) -> None:
    path = tmp_path / "huge.onnx"
    with path.open("wb") as file:
        file.truncate(5 * 2**30)
    with pytest.raises(InputError, match=f"larger than the limit of {4 * 2**30} bytes"):
        load(path)


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(MissingPartError, match=r"pip install onnx"):
        load(bad(tmp_path, "m.onnx", b"x"))


def test_dims_are_for_what_a_file_leaves_open(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no unknown dimension is named"):
        load(bad(tmp_path, "m.tflite", small_tflite()), {"N": 1})
    with pytest.raises(InputError, match="no named dimensions"):
        load(bad(tmp_path, "m.graph", DIAMOND.encode()), {"N": 1})


def test_text_files_load_and_save(tmp_path: Path) -> None:
    model = load(bad(tmp_path, "diamond.txt", DIAMOND.encode()))
    assert text.dump(model.graph) == text.dump(text.parse(DIAMOND))
    save(model, [1, 0, 2], tmp_path / "out.graph")
    assert [op.name for op in load(tmp_path / "out.graph").graph.ops] == ["b", "a", "c"]
    with pytest.raises(ParseError, match="line 2"):
        load(bad(tmp_path, "broken.txt", b"graph g\nwhat is this"))


def test_saving_replaces_a_file_in_one_step(tmp_path: Path) -> None:
    model = load(bad(tmp_path, "diamond.txt", DIAMOND.encode()))
    target = bad(tmp_path, "out.txt", b"old")
    target.chmod(0o640)
    link = tmp_path / "link.txt"
    link.symlink_to(target)
    save(model, [1, 0, 2], link)
    assert link.is_symlink()
    assert target.read_bytes() == model.reordered([1, 0, 2])
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    with pytest.raises(InputError, match="not a topological order"):
        save(model, [2, 1, 0], target)
    assert target.read_bytes() == model.reordered([1, 0, 2])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["diamond.txt", "link.txt", "out.txt"]


def test_output_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load(bad(tmp_path, "diamond.txt", DIAMOND.encode()))
    for target in (tmp_path / "no" / "such.txt", tmp_path, tmp_path / ("x" * 300)):
        with pytest.raises(InputError, match="cannot be written") as caught:
            save(model, [0, 1, 2], target)
        assert str(target) in str(caught.value)
    target = bad(tmp_path, "out.txt", b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(InputError, match=r"out\.txt: cannot be written: No space left"):
        save(model, [0, 1, 2], target)
    assert target.read_bytes() == b"old"
    assert not list(tmp_path.glob(".*"))


def test_repeated_names_are_told_apart() -> None:
    assert unique(["a", "a", "a_2", "b", "a"]) == ["a", "a_3", "a_2", "b", "a_4"]
    assert len(set(unique(["x"] * 1000 + [f"x_{i}" for i in range(1000)]))) == 2000
