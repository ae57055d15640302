"""What commands print of the memory that an ExecuTorch program has planned."""

from collections.abc import Mapping

from tvm_serenity.commands.program import allocated
from tvm_serenity.frontends.model_file import ModelFile

NEXT = "order and offsets are made at export: tvm_serenity.executorch"


def program_facts(model: ModelFile) -> Mapping[str, str]:
    """Return the line on what a program allocates; none for another file."""
    found = allocated(model)
    if found is None:
        return {}
    sizes = [f"{size:,} bytes in memory {number}" for number, size in found.memories.items()]
    others = f", one of {len(found.methods)} methods" if len(found.methods) > 1 else ""
    state = f", {model.graph.state_bytes:,} of them state" if model.graph.state_bytes else ""
    return {"as planned": f"{' + '.join(sizes) or 'no bytes'}{state}, for {found.method}{others}"}
