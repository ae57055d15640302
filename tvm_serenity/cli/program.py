"""What commands say of the memory that an ExecuTorch program has planned."""

from collections.abc import Mapping
from typing import Any

from tvm_serenity.frontends import format_of
from tvm_serenity.frontends.model_file import ModelFile
from tvm_serenity.frontends.pte_file import Allocated

NEXT = "order and offsets are made at export: tvm_serenity.executorch"


def allocated(model: ModelFile) -> Allocated | None:
    """Return what a program allocates, or None for another file."""
    form = format_of(model)
    return None if form is None or form.allocated is None else form.allocated(model)


def program_json(model: ModelFile) -> dict[str, Any]:
    """Return ``program``, of an ExecuTorch program alone."""
    found = allocated(model)
    if found is None:
        return {}
    tensors = [
        {"name": p.tensor, "memory": p.memory, "offset": p.offset, "bytes": p.size_bytes}
        for p in found.places
    ]
    return {
        "program": {
            "method": found.method,
            "methods": list(found.methods),
            "memories": [{"memory": m, "bytes": size} for m, size in found.memories.items()],
            "tensors": tensors,
        }
    }


def program_facts(model: ModelFile) -> Mapping[str, str]:
    """Return the line on what a program allocates; none for another file."""
    found = allocated(model)
    if found is None:
        return {}
    sizes = [f"{size:,} bytes in memory {number}" for number, size in found.memories.items()]
    others = f", one of {len(found.methods)} methods" if len(found.methods) > 1 else ""
    state = f", {model.graph.state_bytes:,} of them state" if model.graph.state_bytes else ""
    return {"as planned": f"{' + '.join(sizes) or 'no bytes'}{state}, for {found.method}{others}"}
