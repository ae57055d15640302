"""Walks whose callbacks raise: the error arrives, the heap stays whole, nobody walks otherwise."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

tvm = pytest.importorskip("tvm")

from tests.cli.run import NO_TORCH  # noqa: E402
from tests.kernels.convolutions import convolution_of  # noqa: E402
from tvm_serenity.kernels import nodes  # noqa: E402
from tvm_serenity.kernels.row_loops import row_loops  # noqa: E402

ROOT = Path(__file__).parents[2]

CHILD = """
import gc
from tvm import tirx
from tvm.ir.expr import TensorLoad
from tests.kernels.convolutions import convolution_of
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.nodes import mapped, walk
from tvm_serenity.kernels.row_loops import replaced, row_loops

body = row_loops(convolution_of((4, 8))).body
for at in range(12):
    for go in (mapped, walk):
        for kind in (tirx.For, TensorLoad, tirx.Var):
            seen = []

            def refuse(part):
                seen.append(part)
                if len(seen) > at:
                    raise UnsupportedError("refused")
                if isinstance(part, tirx.For):
                    return tirx.SeqStmt([replaced(part.body, part.loop_var, i) for i in range(2)])
                return part

            try:
                go(body, kind, refuse)
            except UnsupportedError as error:
                assert str(error) == "refused"
    gc.collect()
print("whole")
"""


def test_the_heap_stays_whole() -> None:
    done = subprocess.run(
        [sys.executable, "-c", NO_TORCH + CHILD],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, "whole\n"), done.stderr[-2000:]


def test_the_first_error_is_raised_and_nothing_visited_after_it() -> None:
    body = row_loops(convolution_of()).body
    seen: list[Any] = []

    def refuse(part: Any) -> Any:
        seen.append(part)
        raise KeyboardInterrupt

    for go in (nodes.mapped, nodes.walk, nodes.walk_down):
        seen.clear()
        with pytest.raises(KeyboardInterrupt):
            go(body, tvm.tirx.Var, refuse)
        assert len(seen) == 1


def test_no_error_reaches_tvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """What TVM is given to call returns, whatever is raised inside of it."""
    raised: list[BaseException] = []

    def calls(root: Any, entry: Any, **_options: Any) -> Any:
        for _ in range(3):
            try:
                root = entry[1](root)
            except BaseException as error:
                raised.append(error)
        return root

    def refuse(_part: Any) -> Any:
        raise SystemExit(3)

    monkeypatch.setattr("tvm_ffi.structural_map", calls)
    monkeypatch.setattr("tvm_ffi.structural_walk", calls)
    for go in (nodes.mapped, nodes.walk, nodes.walk_down):
        with pytest.raises(SystemExit):
            go("node", str, refuse)
    assert not raised


def test_no_other_module_walks() -> None:
    names = ("structural_map", "structural_walk")
    found = {
        str(path.relative_to(ROOT))
        for folder in ("tvm_serenity", "passes", "benchmarks", "scripts")
        for path in (ROOT / folder).rglob("*.py")
        if any(name in path.read_text() for name in names)
    }
    assert found == {"tvm_serenity/kernels/nodes.py"}
