"""Faster kernels whose workspace needs a larger arena: as far as it fits, exact, and cheaper."""

from dataclasses import replace
from typing import Any

import pytest

from tests.cases import sampled
from tests.firmware.projects import needs_host
from tvm_serenity import firmware
from tvm_serenity.boards import board
from tvm_serenity.errors import CheckError
from tvm_serenity.firmware import Settings
from tvm_serenity.firmware.check.calls import check
from tvm_serenity.firmware.compile import driver as making
from tvm_serenity.firmware.compile import fallback
from tvm_serenity.firmware.select.choices import FULL

BOARD = "mps2-an386"
WAYS = [{"rows": "off"}, {"rows": 1}, {"rows": 2, "stream_input": True}]


def module(size: int = 14) -> Any:
    """Two blocks with sums: what lives beside their convolutions fills the arena."""
    from tvm_serenity.zoo.net import module as written
    from tvm_serenity.zoo.quantised import QuantisedNet
    from tvm_serenity.zoo.window import same

    def write(net: Any) -> Any:
        x = net.relu6(net.conv(net.input("x", 3, size), 16, same(3)))
        for _ in range(2):
            y = net.relu6(net.conv(x, 16, same(3)))
            x = net.add(x, net.conv(y, 16, same(3)))
        return net.stored(net.conv(x, 8))

    return written(write, "NHWC", 1, QuantisedNet)


def made(**options: Any) -> Any:
    settings = Settings(**{"time_limit_s": 2, **options})
    return fallback.make(module(), "net", board(BOARD), settings)


def arena(found: Any) -> int:
    return sum(found.placed.arena_bytes.values())


def cost(found: Any) -> int:
    """What the kernels of the library cost that are taken, in cycles."""
    chosen = [one for choice in found.choices for one in choice.candidates if not one.reason]
    assert len(chosen) > 5
    return sum(one.cost or 0 for one in chosen)


def reasons(found: Any) -> set[str]:
    """Why candidates of the library are not taken."""
    return {one.reason for choice in found.choices for one in choice.candidates}


@pytest.mark.parametrize("how", WAYS)
def test_more_memory_is_less_time(how: dict[str, Any]) -> None:
    plain, fast = made(**how), made(**how, workspace="grow")
    assert arena(plain) < arena(fast)
    assert cost(fast) < cost(plain)
    check(fast.program)
    same = made(**how, workspace="grow", arena_limit_bytes=arena(plain))
    assert arena(same) == arena(plain)
    assert cost(same) == cost(plain)
    if how == {"rows": "off"}:
        assert FULL in reasons(same)
        assert FULL not in reasons(fast)
    between = (arena(plain) + arena(fast)) // 2
    assert arena(made(**how, workspace="grow", arena_limit_bytes=between)) <= between


def test_what_fits_is_never_lost_for_it() -> None:
    least = arena(made(rows="off"))
    small = board(BOARD)
    room = least + 1_024 + 128
    regions = tuple(replace(r, size_bytes=room) if r.name == "sram" else r for r in small.regions)
    small = replace(small, regions=regions)
    found = fallback.make(
        module(), "net", small, Settings(workspace="grow", rows="off", time_limit_s=2)
    )
    assert found.placed.fits
    assert arena(found) == least


def test_workspace_above_its_room_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant that gives workspace the room of a band: the checker of calls says so."""
    from tvm_serenity.firmware.select import workspace

    monkeypatch.setattr(workspace._FreeSpace, "_free", lambda _self, _live, _region, _size: 0)
    found = made(rows=1, workspace="grow")
    with pytest.raises(CheckError):
        making.checked(found)


@needs_host
@pytest.mark.parametrize("how", sampled(WAYS, 2))
def test_every_byte_is_the_same(how: dict[str, Any]) -> None:
    settings = Settings(name="net", workspace="grow", time_limit_s=2, **how)
    project = firmware.build(module(), BOARD, settings)
    assert project.facts["check"]["tensors"] > 5
