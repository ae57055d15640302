"""Every option of ``serenity build`` with every other: built and verified, or refused by name."""

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cases import scaled, some
from tests.cli.run import process_state
from tests.firmware.projects import needs_host
from tvm_serenity import cli, firmware
from tvm_serenity.errors import InputError
from tvm_serenity.firmware.board import image
from tvm_serenity.firmware.building import _Work
from tvm_serenity.firmware.compile import fallback
from tvm_serenity.firmware.result import Project

Options = dict[str, Any]

ALL: dict[str, Options] = {
    "--codegen llvm": {"codegen": "llvm"},
    "--quantized off": {"quantized": "off"},
    "--channels keep": {"channels": "keep"},
    "--rewrite": {"rewrite": "all"},
    "--in-place": {"in_place": True},
    "--overlap": {"overlap": True},
    "--workspace grow": {"workspace": "grow"},
    "--constants ram": {"constants": "ram"},
    "--weights small": {"weights": "small"},
    "--weights coded": {"weights": "coded"},
    "--constants-limit": {"weights": "small", "constants_limit_bytes": 600},
    "--order given": {"order": "given"},
    "--arena-limit": {"arena_limit_bytes": 5_000},
    "--external-arena": {"external_arena": True},
    "--rows auto": {"rows": "auto"},
    "--ram": {"ram_bytes": 8_000},
    "--stream-input": {"stream_input": True},
    "--recompute": {"recompute": 1.5},
    "--format mlf": {"format": "mlf"},
    "--format zephyr": {"format": "zephyr"},
    "--format arduino": {"format": "arduino"},
    "--format blob": {"format": "blob"},
    "--no-check": {"check": False},
}
BASES: dict[str, Options] = {
    "whole": {"name": "alone", "force": True},
    "by rows": {"rows": 2, "stack_bytes": 2_048, "time_limit_s": 0.2},
}
"""Each with options that go with all others in the same way; so they are with every pair."""

TWICE = ("--format", "--weights")
"""Options with several values, of which a build has one."""
BANDS = (
    *("--codegen llvm", "--rewrite", "--in-place", "--order given", "--constants ram"),
    "--weights coded",
    "--constants-limit",
)
"""Options that networks in rows do not take."""
APART = {
    ("--codegen llvm", "--in-place"),
    ("--codegen llvm", "--overlap"),
    ("--codegen llvm", "--workspace grow"),
    ("--codegen llvm", "--weights small"),
    ("--codegen llvm", "--weights coded"),
    ("--codegen llvm", "--constants-limit"),
    ("--codegen llvm", "--format arduino"),
    ("--codegen llvm", "--format blob"),
    ("--constants ram", "--format blob"),
    ("--external-arena", "--format blob"),
    ("--stream-input", "--format blob"),
    ("--external-arena", "--format mlf"),
    ("--external-arena", "--format arduino"),
}
"""Options that do not go together."""
COMPARED = [("--quantized off", n) for n in ("--rewrite", "--in-place", "--order given")]
"""Pairs whose arenas are compared with each other."""


def module() -> Any:
    """A quantised network on which each option has an effect."""
    from tvm_serenity.zoo.net import module as written
    from tvm_serenity.zoo.quantised import QuantisedNet
    from tvm_serenity.zoo.window import same

    def write(net: Any) -> Any:
        x = net.input("x", 2, 5)
        b = net.conv(x, 8)
        a = net.add(net.relu6(net.conv(x, 8, same(3))), net.conv(x, 8))
        return net.stored(net.conv(net.concat([net.conv(a, 4), net.conv(b, 4)]), 4))

    return written(write, "NHWC", 1, QuantisedNet)


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Project]:
    """Builds of ``module()`` for the host; what several builds share is compiled and run once."""
    compiled: dict[Any, Any] = {}
    compared: dict[Any, Any] = {}
    make, checked = fallback.make, _Work.checked
    network = module()

    def make_once(given: Any, name: str, board: Any, s: Any) -> Any:
        searched = (
            s.order,
            s.in_place,
            s.overlap,
            s.workspace,
            s.constants,
            s.weights,
            s.constants_limit_bytes,
            s.rewrite,
            s.quantized,
            s.codegen,
            s.channels,
        )
        bands = (s.rows, s.limit_bytes, s.stream_input, s.recompute)
        key = (*searched, *bands, name)
        if key not in compiled:
            compiled[key] = make(given, name, board, s)
        return compiled[key]

    def check_once(work: Any, texts: Any) -> Any:
        name = work.made.program.name
        key = (work.settings.check, *((n, texts[n]) for n in sorted(texts) if n.startswith(name)))
        if key not in compared:
            compared[key] = checked(work, texts)
        return compared[key]

    monkeypatch.setattr(fallback, "make", make_once)
    monkeypatch.setattr(_Work, "checked", check_once)
    monkeypatch.setattr(image, "linkable", lambda _family: False)
    return lambda **options: firmware.build(network, "mps2-an386", firmware.Settings(**options))


def refused(base: str, names: tuple[str, ...]) -> bool:
    """Whether options do not go together, nor with rows."""
    asked = ("--rows auto", "--stream-input", "--recompute")
    rows = base == "by rows" or any(name in names for name in asked)
    return (rows and any(n in BANDS for n in names)) or names in APART


def took_effect(found: Project, options: Options) -> None:
    """Every option is seen in what was built."""
    name = found.metadata["name"]
    tensors, stack = found.metadata["tensors"], options.get("stack_bytes", 1_024)
    again = options.get("recompute")
    by_rows = options.get("rows", "off") == 2 or options.get("stream_input", False) or again
    assert (found.facts["rows"] is not None) == bool(by_rows)
    if by_rows:
        assert (found.facts["rows"]["recompute"] is not None) == (again is not None)
    assert bool(found.metadata["objects"]) == (options.get("codegen") == "llvm")
    floats = any(t["dtype"] == "float32" for t in tensors)
    assert floats <= (options.get("quantized") == "off")
    all_computed = options.get("channels") == "keep" or options.get("quantized") == "off"
    assert (found.facts["channels"]["of"] == 0) == all_computed
    assert found.metadata["stack_bytes"] == stack
    arena = sum(found.facts["arena_bytes"].values())
    assert arena <= options.get("arena_limit_bytes", arena)
    assert arena + stack <= options.get("ram_bytes", arena + stack)
    form = options.get("format", "project")
    own = {"mlf": f"{name}.tar", "zephyr": "Kconfig", "arduino": "library.properties"}
    own["blob"] = f"{name}.blob"
    assert own.get(form, "metadata.json") in found.files
    if form in ("mlf", "blob"):
        return
    header = found.files[f"{'' if form == 'project' else 'src/'}{name}_model.h"].decode()
    assert (f"{name}_arenas *arenas" in header) == options.get("external_arena", False)
    assert (f"{name}_feed_row(" in header) == options.get("stream_input", False)
    assert f"{name.upper()}_INPUT_X_SCALE" in header
    assert "_ZERO_POINT (" in header.partition("_OUTPUT_")[2]


@needs_host
@pytest.mark.parametrize("base", BASES)
def test_every_pair_is_verified_or_refused_by_name(
    base: str, build: Callable[..., Project]
) -> None:
    outcomes = {"verified": 0, "refused": 0}
    arena = {}
    pairs = dict.fromkeys([*COMPARED, *some(itertools.combinations(ALL, 2), 10)])
    for names in [*((name,) for name in ALL), *pairs]:
        if any(sum(name.startswith(flag) for name in names) == 2 for flag in TWICE):
            continue
        options = {**BASES[base]}
        for name in names:
            options |= ALL[name]
        if base == "by rows":
            options["rows"] = 2
        if refused(base, names):
            with pytest.raises(InputError, match="does not take") as caught:
                firmware.Settings(**options)  # before anything is read
            assert any(name in str(caught.value) for name in names), names
            outcomes["refused"] += 1
            continue
        found = build(**options)
        took_effect(found, options)
        check = found.facts["check"]
        if options.get("check", True):
            assert check["kernels"] > 0, names
            assert check["tensors"] >= 6, names
        else:
            assert check["skipped"], names
        arena[names] = sum(found.facts["arena_bytes"].values())
        outcomes["verified"] += 1
    expected = {
        "whole": scaled({"verified": 35, "refused": 1}, {"verified": 235, "refused": 34}),
        "by rows": scaled({"verified": 21, "refused": 15}, {"verified": 126, "refused": 143}),
    }
    assert outcomes == expected[base]
    if base == "whole":
        best = arena["--quantized off",]
        assert arena["--quantized off", "--rewrite"] < best
        assert arena["--quantized off", "--in-place"] < best
        assert arena["--quantized off", "--order given"] > best


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rows": 0}, "--rows 0: write a number of rows"),
        ({"rows": "x"}, "--rows 'x': write a number of rows"),
        ({"codegen": "x"}, "--codegen 'x': there are c, llvm"),
        ({"stack_bytes": -1}, "--stack -1"),
        ({"arena_limit_bytes": -1}, "--arena-limit -1"),
        ({"rows": 1, "ram_bytes": 100}, "leave nothing for tensors"),
        ({"rows": "off", "stream_input": True}, "--rows off does not take --stream-input"),
    ],
)
def test_values_that_make_no_sense(options: Options, said: str) -> None:
    with pytest.raises(InputError, match=said.replace("(", r"\(")):
        firmware.Settings(**options)


def test_the_command_passes_every_option_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One run with every option that has a field; a field left at its default is a lost option."""
    from tvm_serenity.commands.models import ModelSource
    from tvm_serenity.firmware import building

    class Passed(Exception):
        pass

    def stop(_module: Any, _board: Any, settings: firmware.Settings) -> None:
        raise Passed(settings)

    monkeypatch.setattr(building, "build", stop)
    monkeypatch.setattr(ModelSource, "check_operators", lambda *_: None)
    monkeypatch.setattr(ModelSource, "to_build", lambda opened: opened.spec)
    labels = tmp_path / "labels.txt"
    labels.write_text("yes\nno\n")
    line = (
        f"build net --minimise off --board mps2-an386 -o {tmp_path / 'made'} --name other "
        "--arena-limit 1 --stack 2 --force --no-check --time-limit 3 --dim batch=1 --signature one"
    )
    found = {}
    for more in (
        "--rows 4 --ram 9K --stream-input --external-arena --quantized off --format zephyr "
        "--channels keep --recompute 1.2 "
        "--opaque mixer=1",
        "--codegen llvm --order given --rewrite --constants ram",
        "--in-place --overlap --workspace grow --weights small --constants-limit 9K "
        "--dynamic-range float",
        "--sliding 2 --windows 9",
        f"--fast-memory 4K --labels {labels}",
        f"--format blob --kernels {tmp_path} --extend",
    ):
        monkeypatch.setattr(sys, "argv", ["serenity", *line.split(), *more.split()])
        with pytest.raises(Passed) as caught, process_state():
            cli.main()
        settings = caught.value.args[0]
        for field in settings.__dataclass_fields__:
            value = getattr(settings, field)
            if value != getattr(firmware.Settings(), field):
                found[field] = value
    assert set(settings.__dataclass_fields__) - set(found) == {"model", "tuned"}
    assert found["ram_bytes"] == 9 * 1024
