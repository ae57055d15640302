"""USMP's algorithm ``serenity``: our planner for ahead-of-time code, registered on import.

``PassContext(config={"tir.usmp.enable": True, "tir.usmp.custom_algorithm": "serenity"})``. USMP
asks for tensors, for what operators allocate for themselves, and for constants: each with its size,
its alignment, the pools it may live in and the buffers it must not share a byte with.
"""

from collections.abc import Sequence
from typing import Any

import tvm
from tvm.tir.usmp.utils import PoolAllocation

from tvm_serenity.errors import InputError
from tvm_serenity.plan import Buffer, PlanOptions, Region, plan
from tvm_serenity.plan.intervals import intervals_of

NAME = "serenity"
TIME_LIMIT_S = 5.0


@tvm.register_func(f"tir.usmp.algo.{NAME}", override=True)
def allocate(infos: Sequence[Any], _pressure: int) -> dict[Any, Any]:
    """Return a pool and an offset for each of USMP's buffers.

    Pools with a size are not exceeded: :class:`InputError` where they do not suffice.
    """
    result: dict[Any, Any] = {}
    groups: dict[tuple[str, ...], list[Any]] = {}
    for info in infos:
        groups.setdefault(tuple(str(p.pool_name) for p in info.pool_candidates), []).append(info)
    for together in _components(list(groups)):
        members = [info for names in together for info in groups[names]]
        result.update(_placed(sorted(members, key=_key)))
    return result


def _placed(infos: Sequence[Any]) -> dict[Any, Any]:
    """The buffers of some pools that no others use."""
    number = {info: i for i, info in enumerate(infos)}
    conflicts = [[number[c] for c in info.conflicts if c in number] for info in infos]
    pools = {str(p.pool_name): p for info in infos for p in info.pool_candidates}
    buffers = [
        Buffer(
            f"{info.name_hint}_{i}",
            *span,
            int(info.size_bytes),
            int(info.alignment),
            regions=tuple(str(p.pool_name) for p in info.pool_candidates),
        )
        for i, (info, span) in enumerate(zip(infos, intervals_of(conflicts), strict=True))
    ]
    regions = tuple(Region(name, _capacity(pool)) for name, pool in pools.items())
    found = plan(buffers, "auto", PlanOptions(time_limit_s=TIME_LIMIT_S, regions=regions))
    if len(found.offsets) != len(infos):
        raise InputError(f"the pools {', '.join(pools)} are too small: {found}")
    return {
        info: PoolAllocation(pools[region], offset)
        for info, region, offset in zip(infos, found.regions, found.offsets, strict=True)
    }


def _capacity(pool: Any) -> int | None:
    size = int(pool.size_hint_bytes)
    return size if size >= 0 else None


def _components(groups: Sequence[tuple[str, ...]]) -> list[list[tuple[str, ...]]]:
    """Groups of candidate pools, those with a common pool together."""
    result: list[list[tuple[str, ...]]] = []
    for names in groups:
        near = [c for c in result if any(set(names) & set(other) for other in c)]
        result = [c for c in result if c not in near]
        result.append([names, *(other for c in near for other in c)])
    return result


def _key(info: Any) -> tuple[str, int, int]:
    """An order that does not depend on where the objects lie in memory."""
    return str(info.name_hint), int(info.size_bytes), len(info.conflicts)
