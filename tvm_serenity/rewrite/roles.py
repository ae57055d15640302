"""The kind of an operator for the rewrite rules, from its record."""

from tvm_serenity.operators import MemoryUse, Operator
from tvm_serenity.rewrite.net import Kind

_OF_MEMORY = {
    MemoryUse.CONCAT: Kind.CONCAT,
    MemoryUse.PART: Kind.SLICE,
    MemoryUse.COPY: Kind.COPY,
    MemoryUse.TURNED: Kind.COPY,
}


def role(known: Operator) -> Kind | None:
    """Return the kind of an operator unless its tensors forbid it; None if no rule handles it.

    A transpose is a copy only if no two axes of more than one element change places.
    """
    if known.layer.weights is not None:
        return Kind.CONV
    if known.layer.channel is not None:
        return Kind.POOL
    if known.maps:
        return Kind.ADD if known.elements.adds else Kind.MAP
    return _OF_MEMORY.get(known.storage.use)
