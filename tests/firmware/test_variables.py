"""Networks with resource variables: states, in C too, and what is refused by name."""

from pathlib import Path

import numpy as np
import pytest

from tests.conformance.operators.variables import Parts
from tests.conformance.writer import Array, Subgraph, T, tflite
from tests.quantize.running import REFERENCE, Machine
from tvm_serenity.boards import board
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.firmware.building import build
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.frontends.relax import to_relax
from tvm_serenity.relax.attributes import STATES
from tvm_serenity.validation.references import runtime_for

SHAPE = (1, 4, 2)


def summed(first: Array | None, once: str = "", late: bool = False) -> bytes:
    """A running sum of the input; ``once``: another operator in the subgraph that begins it."""
    main, begins = Parts(), Parts()
    x = main.tensor(T(SHAPE, "float32"))
    if first is not None and not late:
        main.node("CALL_ONCE", [], initSubgraphIndex=1)
    handle = main.handle("total")
    (old,) = main.node("READ_VARIABLE", [handle], T(SHAPE, "float32"))
    (new,) = main.node("ADD", [old, x], T(SHAPE, "float32"))
    main.node("ASSIGN_VARIABLE", [handle, new])
    if first is None:
        return tflite(main.tensors, main.nodes, [x], [new])
    if late:
        main.node("CALL_ONCE", [], initSubgraphIndex=1)
    value = begins.tensor(T(SHAPE, "float32", data=first))
    if once:
        (value,) = begins.node(once, [value], T(SHAPE, "float32"))
    begins.node("ASSIGN_VARIABLE", [begins.handle("total"), value])
    further = [Subgraph(begins.tensors, begins.nodes)]
    return tflite(main.tensors, main.nodes, [x], [new], further)


VALUES = np.arange(8, dtype=np.float32).reshape(SHAPE)


@pytest.mark.parametrize("first", [None, VALUES * 0 + 3, VALUES], ids=["zeros", "full", "values"])
def test_a_sum_runs_on(first: Array | None, tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(data := summed(first))
    REFERENCE.open(runtime_for(path, data), data)
    module = to_relax(path)
    machine = Machine(module)
    fills = [int(v) for v in module["main"].attrs[STATES]]
    assert fills == {None: [0], 3.0: [3]}.get(None if first is None else first[0, 0, 0], [0, 0])
    for start in range(2):  # a new run begins anew
        for run in range(3):
            feed = [VALUES + run + start]
            mine = machine.step(feed) if run else machine.run(feed)
            theirs = (REFERENCE.step(feed) if run else REFERENCE.run(feed)).outputs
            np.testing.assert_array_equal(mine[0], theirs[0])


def test_handles_are_no_tensors() -> None:
    """The reference runtime is asked for the values of all tensors, but for none of a handle."""
    data = summed(VALUES)
    REFERENCE.open("litert", data, keep=True)
    tensors = REFERENCE.run([VALUES]).tensors
    assert len(tensors) >= 3
    assert all(array.dtype.kind in "fiub" for array in tensors.values())


def test_firmware_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(summed(VALUES))
    project = build(path, board("mps2-an500"), Settings())
    assert len(project.inputs) == len(project.outputs) == 3  # the input, the sum, the flag
    header = next(data for name, data in project.files.items() if name.endswith("_model.h"))
    assert header.count(b"_INITIAL (0)") == 2


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (summed(VALUES, once="ABS"), "ABS is not supported in the initialisation subgraph"),
        (summed(VALUES, late=True), "CALL_ONCE must initialise variables before they are read"),
    ],
    ids=["computed", "late"],
)
def test_what_is_not_followed_is_refused(data: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(data)
    with pytest.raises(UnsupportedError, match=said):
        to_relax(path)
