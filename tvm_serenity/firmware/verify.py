"""Verifying a project: every tensor, when it is written, against TVM's own execution."""

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tvm_serenity.errors import InputError
from tvm_serenity.firmware.execute import Execution, host, qemu
from tvm_serenity.firmware.program import Array
from tvm_serenity.firmware.referee import OUTPUT, tolerance_in
from tvm_serenity.validation.report import Tolerance, first_difference
from tvm_serenity.validation.tolerances import LOOSE

REFERENCE = "reference.npz"
"""Inputs, every tensor in the order written, and outputs, as TVM and LiteRT computed them."""

ULP_LIMIT = 2
"""Units in the last place that float tensors may be off in C."""

ULP_LIMIT_LLVM = 8
"""The same for kernels compiled by LLVM, which contracts multiplications and additions."""


@dataclass(frozen=True)
class Project:
    """A directory that ``serenity build`` wrote."""

    directory: Path
    metadata: Mapping[str, Any]
    reference: Mapping[str, Array]

    @property
    def outputs(self) -> tuple[dict[str, Any], ...]:
        """The tensors of the outputs as ``metadata.json`` describes them."""
        return tuple(self.metadata["tensors"][t] for t in self.metadata["outputs"])

    @property
    def inputs(self) -> tuple[dict[str, Any], ...]:
        """The tensors of the inputs as ``metadata.json`` describes them."""
        return tuple(self.metadata["tensors"][t] for t in self.metadata["inputs"])

    @property
    def ulp_limit(self) -> int:
        """Units in the last place that float tensors may be off."""
        return ULP_LIMIT_LLVM if self.metadata["objects"] else ULP_LIMIT

    def reference_inputs(self) -> list[Array]:
        """The inputs the reference was computed on."""
        return [self.reference[f"input{i}"] for i in range(len(self.inputs))]


def load(directory: str | Path) -> Project:
    """Return the project in ``directory``; :class:`InputError` where it is none."""
    path = Path(directory)
    try:
        metadata = json.loads((path / "metadata.json").read_text(encoding="utf-8"))
        with np.load(path / REFERENCE) as arrays:
            reference = {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{directory}: no firmware project ({reason})") from None
    return Project(path, metadata, reference)


def packed(arrays: Mapping[str, Array]) -> bytes:
    """Return arrays as the bytes of a compressed ``.npz`` file, the same for the same arrays."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, array in arrays.items():
            data = io.BytesIO()
            np.lib.format.write_array(data, np.ascontiguousarray(array))
            file.writestr(zipfile.ZipInfo(f"{name}.npy"), data.getvalue())
    return buffer.getvalue()


@dataclass(frozen=True)
class Difference:
    """How far one run is from the reference; ``first`` is the first tensor that differs."""

    identical: bool
    tensors: int
    max_abs_error: float
    max_ulp: int
    first: str | None

    @property
    def accepted(self) -> bool:
        """Whether integers are identical and floats within the project's limit."""
        return self.identical or self.first is None


def difference(project: Project, steps: Sequence[tuple[int, bytes]]) -> Difference:
    """Return how the traced tensors differ from the reference, each when it was written."""
    expected = [t for step in project.metadata["steps"] for t in step["writes"]]
    if [t for t, _ in steps] != expected:
        return Difference(False, 0, float("inf"), 2**31, "the tensors written")
    worst, ulps, same, first = 0.0, 0, True, None
    for number, (tensor, data) in enumerate(steps):
        described = project.metadata["tensors"][tensor]
        want = project.reference[f"step{number}"].reshape(-1)
        got = np.frombuffer(data, want.dtype)
        if got.size != want.size:
            return Difference(False, number, float("inf"), 2**31, described["name"])
        if got.tobytes() == want.tobytes():
            continue
        same = False
        worst = max(worst, _error(got, want))
        apart = _ulp(got, want) if want.dtype == np.float32 else 2**31
        ulps = max(ulps, apart)
        if first is None and apart > project.ulp_limit:
            first = described["name"]
    return Difference(same, len(steps), worst, ulps, first)


def _error(a: Array, b: Array) -> float:
    apart = np.abs(a.astype(np.float64) - b.astype(np.float64))
    return float(np.nan_to_num(apart, nan=np.inf).max(initial=0.0))


def _ulp(a: Array, b: Array) -> int:
    """The largest distance in units in the last place of float32 values."""

    def ordered(x: Array) -> Array:
        bits = x.view(np.int32).astype(np.int64)
        return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)

    return int(np.abs(ordered(a) - ordered(b)).max(initial=0))


def run_host(project: Project, inputs: Sequence[Array], *, traced: bool) -> Execution:
    """Return a run on the host."""
    if project.metadata["objects"]:
        raise InputError(f"{project.directory}: its kernels are compiled for the board; run --qemu")
    data = [np.ascontiguousarray(a).tobytes() for a in inputs]
    return host(project.directory, data, len(project.outputs), traced=traced)


def run_qemu(project: Project, inputs: Sequence[Array], *, traced: bool) -> Execution:
    """Return a run on the project's board in QEMU."""
    machine = project.metadata["qemu"]
    if machine is None:
        raise InputError(f"board {project.metadata['board']!r} has no machine in QEMU; run --host")
    data = [np.ascontiguousarray(a).tobytes() for a in inputs]
    return qemu(project.directory, machine, data, len(project.outputs), traced=traced)


def referee_difference(project: Project, execution: Execution) -> tuple[float, str] | None:
    """Return how far outputs are from the model's runtime, and in words what is wrong, if it is.

    None without a recorded answer. Integers must be identical, floats within ``tolerance_of``.
    """
    worst, wrong = 0.0, ""
    for i, (data, output) in enumerate(zip(execution.outputs, project.outputs, strict=True)):
        if f"{OUTPUT}{i}" not in project.reference:
            return None if i == 0 else (worst, wrong)
        want = project.reference[f"{OUTPUT}{i}"]
        have = np.frombuffer(data, output["dtype"])
        have = have.reshape(want.shape) if have.size == want.size else have
        if have.dtype == want.dtype and have.shape == want.shape:
            worst = max(worst, _error(have.reshape(-1), want.reshape(-1)))
        found = first_difference([want], [have], tolerance_of(project))
        if found is not None and not wrong:
            wrong = f"output {output['name']!r}: {found.text()}"
    return worst, wrong


def tolerance_of(project: Project) -> Tolerance:
    """Return how far outputs may be from the runtime's: as recorded, or wide.

    Wide where the two round at other places: the build says so in ``metadata.json``, where
    ``loose`` is the reason.
    """
    return LOOSE if project.metadata.get("loose") else tolerance_in(project.reference)
