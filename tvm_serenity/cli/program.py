"""The text that commands print about the memory plan of an ExecuTorch program."""

from collections.abc import Mapping

from tvm_serenity.commands.program import allocated
from tvm_serenity.frontends.model_file import ModelFile

NEXT = "an export computes order and offsets: tvm_serenity.executorch"


def program_facts(model: ModelFile) -> Mapping[str, str]:
    """Return the row "as planned" of an ExecuTorch program; no row for another file."""
    plan = allocated(model)
    if plan is None:
        return {}
    sizes = [f"{size:,} bytes in memory {number}" for number, size in plan.memories.items()]
    others = f", one of {len(plan.methods)} methods" if len(plan.methods) > 1 else ""
    state = f", {model.graph.state_bytes:,} of them state" if model.graph.state_bytes else ""
    return {"as planned": f"{' + '.join(sizes) or 'no bytes'}{state}, for {plan.method}{others}"}
