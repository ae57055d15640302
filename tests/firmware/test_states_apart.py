"""States that are outputs, that receive an input or one another: steps as LiteRT's, everywhere."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cases import sampled
from tests.cli.run import serenity
from tests.conformance.operators.variables import Parts
from tests.conformance.writer import Subgraph, T, tflite
from tests.firmware.projects import needs_host
from tvm_serenity import firmware
from tvm_serenity.boards import board
from tvm_serenity.errors import CheckError
from tvm_serenity.firmware.compile import sliding, unsplit
from tvm_serenity.firmware.compile.driver import NetworkCompiler
from tvm_serenity.frontends.relax import to_relax

BOARD = "mps2-an386"
WIDTH = 8
FORMS = {
    "old": ("y", "a"),
    "new": ("y", "b_new", "b_new"),
    "alone": ("b",),
    "reshaped": ("y", "b_flat"),
    "all": ("b", "y", "a", "b", "b_new"),
    "none": ("y",),
}
"""Outputs of a network whose state ``a`` receives ``b``, which receives the input, or the other
way round: the input, its maximum with both, the states and the new value of a state."""


def written(path: Path, outputs: tuple[str, ...], swapped: bool = False) -> Path:
    """Write a network of two steps before the input; ``swapped``: ``b`` receives ``a``."""
    net, begins = Parts(), Parts()
    row = T((1, 1, 1, WIDTH), "int8", 0.1, 3)
    known = {"x": net.tensor(row)}
    net.node("CALL_ONCE", [], initSubgraphIndex=1)
    handles = {name: net.handle(name) for name in "ab"}
    for at, (name, handle) in enumerate(handles.items()):
        (known[name],) = net.node("READ_VARIABLE", [handle], row)
        first = np.full(row.shape, 5 + 20 * at, np.int8)
        value = begins.tensor(T(row.shape, row.dtype, row.scale, row.zero, first))
        begins.node("ASSIGN_VARIABLE", [begins.handle(name), value])
    (both,) = net.node("MAXIMUM", [known["a"], known["b"]], row)
    (known["y"],) = net.node("MAXIMUM", [both, known["x"]], row)
    (known["b_new"],) = net.node("MINIMUM", [known["a"], known["x"]], row)
    flat = net.tensor(T((2,), "int32", data=np.array([1, WIDTH], np.int32)))
    result = T((1, WIDTH), "int8", 0.1, 3)
    (known["b_flat"],) = net.node("RESHAPE", [known["b"], flat], result, newShape=[1, WIDTH])
    to_b = known["a"] if swapped else known["b_new" if "b_new" in outputs else "x"]
    net.node("ASSIGN_VARIABLE", [handles["a"], known["b"]])
    net.node("ASSIGN_VARIABLE", [handles["b"], to_b])
    listed = [known[name] for name in outputs]
    further = [Subgraph(begins.tensors, begins.nodes)]
    path.write_bytes(tflite(net.tensors, net.nodes, [known["x"]], listed, further))
    return path


CASES = [(form, swapped) for form in FORMS for swapped in (False, True)]


@needs_host
@pytest.mark.parametrize(("form", "swapped"), sampled(CASES, 3))
def test_steps_are_those_of_litert(form: str, swapped: bool, tmp_path: Path) -> None:
    path = written(tmp_path / "net.tflite", FORMS[form], swapped)
    made = firmware.build(path, BOARD, firmware.Settings(name="net", sliding=1))
    assert made.facts["check"]["reference_runtime"]
    assert len(made.outputs) == len(FORMS[form])


@needs_host
def test_steps_run_on_the_relax_vm(tmp_path: Path) -> None:
    path = written(tmp_path / "net.tflite", FORMS["all"])
    done = serenity("rows", path, "--sliding", "1", "--check", "--run", "--json")
    assert done.returncode == 0, done.stderr
    assert "identical" in json.loads(done.stdout)["run"]["reference_runtime"]


def test_a_state_that_nothing_holds_for_the_output_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seeded fault: the output is where the state lies, which receives its new value."""
    monkeypatch.setattr(unsplit, "with_states_apart", lambda mod: mod)
    module = to_relax(written(tmp_path / "net.tflite", FORMS["old"]))
    settings = firmware.Settings(sliding=1, check=False)
    with pytest.raises(CheckError, match="differs from the row that the full network computes"):
        sliding.in_steps(NetworkCompiler(module, "net", board(BOARD), settings))
