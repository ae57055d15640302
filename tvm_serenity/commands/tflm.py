"""``schedule --plan tflm``: write order and offsets for TensorFlow Lite Micro into a file."""

from pathlib import Path
from typing import Any, cast

from tvm_serenity.errors import CheckError
from tvm_serenity.frontends.formats import operation
from tvm_serenity.frontends.model_file import ModelFile
from tvm_serenity.frontends.tflite_file import OFFLINE_PLAN, TfliteFile, read
from tvm_serenity.frontends.tflite_metadata import read_metadata
from tvm_serenity.plan import PlanOptions
from tvm_serenity.system.files import write_bytes
from tvm_serenity.tflm.offline import (
    ALIGNMENT,
    ONLINE,
    OfflinePlan,
    check_offline,
    decode,
    encode,
    plan_offline,
)
from tvm_serenity.tflm.scratch import KERNELS, Margin, margin_of


def check_file(opened: ModelFile) -> None:
    """Raise :class:`InputError` if the format of ``opened`` cannot hold a plan."""
    operation(opened, "offline_plan", f"{opened.path}: --plan tflm is for {{files}} files")


def plan_file(
    opened: ModelFile, order: tuple[int, ...], output: str | None, time_limit: float | None
) -> dict[str, Any]:
    """Return the plan of ``opened`` in ``order`` as JSON, after writing the file ``output``.

    The new file is read back and verified by the naive checker before it replaces another file.
    """
    file = cast("TfliteFile", opened)  # check_file refuses others
    limit = PlanOptions().time_limit_s if time_limit is None else time_limit
    found = plan_offline(file.graph, order, PlanOptions(time_limit_s=limit))
    offsets = found.offsets[: file.tensors]
    data = file.planned(order, encode(offsets))
    _verify(file.path, data, found)
    if output is not None:
        write_bytes(output, data)
    return _json(file, order, found, margin_of(file.graph, order, found))


def _verify(path: Path, data: bytes, found: OfflinePlan) -> None:
    again = read(path, data, {})
    content = read_metadata(data, OFFLINE_PLAN)
    if content is None:
        raise CheckError(f"{path}: the plan cannot be read back")
    end = check_offline(again.graph, range(len(again.graph.ops)), decode(content))
    if end != found.arena_bytes:
        raise CheckError(f"{path}: the plan ends at {end} bytes, not at {found.arena_bytes}")


def _json(
    opened: TfliteFile, order: tuple[int, ...], found: OfflinePlan, margin: Margin
) -> dict[str, Any]:
    graph = opened.graph
    return {
        "for": "tflm",
        "alignment_bytes": ALIGNMENT,
        "tensors": opened.tensors,
        "planned": len(found.tensors),
        "arena_bytes": found.arena_bytes,
        "arena_lower_bound_bytes": found.plan.lower_bound_bytes,
        "arena_outcome": str(found.plan.outcome),
        "offsets": [
            {"tensor": t, "name": graph.tensors[t].name, "offset": offset}
            for t, offset in enumerate(found.offsets)
            if offset != ONLINE
        ],
        "scratch": {
            "kernels": KERNELS,
            "arena_bytes": margin.arena_bytes,
            "margin_bytes": margin.arena_bytes - found.arena_bytes,
            "unknown_kinds": sorted(
                {
                    graph.ops[op].kind
                    for op, size in zip(order, margin.scratch_bytes, strict=True)
                    if size is None
                }
            ),
            "steps": [
                {"op": op, "scratch_bytes": size, "free_bytes": free}
                for op, size, free in zip(
                    order, margin.scratch_bytes, margin.free_bytes, strict=True
                )
            ],
        },
    }
