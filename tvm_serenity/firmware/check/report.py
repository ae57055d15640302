"""The report of what ``serenity build`` compares before it writes: kernels, then the network."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm_serenity.firmware.board.toolchain import PACKAGES, have
from tvm_serenity.firmware.check.host_run import Rehearsed
from tvm_serenity.firmware.check.trial import COMPILER, Compilation, compilation
from tvm_serenity.firmware.emit.opaque import STUB, stub
from tvm_serenity.firmware.emit.trial import sources
from tvm_serenity.firmware.program import Program

SKIPPED = "--no-check: nothing was compared"
NO_COMPILER = f"nothing was compared: apt-get install {PACKAGES[COMPILER]}"


@dataclass(frozen=True)
class CheckReport:
    """What was compared, or why nothing was compared (``skipped``).

    ``loose``: why outputs need not equal the runtime's exactly. ``users``: the operators that the
    user computes, which were replaced by zeros. ``sums``: the number of sums requantized in exact
    integers; ``macros``: the number of macros of ``model.h``. ``summary``: what was compared, for
    a network that TVM has no kernels for.
    """

    kernels: int = 0
    sets: int = 0
    whole: Rehearsed | None = None
    loose: str = ""
    skipped: str = ""
    users: tuple[str, ...] = ()
    sums: int = 0
    macros: int = 0
    summary: str = ""

    def json(self) -> dict[str, Any]:
        """Return the report as a JSON object, for ``--json`` and ``metadata.json``."""
        whole = self.whole or Rehearsed(0, False, "")
        return {
            "skipped": self.skipped or None,
            "kernels": self.kernels,
            "input_sets": self.sets,
            "requantised_sums": self.sums,
            "macros": self.macros,
            "tensors": whole.tensors,
            "reference_runtime": whole.has_reference,
            "inputs": whole.inputs or None,
            "reference_runtime_inputs": whole.reference_inputs or None,
            "without_reference_runtime": whole.without or None,
            "loose": self.loose or None,
            "opaque": list(self.users),
        }

    def text(self) -> str:
        """Return the report in words."""
        if self.skipped or self.whole is None:
            return self.skipped
        if self.summary:
            return self.summary
        said = "outputs as the model's own runtime's"
        confirmed, others = (
            self.whole.reference_inputs,
            self.whole.inputs - self.whole.reference_inputs,
        )
        said += f" on {confirmed} inputs" if confirmed else ""
        said += f" ({self.loose})" if self.loose else ""
        said = said if self.whole.has_reference else f"no reference runtime ({self.whole.without})"
        said += f", as TVM's on {others} inputs" if others > 0 else ""
        names = ", ".join(self.users)
        zeros = f"; zeros stood for what {names} makes, which is not compared" if names else ""
        sums = f"; {self.sums:,} sums requantised as exact integers" if self.sums else ""
        return (
            f"{self.kernels} kernels as TVM's on {self.sets} sets of inputs{sums}; "
            f"{self.macros} macros as the model's; whole network: "
            f"{self.whole.tensors} tensors as TVM's, {said}{zeros}"
        )


@contextmanager
def host_build(
    program: Program, texts: Mapping[str, bytes], objects: Mapping[str, bytes]
) -> Iterator[Compilation]:
    """Yield a running compilation of a project's sources and ``trial.c`` for this machine."""
    with tempfile.TemporaryDirectory(prefix="serenity.") as made:
        directory = Path(made)
        files = {n: t for n, t in {**texts, **objects}.items() if "/" not in n}
        named = [*sources(program), *objects]
        if program.users:
            files[STUB] = stub(program).encode()
            named.append(STUB)
        started = compilation(directory, files, named, ["-DSERENITY_TRACE"])
        try:
            yield started
        finally:
            started.stop()


def why_not(check: bool) -> str:
    """Return why nothing can be compared, "" if it can."""
    return SKIPPED if not check else "" if have(COMPILER) else NO_COMPILER
