"""``serenity schedule --plan tflm``: order and offsets into a file for TensorFlow Lite Micro."""

from pathlib import Path
from typing import Any, cast

from tvm_serenity.cli.reduce import Meaning
from tvm_serenity.errors import CheckError, InputError
from tvm_serenity.files import write_bytes
from tvm_serenity.frontends.formats import operation
from tvm_serenity.frontends.model_file import ModelFile
from tvm_serenity.frontends.tflite_file import OFFLINE_PLAN, TfliteFile, read
from tvm_serenity.frontends.tflite_metadata import read_metadata
from tvm_serenity.plan import PlanOptions
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

PLANS = ("tflm",)


def check_request(plan_for: str, opened: ModelFile, choices: Meaning) -> None:
    """Raises :class:`InputError` where a file or its meaning cannot carry the plan asked for."""
    if plan_for not in PLANS:
        raise InputError(f"--plan {plan_for!r}: there is {', '.join(PLANS)}")
    operation(opened, "offline_plan", f"{opened.path}: --plan {plan_for} is for {{files}} files")
    if choices != Meaning():
        raise InputError(
            "TFLM runs every operator of the file: leave out --alias-copies, --fold-concat, "
            "--in-place and --slice with --plan tflm"
        )


def plan_file(
    opened: ModelFile, order: tuple[int, ...], output: str | None, time_limit: float | None
) -> dict[str, Any]:
    """Plan ``opened`` in ``order``, write it where an output is named, return what JSON says.

    What is written is read back by the checked reader and verified by the naive checker before
    it replaces anything.
    """
    file = cast("TfliteFile", opened)  # check_request refuses others
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


def plan_text(planned: dict[str, Any]) -> dict[str, str]:
    """Return the lines that the command prints of a plan."""
    scratch = planned["scratch"]
    unknown = scratch["unknown_kinds"]
    not_known = f"; not known for {', '.join(unknown)}" if unknown else ""
    return {
        "TFLM plan": f"{planned['planned']} tensors end at {planned['arena_bytes']:,} bytes "
        f"({planned['arena_outcome']}), aligned to {planned['alignment_bytes']}",
        "with scratch": f"{scratch['arena_bytes']:,} bytes with {scratch['kernels']} "
        f"(+{scratch['margin_bytes']:,}; estimate{not_known})",
    }
