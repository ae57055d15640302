"""Bad input: exit status 2, one line that names the file and the reason, no partial output."""

from pathlib import Path

import pytest

from tests.cli.run import answer, serenity

NET = "input x[8]i8\na RELU: x -> y[8]i8\noutput y\n"


def fails(*arguments: object, status: int = 2) -> str:
    found = serenity(*arguments)
    assert found.returncode == status, (found.stdout, found.stderr)
    assert found.stderr.count("\n") == 1, found.stderr
    assert "Traceback" not in found.stderr
    assert found.stderr.startswith("serenity: ")
    return found.stderr


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.txt"
    path.write_text(NET)
    return path


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("model.tflite", b"\x1c\0\0\0TFL3" + b"\xff" * 40, ""),
        ("model.tflite", b"not a model", ""),
        ("model.onnx", b"\x08\x07\x12not a model", ""),
        ("model.onnx", b"", "empty"),
        ("model.pb", b"x", "known model files end in"),
        ("cycle.txt", b"a: y -> x[1]\nb: x -> y[1]\noutput y", "line 1"),
        ("two.txt", b"input x[1]\na: x -> y[1]\nb: x -> y[1]", "declared twice"),
    ],
)
@pytest.mark.parametrize("command", ["schedule", "inspect", "compile"])
def test_what_is_no_model(
    command: str, name: str, content: bytes, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    if command == "compile" and path.suffix == ".txt":
        reason = ""  # a text form has no kernels to compile
    message = fails(command, path)
    assert name in message
    assert reason in message


def test_a_missing_file_a_directory_and_an_unknown_zoo_name(tmp_path: Path) -> None:
    assert "none.tflite" in fails("schedule", tmp_path / "none.tflite")
    assert "directory" in fails("schedule", tmp_path)
    assert "no network 'nope'" in fails("schedule", "zoo:nope")
    assert "size" in fails("schedule", "zoo:swiftnet?size=banana")


def test_damaged_copies_of_a_real_file(shared: Path, tmp_path: Path) -> None:
    data = (shared / "models/tflm/hello_world_int8.tflite").read_bytes()
    path = tmp_path / "damaged.tflite"
    for length in (10, 200, len(data) // 2):
        path.write_bytes(data[:length])
        assert "damaged.tflite" in fails("schedule", path)


def test_an_unwritable_output_leaves_nothing(net: Path, tmp_path: Path) -> None:
    message = fails("schedule", net, "-o", tmp_path / "no" / "such" / "folder.txt")
    assert "folder.txt" in message
    assert "cannot be written" in message
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.txt"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--method", "magic"], "--method 'magic': there are auto"),
        (["--slice", "0:5"], "slice 0:5 is not within its ops; use 0:0"),
        (["--slice", "x"], "write FIRST:LAST"),
        (["--time-limit", "-1"], "--time-limit -1.0: write a number of seconds from 0 on"),
        (["--dim", "N"], "write NAME=SIZE"),
        (["--align", "0"], "lignment"),
        (["--frobnicate"], "No such option"),
    ],
)
def test_options_that_make_no_sense(net: Path, options: list[str], reason: str) -> None:
    assert reason in fails("schedule", net, *options)


def test_csv_that_cannot_be_planned(tmp_path: Path) -> None:
    path = tmp_path / "buffers.csv"
    path.write_text("id,lower,upper,size\na,0,3,x\n")
    assert "buffers.csv, line 2" in fails("plan", path)
    assert "none.csv" in fails("plan", tmp_path / "none.csv")


def test_a_capacity_that_is_too_small_is_an_answer(tmp_path: Path) -> None:
    path, out = tmp_path / "buffers.csv", tmp_path / "out.csv"
    path.write_text("id,lower,upper,size\na,0,3,4\nb,0,3,4\n")
    found = serenity("plan", path, "--capacity", 7, "--json", "-o", out)
    assert found.returncode == 1
    assert '"outcome": "infeasible"' in found.stdout
    assert not out.exists()
    assert answer("plan", path, "-o", out, "--check")["arena_bytes"] == 8
    assert out.read_text().splitlines()[0].endswith("offset")


def test_help_teaches() -> None:
    for command in ("schedule", "plan", "compile", "inspect", "zoo"):
        found = serenity(command, "--help")
        assert found.returncode == 0
        assert "Usage" in found.stdout
    assert "zoo:NAME" in serenity("--help").stdout


@pytest.mark.parametrize("command", ["inspect", "rows", "fit", "offchip"])
def test_a_figure_that_cannot_be_drawn_is_refused_before_the_work(command: str) -> None:
    assert ".svg, .png, .pdf" in fails(command, "no file", "--plot", "x.txt")


def test_inspect_draws_and_lists(net: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for suffix in ("svg", "png"):
        out = tmp_path / f"profile.{suffix}"
        found = answer("inspect", net, "--plot", out)
        assert [step["live_bytes"] for step in found["steps"]] == [16]
        assert out.stat().st_size > 1000
    assert "peak 16 bytes" in serenity("inspect", net).stdout


def test_inspect_of_many_steps_prints_those_around_the_peak(tmp_path: Path) -> None:
    lines = ["input x0[1]i8"]
    lines += [f"o{i} RELU: x{i} -> x{i + 1}[{9 if i == 3000 else 1}]i8" for i in range(6000)]
    long = tmp_path / "long.txt"
    long.write_text("\n".join([*lines, "output x6000", ""]))
    said = serenity("inspect", long).stdout
    assert "steps 2900 to 3100, around the peak; --json has the other 5,799" in " ".join(
        said.split()
    )
    assert "o3000" in said
    assert "o2899" not in said
    assert len(answer("inspect", long)["steps"]) == 6000


def test_latency_names_a_project_that_does_not_exist(tmp_path: Path) -> None:
    missing = tmp_path / "firmware"
    message = " ".join(fails("latency", missing).split())
    assert "no such project or ELF; serenity build writes a project" in message
    missing.write_bytes(b"\x7fELF")
    assert "an ELF does not name its board" in " ".join(fails("latency", missing).split())
