"""``compile --tuned``: what it takes, what there is no room for, and that it says so."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.run import answer, serenity

tvm = pytest.importorskip("tvm")

from tvm_serenity import zoo  # noqa: E402
from tvm_serenity.kernels.measured import PLAIN, Form, Measured, key_of, write  # noqa: E402
from tvm_serenity.kernels.workspace import workspace_of  # noqa: E402
from tvm_serenity.relax.pipeline import Steps, prepared_for_host  # noqa: E402

NETWORK = "zoo:swiftnet-cell-c"
LLVM = ("--target", "llvm", "--no-check")


def seeded(file: Path) -> None:
    """Write that TVM's own schedule is faster, for all kernels of a network that need scratch."""
    plain = prepared_for_host(zoo.build(NETWORK), Steps(), tvm.target.Target("llvm")).plain
    functions: list[Any] = list(plain.functions.values())
    kernels = [f for f in functions if isinstance(f, tvm.tirx.PrimFunc) and workspace_of(f)]
    found = {key_of(f): Measured(2.0, (Form(None, 1.0, workspace_of(f)),)) for f in kernels}
    write(found, PLAIN, file)


def test_the_arena_stays_what_it_is_and_both_are_said(tmp_path: Path) -> None:
    file = tmp_path / "forms.json"
    seeded(file)
    none = answer("compile", NETWORK, *LLVM, "--tuned", "none")
    found = answer("compile", NETWORK, *LLVM, "--tuned", file)
    assert none["tuned"] == {"source": "none", "target_class": "plain", "kernels": []}
    assert found["schedule"]["arena_bytes"] == none["schedule"]["arena_bytes"]
    assert found["given"]["arena_bytes"] <= none["given"]["arena_bytes"]
    assert found["tuned"]["source"] == str(file)
    taken = [k for k in found["tuned"]["kernels"] if k["taken"]]
    left = [k for k in found["tuned"]["kernels"] if not k["taken"]]
    assert taken
    assert left
    assert {k["form"] for k in taken} == {"TVM's own"}
    assert found["outputs"]["identical_to_given_order"]
    text = serenity("compile", NETWORK, *LLVM, "--tuned", file).stdout
    said = " ".join(text.split())
    assert "for plain:" in said
    assert f"{taken[0]['kernel']} (TVM's own)" in said
    assert "no memory for the scratch of" in said


def test_nothing_is_shipped_for_any_processor() -> None:
    found = answer("compile", NETWORK, *LLVM)
    assert found["tuned"] == {"source": "shipped", "target_class": "plain", "kernels": []}
