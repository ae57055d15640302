"""The node tests of the ``onnx`` package through ``to_relax`` and the serenity pipeline."""

import tempfile
import traceback
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
EQUAL, REFUSED, DIFFERENT, CRASHED = "equal", "refused", "different", "crashed"


@dataclass(frozen=True)
class Verdict:
    """What became of a case; ``detail`` is the refusal, the difference, or the traceback."""

    status: str
    detail: str = ""


@cache
def cases() -> dict[str, Any]:
    """Return the test cases of the package by name."""
    import warnings

    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = load_model_tests(kind="node")
    return {case.name: case for case in found}


def check(task: tuple[str, bool]) -> Verdict:
    """Return the verdict on a case, by name; with its inputs but the first stored, or as it is."""
    name, stored = task
    case = cases()[name]
    inputs, expected = ([_array(a) for a in arrays] for arrays in case.data_sets[0])
    model = case.model
    if stored and all(isinstance(a, np.ndarray) for a in inputs):
        model, inputs = with_stored_inputs(model, inputs)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.onnx"
        path.write_bytes(model.SerializeToString())
        return judged(path, inputs, expected, case.rtol, case.atol)


def _array(value: Any) -> Any:
    from onnx import TensorProto, numpy_helper

    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.ndarray | np.generic) else value


def judged(path: Path, inputs: Any, expected: Any, rtol: float, atol: float) -> Verdict:
    from tvm_serenity.errors import SerenityError

    try:
        found = compiled_and_run(path, inputs)
    except SerenityError as error:
        text = str(error).removeprefix(f"{path}: ")
        return Verdict(REFUSED if "\n" not in text else CRASHED, text)
    except Exception:
        return Verdict(CRASHED, traceback.format_exc())
    wrong = difference(found, expected, rtol, atol)
    return Verdict(DIFFERENT, wrong) if wrong else Verdict(EQUAL)


def compiled_and_run(path: Path, inputs: Any) -> Any:
    import tvm

    from tvm_serenity.frontends.relax import to_relax
    from tvm_serenity.passes.relax.pipeline import serenity_pipeline
    from tvm_serenity.runtime.vm import run

    mod = to_relax(path)
    executable = tvm.compile(mod, "llvm", relax_pipeline=serenity_pipeline(rounding="float"))
    return run(executable, inputs).outputs


def with_stored_inputs(model: Any, inputs: Any) -> Any:
    from onnx import ModelProto, numpy_helper

    made = ModelProto()
    made.CopyFrom(model)
    kept = []
    for index, (value, array) in enumerate(zip(list(made.graph.input), inputs, strict=True)):
        if index == 0:
            kept.append(array)
            continue
        made.graph.initializer.append(numpy_helper.from_array(np.asarray(array), value.name))
        made.graph.input.remove(value)
    return made, kept


def difference(found: Any, expected: Any, rtol: float, atol: float) -> str:
    if len(found) != len(expected):
        return f"{len(found)} outputs, expected {len(expected)}"
    for index, (got, want) in enumerate(zip(found, expected, strict=True)):
        want = np.asarray(want)
        if got.shape != want.shape or got.dtype != want.dtype:
            return f"output {index}: {got.dtype}{got.shape}, expected {want.dtype}{want.shape}"
        if got.dtype.kind in "biu":
            if not np.array_equal(got, want):
                return f"output {index}: {np.sum(got != want)} of {got.size} integers differ"
        elif not np.allclose(got, want, rtol=rtol, atol=atol, equal_nan=True):
            largest = np.nanmax(np.abs(got.astype(np.float64) - want.astype(np.float64)))
            return f"output {index}: differs by {largest:.3g}"
    return ""
