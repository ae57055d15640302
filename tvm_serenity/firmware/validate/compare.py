"""Run all comparisons of ``build`` before it writes: constants, kernels, macros, network."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tvm_serenity.firmware.check.drawn_inputs import recorded
from tvm_serenity.firmware.check.host_run import Rehearsed, Runs, rehearse, rehearse_more, runs_for
from tvm_serenity.firmware.check.macros import compare_macros, expected_macros
from tvm_serenity.firmware.check.reference_runtime import Recorded
from tvm_serenity.firmware.check.report import CheckReport, host_build
from tvm_serenity.firmware.check.requantize import compare_forms
from tvm_serenity.firmware.check.trial import Compilation
from tvm_serenity.firmware.compile.compiled import Compiled
from tvm_serenity.firmware.emit.forms import FORMS, forms_of, forms_source
from tvm_serenity.firmware.emit.macros import MACROS, macros_source
from tvm_serenity.firmware.emit.project import Files
from tvm_serenity.firmware.emit.trial import TRIAL, trial_source
from tvm_serenity.firmware.program import Array
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.firmware.ulp import ULP_LIMIT, ULP_LIMIT_LLVM
from tvm_serenity.firmware.validate.cases import Case, cases
from tvm_serenity.firmware.validate.channels import channels_in, edges_of
from tvm_serenity.firmware.validate.reference import more_references, reference
from tvm_serenity.firmware.validate.translation import host_object, steps_together, validate
from tvm_serenity.validation.kernels import Checked


@dataclass(frozen=True)
class Compared:
    """A program to compare, its project's ``texts``, and the model's ``file`` if known.

    ``loose``: why outputs may differ from the model's runtime by more than the tolerance, or "".
    """

    made: Compiled
    texts: Files
    settings: Settings
    file: str | None
    loose: str

    def done(self) -> tuple[CheckReport, dict[str, Array]]:
        """Return the report, and the expected value of every tensor.

        Raises :class:`WrongResultError` at the first difference.
        """
        program = self.made.program
        macros = expected_macros(program, *edges_of(self.made), self.file)
        trial = trial_source(program, self.settings.external_arena)
        written = {
            TRIAL: trial.encode(),
            FORMS: forms_source(program).encode(),
            MACROS: macros_source(program, list(macros)).encode(),
        }
        with host_build(program, {**self.texts, **written}, host_object(self.made)) as started:
            self.settings.notify("comparing kernels with TVM's")
            found = cases(self.made)
            counted = self._kernels(found, started)
            library, used = started.library, forms_of(program)
            sums = compare_forms(library, used, channels_in(found))
            told = compare_macros(library, program, macros)
            self.settings.notify("computing the reference")
            expected = reference(self.made, model=self.file)
            self.settings.notify("comparing the network")
            ran, more = self._network(started, expected, steps_together(found))
        report = CheckReport(
            counted.kernels,
            counted.sets,
            ran,
            self.loose,
            users=program.users,
            sums=sums,
            macros=told,
        )
        return report, {**expected, **recorded(more)}

    def _kernels(self, found: list[Case], started: Compilation) -> Checked:
        """Compare every kernel with TVM's."""
        limit = ULP_LIMIT_LLVM if self.made.program.objects else ULP_LIMIT
        where = Path(self.settings.output or "project").parent
        return validate(found, self.made.library, started, limit_ulp=limit, folder=where)

    def _network(
        self, started: Compilation, expected: Mapping[str, Array], steps: int
    ) -> tuple[Rehearsed, Runs]:
        """Compare the network, which has ``steps`` innermost loop steps, on several inputs."""
        program = self.made.program
        ran = rehearse(started.library, self.texts, expected)
        if program.moving is not None or program.users:
            return ran, []
        has_reference = ran.has_reference and not self.loose
        runs = more_references(self.made, self.file if has_reference else None, runs_for(steps))
        more = rehearse_more(started.library, self.texts, runs)
        answered = ran.reference_inputs + sum(isinstance(found, Recorded) for _, found in runs)
        return replace(ran, inputs=1 + len(more), reference_inputs=answered), more
