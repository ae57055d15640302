"""Verify a project: compare every tensor, when it is written, with TVM's own execution."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tvm_serenity.errors import InputError
from tvm_serenity.firmware.board.execute import Execution, host, qemu
from tvm_serenity.firmware.check.reference_runtime import OUTPUT, tolerance_in
from tvm_serenity.firmware.check.unknown import UNKNOWN
from tvm_serenity.firmware.program import Array
from tvm_serenity.firmware.result import Project
from tvm_serenity.firmware.ulp import close, ulps
from tvm_serenity.validation.report import Tolerance, first_difference
from tvm_serenity.validation.tolerances import LOOSE


@dataclass(frozen=True)
class Deviation:
    """The difference between a run and the reference; ``first`` is the first wrong tensor."""

    identical: bool
    tensors: int
    max_abs_error: float
    max_ulp: int
    first: str | None

    @property
    def accepted(self) -> bool:
        """Whether integers are identical and floats are within the project's limit."""
        return self.identical or self.first is None


def difference(project: Project, steps: Sequence[tuple[int, bytes]]) -> Deviation:
    """Return how the traced tensors differ from the reference when they are written."""
    expected = [t for step in project.metadata["steps"] for t in step["writes"]]
    expected *= project.windows
    if [t for t, _ in steps] != expected:
        return Deviation(False, 0, float("inf"), 2**31, "the tensors written")
    worst, most, same, first = 0.0, 0, True, None
    unknown = set(project.reference[UNKNOWN].tolist() if UNKNOWN in project.reference else [])
    for number, (tensor, data) in enumerate(steps):
        if number in unknown:
            continue
        described = project.metadata["tensors"][tensor]
        want = project.reference[f"step{number}"].reshape(-1)
        got = np.frombuffer(data, want.dtype)
        if got.size != want.size:
            return Deviation(False, number, float("inf"), 2**31, described["name"])
        if got.tobytes() == want.tobytes():
            continue
        same = False
        worst = max(worst, _error(got, want))
        accepted, apart = False, 2**31
        if want.dtype == np.float32:
            units = ulps(got, want)
            accepted, apart = close(got, want, project.ulp_limit, units), int(units.max(initial=0))
        most = max(most, apart)
        if first is None and not accepted:
            first = described["name"]
    return Deviation(same, len(steps) - len(unknown), worst, most, first)


def _error(a: Array, b: Array) -> float:
    apart = np.abs(a.astype(np.float64) - b.astype(np.float64))
    return float(np.nan_to_num(apart, nan=np.inf).max(initial=0.0))


def run_host(project: Project, inputs: Sequence[Array], *, traced: bool) -> Execution:
    """Run the project on the host."""
    if project.metadata["objects"]:
        raise InputError(
            f"{project.folder}: its kernels are compiled for the board and cannot run on the "
            "host; run with --qemu"
        )
    data = [np.ascontiguousarray(a).tobytes() for a in inputs]
    return host(project.folder, data, len(project.outputs), traced=traced)


def without_machine(project: Project) -> str:
    """Return the message for a project whose board QEMU does not emulate."""
    return f"board {project.metadata['board']!r} has no machine in QEMU; run with --host"


def run_qemu(project: Project, inputs: Sequence[Array], *, traced: bool) -> Execution:
    """Run the project on its board in QEMU."""
    machine = project.metadata["qemu"]
    if machine is None:
        raise InputError(without_machine(project))
    data = [np.ascontiguousarray(a).tobytes() for a in inputs]
    return qemu(project.folder, machine, data, len(project.outputs), traced=traced)


def reference_difference(project: Project, execution: Execution) -> tuple[float, str] | None:
    """Return the largest error against the reference runtime, and the first wrong output or "".

    None if no outputs of the runtime are recorded. Integers must be identical, floats within
    ``tolerance_of``.
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
    """Return the tolerance of outputs against the reference runtime's: as recorded, or wide.

    It is wide if the two round at different places; ``loose`` in ``metadata.json`` is the reason.
    """
    return LOOSE if project.metadata.get("loose") else tolerance_in(project.reference)
