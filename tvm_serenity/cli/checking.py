"""What ``serenity build`` checks before it writes: kernels one by one, then the whole network."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from tvm_serenity.firmware.emit.trial import SOURCES
from tvm_serenity.firmware.judge import Verdict, judged
from tvm_serenity.firmware.program import Array
from tvm_serenity.firmware.rehearsal import Rehearsed, rehearse
from tvm_serenity.firmware.toolchain import PACKAGES, have
from tvm_serenity.firmware.trial import COMPILER, Compilation, compilation

NoCheck = Annotated[
    bool, typer.Option("--no-check", help="Do not compare what is built with TVM and the model.")
]
SKIPPED = "--no-check: nothing was compared"
NO_COMPILER = f"nothing was compared: apt-get install {PACKAGES[COMPILER]}"


@dataclass(frozen=True)
class Report:
    """What was compared, or why nothing was (``skipped``)."""

    kernels: int = 0
    sets: int = 0
    whole: Rehearsed | None = None
    skipped: str = ""

    def json(self) -> dict[str, Any]:
        """Return the report as ``--json`` and ``metadata.json`` have it."""
        whole = self.whole or Rehearsed(0, "", "")
        return {
            "skipped": self.skipped or None,
            "kernels": self.kernels,
            "input_sets": self.sets,
            "tensors": whole.tensors,
            "referee": whole.referee or None,
            "without_referee": whole.without or None,
        }

    def text(self) -> str:
        """Return the report in words."""
        if self.skipped or self.whole is None:
            return self.skipped
        judge = self.whole.referee
        said = f"outputs as {judge}'s" if judge else f"no referee ({self.whole.without})"
        return (
            f"{self.kernels} kernels as TVM's on {self.sets} sets of inputs; whole network: "
            f"{self.whole.tensors} tensors as TVM's, {said}"
        )


@contextmanager
def host_build(texts: Mapping[str, bytes], objects: Mapping[str, bytes]) -> Iterator[Compilation]:
    """Yield this machine's compiler at work on a project's sources and ``trial.c``."""
    with tempfile.TemporaryDirectory(prefix="serenity.") as made:
        directory = Path(made)
        files = {n: t for n, t in {**texts, **objects}.items() if "/" not in n}
        started = compilation(directory, files, [*SOURCES, *objects], ["-DSERENITY_TRACE"])
        try:
            yield started
        finally:
            started.stop()


def why_not(no_check: bool) -> str:
    """Return why nothing can be compared, "" where it can."""
    return SKIPPED if no_check else "" if have(COMPILER) else NO_COMPILER


def whole(
    started: Compilation, texts: Mapping[str, bytes], reference: Mapping[str, Array], said: Verdict
) -> Rehearsed:
    """Return what running the whole network compared; see :func:`rehearse`."""
    return rehearse(started.library, texts, reference, said)


def referee(model: str, reference: Mapping[str, Array], stateful: bool) -> Verdict:
    """Return what the model's own runtime makes of the inputs of a reference."""
    inputs = [reference[f"input{i}"] for i in range(_count(reference, "input"))]
    outputs = [reference[f"output{i}"] for i in range(_count(reference, "output"))]
    return judged(model, inputs, outputs, stateful)


def _count(reference: Mapping[str, Array], name: str) -> int:
    return sum(key.removeprefix(name).isdigit() for key in reference if key.startswith(name))
