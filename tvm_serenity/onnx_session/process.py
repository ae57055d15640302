"""Send requests to the child process within a time limit, and compare two sessions' outputs."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm_serenity.errors import InputError, MissingPartError, UnsupportedError, WrongResultError
from tvm_serenity.onnx_session.options import SESSION_OPTIONS

LIMIT_S = 300.0
"""Time limit of an optimisation, or of the runs of one session, in seconds."""
LEVELS = {"onnxruntime": "ORT_ENABLE_EXTENDED", "onnxruntime-all": "ORT_ENABLE_ALL"}
"""The optimisation level before ordering; a file saved at ALL needs a machine of the same kind."""


@dataclass(frozen=True)
class Sessions:
    """The resident memory that runs add to a session, in bytes, and the fastest run's seconds.

    The memory is what runs write, without program pages that they touch first. ``default``: the
    given model with default options; ``ordered``: the written file with ``SESSION_OPTIONS``.
    ``max_error``: the largest difference of their outputs over the largest magnitude. The outputs
    of the written file and of the optimised file are bit-identical.
    """

    default_bytes: int
    ordered_bytes: int
    default_seconds: float
    ordered_seconds: float
    max_error: float


def optimise(model: Path, target: Path, level: str) -> None:
    """Write ``model``, optimised by onnxruntime at ``level``, to ``target``.

    Raises :class:`UnsupportedError` if onnxruntime refuses the model, and :class:`MissingPartError`
    if it is not installed.
    """
    options = {"graph_optimization_level": level, "optimized_model_filepath": str(target)}
    _ask(model, {"do": "optimise", "options": options})


def measure(given: Path, optimised: Path, ordered: Path, dims: Mapping[str, int]) -> Sessions:
    """Run the three files in separate processes and compare them.

    Raises :class:`WrongResultError` if the outputs of ``ordered`` differ from those of
    ``optimised``.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{index}.npz" for index in range(3)]
        runs = [
            (given, {}, files[0]),
            (optimised, SESSION_OPTIONS, files[1]),
            (ordered, SESSION_OPTIONS, files[2]),
        ]
        default, _, best = (
            _ask(model, {"do": "run", "options": dict(o), "dims": dict(dims), "outputs": str(file)})
            for model, o, file in runs
        )
        first, same, last = (_arrays(file) for file in files)
    if [a.tobytes() for a in same] != [a.tobytes() for a in last]:
        raise WrongResultError(
            f"{ordered}: its outputs differ from those of the model in its given order"
        )
    return Sessions(
        default["extra_bytes"],
        best["extra_bytes"],
        default["seconds"],
        best["seconds"],
        max((_error(a, b) for a, b in zip(first, last, strict=True)), default=0.0),
    )


def run_bytes(model: Path, options: Mapping[str, str | bool]) -> int:
    """Return the resident memory that runs of ``model`` under ``options`` add to a session."""
    answer = _ask(model, {"do": "run", "options": dict(options), "dims": {}, "outputs": ""})
    return int(answer["extra_bytes"])


def can_measure() -> bool:
    """Return whether this system reports the memory growth of a process."""
    return Path("/proc/self/clear_refs").exists()


def _arrays(file: Path) -> list[Any]:
    import numpy as np

    with np.load(file) as arrays:
        return [arrays[name] for name in arrays.files]


def _error(left: Any, right: Any) -> float:
    """Return the largest difference over the largest magnitude."""
    import numpy as np

    if not left.size:
        return 0.0
    a, b = np.asarray(left, np.float64), np.asarray(right, np.float64)
    return float(np.max(np.abs(a - b))) / max(float(np.max(np.abs(a))), 1e-30)


def _ask(model: Path, request: dict[str, Any]) -> Any:
    try:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "tvm_serenity.onnx_session.child"],
            input=json.dumps({**request, "model": str(model)}).encode(),
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise InputError(f"{model}: onnxruntime did not answer within {LIMIT_S:g} s") from None
    if done.returncode != 0:
        why = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        ended = f"onnxruntime ended with status {done.returncode}"
        raise UnsupportedError(f"{model}: {ended} {' '.join(why)[:200]}".rstrip())
    answer = json.loads(done.stdout.decode().strip().splitlines()[-1])
    if "missing" in answer:
        missing = answer["missing"]
        raise MissingPartError(f"onnxruntime needs {missing}; run pip install 'tvm-serenity[run]'")
    if "refused" in answer:
        raise UnsupportedError(f"{model}: onnxruntime refuses the model: {answer['refused']}")
    return answer
