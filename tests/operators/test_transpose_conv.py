"""TRANSPOSE_CONV, whole and by rows, as its reference runtime computes it."""

from pathlib import Path
from typing import Any

import pytest

from tests.conformance.test_references import cases
from tests.quantize.running import Machine, reference_of
from tvm_serenity.frontends.relax import to_relax
from tvm_serenity.relax.rows import by_rows
from tvm_serenity.rows import Limits
from tvm_serenity.validation.references import runtime_for


def split(module: Any) -> Any:
    """The module by rows, which it must have been cut into."""
    import tvm

    with tvm.target.Target("llvm"):
        made, found = by_rows(module, limits=Limits(0.2))
    found.check()
    assert not found.banded.network.unsplit
    return made


def assert_exact(data: bytes, path: Path, rows: bool = True) -> None:
    """Find what the reference runtime makes of three inputs, whole and by rows."""
    path.write_bytes(data)
    module = to_relax(path)
    machines = [Machine(module), *([Machine(split(module))] if rows else [])]
    reference = reference_of(data)
    for fill in (0, "min", "max"):
        inputs = reference.inputs(fill)
        (wanted,) = reference.run(inputs).outputs
        for machine in machines:
            (made,) = machine.run(inputs)
            assert made.dtype == wanted.dtype
            assert (made == wanted).all()


@pytest.mark.parametrize("number", range(5))
def test_shapes_that_are_inputs(shared: Path, tmp_path: Path, number: int) -> None:
    name = f"tflm_seanet_transpose_conv_transpose_conv{number}.tflite"
    data = (shared / "models/wild" / name).read_bytes()
    assert runtime_for(name, data) == "tflm"
    assert_exact(data, tmp_path / name, rows=number in (0, 4))


def test_by_rows(tmp_path: Path) -> None:
    seen = set()
    for case in cases("TRANSPOSE_CONV", 200, 5):
        dtype = case.note.split(" -> ")[1].split("[")[0]
        rows = case.note.split(" -> ")[1].split("[")[1].split("]")[0].split(", ")
        if dtype not in ("int8", "int16") or rows[0] != "1" or int(rows[1]) < 4 or dtype in seen:
            continue
        seen.add(dtype)
        assert_exact(case.data, tmp_path / "model.tflite")
    assert seen == {"int8", "int16"}
