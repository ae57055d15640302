"""Sizes in text: one grammar, which every option of the command line takes."""

import inspect
from typing import Any

import pytest
import typer

from tests.cli.run import serenity
from tvm_serenity.cli import app
from tvm_serenity.errors import InputError
from tvm_serenity.system.sizes import MAX_BYTES, size_bytes

SIZES = {
    "build": {
        "arena_limit_bytes",
        "constants_limit_bytes",
        "flash_bytes",
        "stack_bytes",
        "ram_bytes",
        "fast_memory_bytes",
    },
    "explain": {"flash_bytes", "ram_bytes"},
    "fit": {"flash_bytes", "ram_bytes", "stack_bytes"},
    "offchip": {"capacity_bytes", "align"},
    "plan": {"capacity_bytes", "align"},
    "report": {"flash_bytes", "ram_bytes"},
    "rewrite": {"align"},
    "rows": {"ram_bytes", "table_bytes"},
    "schedule": {"memory_limit_bytes", "align"},
}
"""Options in bytes by command. ``offchip --block`` and ``--capacities`` take more than sizes."""


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("65536", 65536),
        ("64K", 65536),
        ("64k", 65536),
        ("64KB", 65536),
        ("64KiB", 65536),
        ("64 kib", 65536),
        (" 7B ", 7),
        ("1.5M", 1_572_864),
        ("1.50MiB", 1_572_864),
        ("0.5K", 512),
        ("2G", 2**31),
        ("12.0", 12),
        (str(MAX_BYTES), MAX_BYTES),
    ],
)
def test_a_size_is_bytes(text: str, size: int) -> None:
    assert size_bytes(text) == size


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "write bytes, or a number with K, M or G"),
        ("K", "write bytes"),
        ("-1", "write bytes"),
        ("64Q", "write bytes"),
        ("64iB", "write bytes"),
        ("6 4K", "write bytes"),
        ("1e3", "write bytes"),
        ("0x40", "write bytes"),
        ("nan", "write bytes"),
        (".5K", "write bytes"),
        ("\u0664K", "write bytes"),  # a digit, but none of ours
        ("1.3K", "not a whole number of bytes"),
        ("1.5", "not a whole number of bytes"),
        ("99999999999G", "from 0 to"),
    ],
)
def test_what_is_no_size_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        size_bytes(text)


def test_a_size_may_have_a_least() -> None:
    assert size_bytes("1", 1) == 1
    with pytest.raises(InputError, match="size '0': out of range; write from 1 to"):
        size_bytes("0", 1)


def options() -> list[tuple[str, str, Any]]:
    """Return every option: its command, parameter and what typer is told of it."""
    from tvm_serenity.cli.commands import register

    register()

    found = []
    for command in app.registered_commands:
        assert command.callback is not None
        for name, parameter in inspect.signature(command.callback).parameters.items():
            for info in getattr(parameter.annotation, "__metadata__", ()):
                found.append((str(command.name), name, info))
    return found


def test_every_option_in_bytes_takes_the_same_grammar() -> None:
    found: dict[str, set[str]] = {}
    for command, name, info in options():
        if info.metavar != "SIZE" or name == "block":
            continue
        found.setdefault(command, set()).add(name)
        for text in ("65536", "64K", "64KiB"):
            assert info.parser(text) == 65536
        assert info.parser("1.5M") == 1_572_864
        with pytest.raises(typer.BadParameter, match="size '64Q'"):
            info.parser("64Q")
    assert found == SIZES


def test_no_option_says_bytes_in_another_way() -> None:
    assert len(options()) > 100
    assert not [(c, n) for c, n, info in options() if "BYTES" in (info.metavar or "")]


@pytest.mark.parametrize(
    "asked",
    [
        ("build", "none.tflite", "--board", "microbit", "-o", "made", "--stack", "4Q"),
        ("build", "none.tflite", "--board", "microbit", "-o", "made", "--arena-limit", "4Q"),
        ("plan", "none.csv", "--capacity", "4Q"),
        ("offchip", "none.txt", "--block", "4Q"),
        ("offchip", "none.txt", "--capacities", "4Q"),
    ],
)
def test_errors_name_the_option(asked: tuple[str, ...]) -> None:
    ended = serenity(*asked)
    assert ended.returncode == 2
    assert asked[-2] in ended.stderr
    assert "size '4Q': write bytes" in ended.stderr
