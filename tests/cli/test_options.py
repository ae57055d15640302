"""The command line is derived: options from dataclasses, commands from functions of their names."""

import ast
import inspect
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import MISSING
from typing import Any, get_type_hints

import pytest

from tests.cli.run import serenity
from tvm_serenity.cli.commands import FILES, register
from tvm_serenity.cli.derive import REGISTERED, Registered, groups_of
from tvm_serenity.errors import InputError
from tvm_serenity.options.option import (
    Conflict,
    HelpGroup,
    Option,
    OptionGroup,
    conflicts_of,
    defaults_of,
    options_of,
)
from tvm_serenity.options.output import Shown

register()

COMMANDS = {f"{one.prefix} {one.name}".strip(): one for one in REGISTERED}
ARGUMENTS = (
    "board_name",
    "name",
    "directory",
    "path",
    "model",
    "models",
    "board",
    "file",
    "certificate",
)
"""Arguments of commands, which their functions take in the same order."""
TOLD = ("tell", "told", "say")
"""Parameters of functions that are told how far they have come."""


def function_of(one: Registered) -> Any:
    """The function of the command's name that it calls; fails where it calls none or several."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(one.handler)))
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = [f for f in called if isinstance(f, ast.Name) and f.id == one.name]
    attributes = [f for f in called if isinstance(f, ast.Attribute) and f.attr == one.name]
    assert len(names) + len(attributes) == 1, one.name
    if names:
        return one.handler.__globals__[one.name]
    from tvm_serenity import firmware

    assert ast.unparse(attributes[0]) == f"firmware.{one.name}"
    return getattr(firmware, one.name)


def options_class(one: Registered) -> list[type[OptionGroup]]:
    """The groups that a function takes: those that are not about what is printed."""
    return [group for group in groups_of(one.handler).values() if not issubclass(group, Shown)]


def test_every_command_is_derived() -> None:
    plain = {name.partition(" ")[0] for name in COMMANDS}
    assert plain == set(FILES)
    assert len(COMMANDS) == len(FILES) + 4  # five commands under one name


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_calls_the_function_of_its_name_with_its_options(name: str) -> None:
    one = COMMANDS[name]
    function = function_of(one)
    taken = inspect.signature(function).parameters
    theirs = {part for one in taken.values() for part in _parts(one.annotation)}
    for group in options_class(one):
        assert group in theirs, f"{function.__name__} does not take {group.__name__}"
    arguments = [p for p in inspect.signature(one.handler).parameters if p in ARGUMENTS]
    others = [p for p in taken if p not in (*TOLD, "options", "settings")]
    assert len(arguments) == len(others), (arguments, others)
    if function.__module__ != "tvm_serenity.firmware.building":
        assert function.__module__.startswith("tvm_serenity.commands.")


def _parts(hint: Any) -> Iterator[Any]:
    yield hint
    for part in getattr(hint, "__args__", ()):
        yield from _parts(part)


def test_a_function_prints_nothing() -> None:
    for one in COMMANDS.values():
        home = inspect.getmodule(function_of(one))
        assert home is not None
        source = inspect.getsource(home)
        imported = [
            alias.name if isinstance(node, ast.Import) else node.module
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        ]
        for word in imported:
            assert not str(word).startswith(("typer", "rich", "tvm_serenity.cli")), one.name


def every_option() -> Iterator[tuple[str, str, Option]]:
    for name, one in COMMANDS.items():
        for group in groups_of(one.handler).values():
            for field, described in options_of(group).items():
                yield name, field, described


def test_an_option_describes_itself() -> None:
    for command, field, one in every_option():
        where = f"{command}: {field}"
        assert one.flag.startswith("--"), where
        assert one.help, where
        assert one.help[-1] in ".]?)", f"{where}: {one.help}"
        assert isinstance(one.group, HelpGroup), where


def test_one_thing_has_one_name() -> None:
    """A flag is the same field in every command, and a field the same flag."""
    fields, flags = defaultdict(set), defaultdict(set)
    for command, field, one in every_option():
        if not command.startswith("sparse "):  # these are about other networks
            fields[one.flag].add(field)
            flags[field].add(one.flag)
    assert {flag: names for flag, names in fields.items() if len(names) > 1} == {}
    assert {field: names for field, names in flags.items() if len(names) > 1} == {}
    assert "--bands" not in fields
    assert "--no-check" not in fields


CONFLICTS = [
    pytest.param(group, name, conflict, id=f"{command}: {one.name} {conflict.other}")
    for command, registered in COMMANDS.items()
    for group in groups_of(registered.handler).values()
    for name, one in options_of(group).items()
    for conflict in conflicts_of(group, name)
]


def given(group: type, name: str, meant: tuple[Any, ...], free: tuple[Any, ...]) -> Any:
    """A value of an option that is among those that are meant."""
    one, default = options_of(group)[name], defaults_of(group)[name]
    if meant:
        return meant[0]
    if one.switch:
        return one.switch
    if isinstance(default, bool):
        return not default
    for word in one.choices:
        if word not in (default, *free):
            return word
    if isinstance(default, dict):
        return {"x": 1}
    hint = str(get_type_hints(group)[name])
    if "tuple" in hint:
        return (0, 1)
    if "int" in hint or "float" in hint:
        return max(one.least or 0, 2)
    special = {"plot": "figure.svg", "capacities": "1K", "block": "8"}
    return special.get(name, "text")


@pytest.mark.parametrize(("group", "name", "conflict"), CONFLICTS)
def test_what_does_not_go_together_is_refused_by_both_names(
    group: type[OptionGroup], name: str, conflict: Conflict
) -> None:
    """Both names, why, and what to do."""
    described, defaults = options_of(group), defaults_of(group)
    required = {field: "x" for field, value in defaults.items() if value is MISSING}
    values = {
        name: given(group, name, conflict.mine, ()),
        conflict.other: given(group, conflict.other, conflict.values, conflict.unless),
    }
    for field in list(values):
        for need in described[field].needs:
            values.setdefault(need.other, given(group, need.other, (), ()))
    with pytest.raises(InputError) as refused:
        group(**required, **values)
    said = str(refused.value)
    if len(values) > 2:  # what one of them needs may be in the way before
        assert "leave out" in said
        return
    assert described[name].name in said
    assert described[conflict.other].name in said
    assert conflict.why in said
    assert "leave out" in said


def test_every_conflict_names_a_field_of_some_command() -> None:
    known = {field for _, field, _ in every_option()}
    for command, field, one in every_option():
        rules = [(c.other, c.why) for c in one.conflicts] + [(n.other, n.why) for n in one.needs]
        for other, why in rules:
            assert other in known, f"{command}: {field} names {other}"
            assert why


@pytest.mark.parametrize("name", ["", "sparse", *COMMANDS])
def test_help_fits_80_columns(name: str) -> None:
    """A line that the terminal breaks is a line of prose; an example is one line."""
    asked = serenity(*name.split(), "-h", columns=80)
    assert asked.returncode == 0
    assert max(map(len, asked.stdout.splitlines())) <= 80
    if name in COMMANDS:
        written = textwrap.dedent(inspect.getdoc(COMMANDS[name].handler) or "").splitlines()
        examples = [line for line in written if line.startswith(" ")]
        assert all(len(line) <= 78 for line in examples), examples
        printed = [line.strip() for line in asked.stdout.splitlines()]
        assert all(line.strip() in printed for line in examples)
    assert asked.stdout == serenity(*name.split(), "--help", columns=80).stdout


def test_help_lists_commands_by_name() -> None:
    printed = serenity("--help").stdout
    places = [printed.index(f"│ {name} ") for name in sorted(FILES)]
    assert places == sorted(places)


def test_help_lists_options_by_group() -> None:
    said = serenity("build", "--help").stdout
    places = [said.index(f"─ {group} ─") for group in HelpGroup]
    assert places == sorted(places)
    assert "--rows" in said
    assert "N|auto|needed|off" in said


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_a_terminal_and_draws_no_pictures(name: str) -> None:
    """``:RAM:`` between two words was a ram."""
    shown = serenity(*name.split(), "-h", columns=80)
    assert shown.returncode == 0
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert not [letter for letter in shown.stdout if ord(letter) > 0x2FFF]
