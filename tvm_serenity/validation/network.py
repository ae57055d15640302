"""The whole network against the model's own runtime, which computes in a process of its own."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_serenity.errors import MissingPartError
from tvm_serenity.validation.disagreement import disagreement
from tvm_serenity.validation.inputs import Array
from tvm_serenity.validation.reference_spec import ReferenceSpec
from tvm_serenity.validation.references import ReferenceRuntime, ReferenceRuntimeError, consulted
from tvm_serenity.validation.report import Difference, first_difference
from tvm_serenity.validation.rules import has_runtime, rule_for

if TYPE_CHECKING:
    import torch

NAMES = {"litert": "LiteRT", "tflm": "TFLM", "onnxruntime": "onnxruntime", "torch": "PyTorch"}
NAMES["qlinear"] = "onnxruntime (integer operators)"


@dataclass(frozen=True)
class Verdict:
    """The comparison with a reference runtime.

    ``outcome`` is identical, accepted, wrong, or absent (with a reason). ``second`` is what a
    second reference says where the results differ from the first one.
    """

    reference_runtime: str
    outcome: str
    runs: int = 0
    max_abs_error: float = 0.0
    tolerance: str = ""
    reason: str = ""
    difference: Difference | None = None
    operator: str = ""
    second: str = ""

    def text(self) -> str:
        """Return the verdict in words."""
        if self.outcome == "absent":
            return f"{self.reason}; nothing to compare with"
        if self.outcome == "identical":
            return f"bit-identical to {self.reference_runtime}"
        if self.outcome == "accepted":
            why = self.second or f"accepted: {self.tolerance}"
            return f"at most {self.max_abs_error:.3g} from {self.reference_runtime} ({why})"
        assert self.difference is not None
        parts = [self.difference.text(), self.operator, self.second]
        return (
            f"wrong against {self.reference_runtime}: {'; '.join(part for part in parts if part)}"
        )

    def json(self) -> dict[str, Any]:
        """Return the verdict as a JSON object."""
        result = asdict(self)
        del result["difference"]
        return result


def reference_for(model: str) -> ReferenceSpec | None:
    """Return the reference runtime of a model file; None if its format has none."""
    path = Path(model)
    if not has_runtime(path):
        return None
    rule = rule_for(path)
    return ReferenceSpec(rule.runtime, path, rule.tolerance)


def reference_program(exported: "torch.export.ExportedProgram") -> ReferenceSpec:
    """Return PyTorch as the reference runtime of a ``torch.export.ExportedProgram``."""
    import io

    import torch

    data = io.BytesIO()
    torch.export.save(exported, data)
    return ReferenceSpec("torch", data.getvalue())


def compared_with_reference(
    spec: ReferenceSpec, runs: Sequence[tuple[Sequence[Array], Sequence[Array]]]
) -> Verdict:
    """Return how the results of ``runs`` (inputs, results) compare with the reference runtime's.

    Each run starts from the states that the previous run left. Inputs and results beyond those of
    the reference runtime are states. The outcome is absent if the runtime is not installed,
    refuses the model, dies or exceeds its time limit; the reason says which.
    """

    def ask(reference: ReferenceRuntime) -> list[tuple[list[Array], list[Array]]]:
        answers = []
        for number, (inputs, _) in enumerate(runs):
            own = _fitted(reference, inputs)
            answer = (reference.step if number else reference.run)(own)
            answers.append((own, list(answer.outputs)))
        return answers

    with ReferenceRuntime(spec.limit_s) as process:
        try:
            runtime, answers = consulted(spec.runtime, spec.model, ask, process=process)
        except (ReferenceRuntimeError, MissingPartError) as error:
            return Verdict(NAMES[spec.runtime], "absent", reason=str(error))
        pairs = [_paired(o, results) for (_, o), (_, results) in zip(answers, runs, strict=True)]
        shaped = [(own, want) for (own, _), (want, _) in zip(answers, pairs, strict=True)]
        judged = replace(spec, runtime=runtime)
        result = disagreement(judged, shaped, [have for _, have in pairs], process)
    worst = max((_largest(want, have) for want, have in pairs), default=0.0)
    same = all(first_difference(want, have) is None for want, have in pairs)
    return Verdict(
        NAMES[runtime],
        "wrong" if result.difference else "identical" if same else "accepted",
        result.number + 1 if result.difference else len(runs),
        worst,
        result.tolerance.text(),
        difference=result.difference,
        operator=result.operator,
        second=result.second,
    )


def _paired(outputs: Sequence[Array], results: Sequence[Array]) -> tuple[list[Array], list[Array]]:
    """Return the outputs of the reference runtime in our shapes, and our results for them."""
    want = [_as(a, r) for a, r in zip(outputs, results, strict=False)]
    return want, list(results[: len(outputs)])


def _fitted(reference: ReferenceRuntime, inputs: Sequence[Array]) -> list[Array]:
    """Return the reference runtime's inputs: the module's first inputs in its shapes and types."""
    if len(reference.entries) > len(inputs):
        raise ReferenceRuntimeError(
            f"{NAMES[reference.runtime]} has {len(reference.entries)} inputs for the model, "
            f"the module has {len(inputs)}"
        )
    pairs = zip(inputs, reference.entries, strict=False)
    return [a if -1 in e.shape else a.reshape(e.shape).astype(e.dtype) for a, e in pairs]


def _as(answer: Array, like: Array) -> Array:
    """Return ``answer`` in the shape of our result if it has as many elements."""
    return answer.reshape(like.shape) if answer.size == like.size else answer


def _largest(want: Sequence[Array], have: Sequence[Array]) -> float:
    result = [
        d.largest
        for a, b in zip(want, have, strict=False)
        if (d := first_difference([a], [b])) is not None
    ]
    return max(result, default=0.0)
