"""The memory plan of an ExecuTorch program."""

from typing import Any

from tvm_serenity.frontends import format_of
from tvm_serenity.frontends.model_file import ModelFile
from tvm_serenity.frontends.pte_file import Allocated


def allocated(model: ModelFile) -> Allocated | None:
    """Return the memory plan of an ExecuTorch program; None for another file."""
    form = format_of(model)
    return None if form is None or form.allocated is None else form.allocated(model)


def program_json(model: ModelFile) -> dict[str, Any]:
    """Return the JSON key ``program`` of an ExecuTorch program; {} for another file."""
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
