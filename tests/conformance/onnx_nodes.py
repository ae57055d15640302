"""The node tests of the ``onnx`` package through ``to_relax`` and the serenity pipeline.

A case is named by the module of the package that makes it and its own name. Each is tried as it
is, or with all inputs but the first stored in the file, as axes, shapes and bounds are in models.
"""

import pkgutil
import random
import tempfile
import time
import traceback
import warnings
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from tests.conformance.child import Child, Death
from tests.conformance.counts import Counts, general
from tests.conformance.verdict import (
    CRASHED,
    DIFFERENT,
    EQUAL,
    REFUSED,
    TARGET,
    Verdict,
    difference,
)

ATOL = 1e-5
"""The least absolute difference allowed; the package allows 1e-7 of values near 1e-4."""
HALF = 4e-3
"""Relative and absolute difference allowed in float16: four units in the last place of 1."""
_PACKAGE = "onnx.backend.test.case.node"


def modules() -> list[str]:
    """Return the modules of the package that make node tests."""
    package = import_module(_PACKAGE)
    found = [m.name for m in pkgutil.walk_packages(package.__path__, f"{_PACKAGE}.")]
    return sorted(name.removeprefix(f"{_PACKAGE}.") for name in found if "._" not in name)


@cache
def cases_of(module: str) -> dict[str, Any]:
    """Return the test cases that a module makes, by name."""
    made: list[Any] = import_module(_PACKAGE)._NodeTestCases
    before = len(made)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        import_module(f"{_PACKAGE}.{module}")
    return {case.name: case for case in made[before:]}


def names(module: str) -> list[str]:
    """Return the names of the cases of a module."""
    return list(cases_of(module))


def check(task: tuple[str, str, bool]) -> Any:
    """Return the verdict on the case ``module, name, stored``; for no name, those there are."""
    module, name, stored = task
    if not name:
        return names(module)
    case = cases_of(module)[name]
    inputs, expected = ([_array(a) for a in arrays] for arrays in case.data_sets[0])
    model = case.model
    if stored and all(isinstance(a, np.ndarray) for a in inputs):
        model, inputs = _with_stored_inputs(model, inputs)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.onnx"
        path.write_bytes(model.SerializeToString())
        return _compared(path, inputs, expected, case.rtol)


def _compared(path: Path, inputs: Any, expected: Any, rtol: float) -> Verdict:
    from tvm_serenity.errors import SerenityError

    try:
        found = _compiled_and_run(path, inputs)
    except SerenityError as error:
        text = str(error).removeprefix(f"{path}: ")
        return Verdict(REFUSED if "\n" not in text else CRASHED, text)
    except Exception:
        return Verdict(CRASHED, traceback.format_exc())
    half = any(array.dtype == np.float16 for array in found)
    wrong = difference(found, expected, max(rtol, HALF if half else 0), HALF if half else ATOL)
    return Verdict(DIFFERENT, wrong) if wrong else Verdict(EQUAL)


def _compiled_and_run(path: Path, inputs: Any) -> Any:
    import tvm

    from tvm_serenity.frontends.relax import to_relax
    from tvm_serenity.runtime.pipeline import serenity_pipeline
    from tvm_serenity.runtime.vm import run

    target, pipeline = (
        tvm.target.Target(TARGET),
        serenity_pipeline(rounding="float", validate=False),
    )
    return run(tvm.compile(to_relax(path), target, relax_pipeline=pipeline), inputs).outputs


def _with_stored_inputs(model: Any, inputs: Any) -> Any:
    from onnx import ModelProto, numpy_helper

    made = ModelProto()
    made.CopyFrom(model)
    for value, array in list(zip(made.graph.input, inputs, strict=True))[1:]:
        made.graph.initializer.append(numpy_helper.from_array(array, value.name))
    del made.graph.input[1:]
    return made, inputs[:1]


def _array(value: Any) -> Any:
    from onnx import TensorProto, numpy_helper

    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.ndarray | np.generic) else value


def run(seconds: float, seed: int, folder: Path | None = None) -> Counts:
    """Return the counts of all cases, both as they are and stored, or of as many as time allows.

    ``folder`` is not used: the package holds every case by its name.
    """
    counts, until = Counts(), time.monotonic() + seconds
    order = modules()
    random.Random(seed).shuffle(order)
    with Child(check) as child:
        for module in order:
            for name in child.ask((module, "", False)):
                for stored in (False, True):
                    verdict = child.ask((module, name, stored))
                    count(counts, module.removeprefix("ai_onnx_ml."), name, verdict)
                if time.monotonic() > until:
                    return counts
    return counts


def count(counts: Counts, kind: str, name: str, verdict: Any) -> None:
    """Add the verdict on a case, or the death of the process that compared it."""
    if isinstance(verdict, Death):
        counts.different.append(f"{kind} ({name}): {verdict.reason}")
    elif verdict.status == EQUAL:
        counts.equal[kind] += 1
    elif verdict.status == REFUSED:
        counts.refused[f"{kind}: {general(verdict.detail)}"] += 1
    else:
        counts.different.append(f"{kind} ({name}): {verdict.status}: {verdict.detail[-300:]}")
