"""Replay of reproducers of wrong TIR: both kernels are compiled and run on the saved inputs."""

from collections.abc import Iterator
from typing import Any

from tvm_serenity import compat
from tvm_serenity.system.isolated import isolated
from tvm_serenity.tvm_targets import architecture, check_runs_here, instructions, target_of
from tvm_serenity.validation.compiling import both_forms, same
from tvm_serenity.validation.execute import POISONS, Signature, plainly, poisoned
from tvm_serenity.validation.inputs import Array
from tvm_serenity.validation.report import concluded, first_difference

KIND = "tir"
"""The value of ``kind`` in reproducers of this module."""
LIMIT_S = 600.0
"""Time limit of a case in seconds."""


def replay(case: dict[str, Any], arrays: list[Array]) -> str:
    """Compile both forms of a kernel and compare them; return one line if they are equal.

    Each form is compiled for its target during validation. Raises :class:`WrongResultError` if they
    differ, :class:`UnsupportedError` if this machine lacks instructions of that target.
    """
    machine = target_of(case["target"])
    if str(machine.kind.name) == "llvm":
        what = f"kernel {case['kernel']!r}"
        check_runs_here(what, architecture(machine), instructions(machine))
    reference, made = (compat.from_script(case[name]) for name in ("reference", "made"))
    own, ours = both_forms({"reference": reference}, {"made": made}, machine)
    functions = own("reference"), ours("made")
    tensors = tuple((tuple(shape), dtype) for shape, dtype in case["tensors"])
    written, workspace = tuple(case["written"]), case["workspace_bytes"]
    signature = Signature(tensors, written, workspace, dict(case["sizes"]))
    given = dict(zip((*case["drawn"], *case["constants"]), arrays, strict=True))

    def work() -> Iterator[Any]:
        expected = plainly(functions[0], signature, given, 0).outputs
        for poison in POISONS:
            found = poisoned(functions[1], signature, given, poison)
            yield found.damage or first_difference(expected, found.outputs, same(machine))

    return concluded(case, isolated(work, LIMIT_S))
