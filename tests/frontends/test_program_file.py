"""``.pt2`` files: the graph of an exported program, and every command that takes a model."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("tvm")

from tests.cli.run import serenity  # noqa: E402
from tvm_serenity.errors import InputError, UnsupportedError  # noqa: E402
from tvm_serenity.frontends import load, program_file  # noqa: E402
from tvm_serenity.frontends.relax import to_relax  # noqa: E402


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A convolution, an activation and a dense layer, as PyTorch saves them."""

    class Network(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.dense = torch.nn.Conv2d(3, 8, 3), torch.nn.Linear(8, 4)

        def forward(self, x: Any) -> Any:
            return self.dense(torch.relu(self.conv(x)).mean((2, 3)))

    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("pt2") / "net.pt2"
    torch.export.save(torch.export.export(Network().eval(), (torch.randn(1, 3, 16, 16),)), path)
    return path


def test_its_graph(model: Path) -> None:
    graph = load(model).graph
    assert [op.name for op in graph.ops] == ["conv2d", "relu", "mean", "linear"]
    assert graph.constant_bytes == 4 * (8 * 27 + 8 + 4 * 8 + 4)
    with pytest.raises(UnsupportedError, match="another order"):
        load(model).reordered(range(4))
    with pytest.raises(InputError, match="set when it is exported"):
        load(model, {"N": 1})


def test_every_command_takes_it(model: Path, tmp_path: Path) -> None:
    for command in (["schedule"], ["explain"], ["report", "-o", str(tmp_path / "page.html")]):
        done = serenity(command[0], str(model), *command[1:])
        assert done.returncode == 0, done.stderr
    done = serenity("compile", str(model), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["checks"]["reference_runtime"]["reference_runtime"] == "PyTorch"
    where = str(tmp_path / "made")
    done = serenity("build", str(model), "--board", "mps2-an500", "-o", where)
    assert done.returncode == 0, done.stderr
    assert len(to_relax(model)["main"].params) == 1


@pytest.mark.parametrize("data", [b"PK", b"no archive", b"\0" * 100])
def test_what_is_none_is_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad.pt2"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"bad\.pt2: not a readable PyTorch program"):
        load(path)


def test_it_runs_no_code_of_a_file(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    right = torch.export.load

    def watched(file: Any) -> Any:
        seen.append(os.environ.get(program_file.NUMBERS_ONLY))
        return right(file)

    monkeypatch.setattr(torch.export, "load", watched)
    load(model)
    assert seen == ["1"]
    assert program_file.NUMBERS_ONLY not in os.environ


def test_a_program_of_executorch_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tvm_serenity.frontends.pte_file import PteFile

    made = PteFile.__new__(PteFile)
    object.__setattr__(made, "path", tmp_path / "net.pte")
    with pytest.raises(
        UnsupportedError, match=r"net\.pte: an ExecuTorch program cannot be compiled"
    ):
        to_relax(made)
