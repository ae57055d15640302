"""Commands from dataclasses: Typer's parameters are derived from the fields of option groups.

    @command("build", required=("output",))
    def build_command(model: Model, options: Settings, shown: Shown) -> None:

A parameter whose type is an option group becomes one option for each field, and the command is
called with an instance of the group. Other parameters are passed to Typer unchanged.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass
from functools import partial, wraps
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import typer

from tvm_serenity.cli import show
from tvm_serenity.cli._app import app
from tvm_serenity.errors import InputError
from tvm_serenity.options.option import (
    BYTES,
    FACTOR,
    MEGAHERTZ,
    MILLISECONDS,
    ROWS,
    SECONDS,
    HelpGroup,
    Option,
    OptionGroup,
    defaults_of,
    options_of,
)
from tvm_serenity.system.sizes import size_bytes

METAVARS = {
    BYTES: "SIZE",
    SECONDS: "SECONDS",
    ROWS: "N",
    FACTOR: "FACTOR",
    MILLISECONDS: "MS",
    MEGAHERTZ: "MHz",
}
"""The placeholder of a number in the help text, by its unit."""
TYPES = (bool, int, float, str)
"""Types that Typer parses; the command line gives all other values as text."""

Handler = Callable[..., None]


@dataclass(frozen=True)
class Registered:
    """A command and its handler, which parses, calls and prints; ``prefix``: its parent command."""

    name: str
    handler: Handler
    prefix: str = ""


REGISTERED: list[Registered] = []
"""All registered commands, in the order of registration."""


def command(
    name: str, *, required: Sequence[str] = (), within: typer.Typer = app
) -> Callable[[Handler], Handler]:
    """Return a decorator that registers a function as the command ``name``.

    ``required``: names of option fields that have a default but are mandatory in this command.
    """

    def register(handler: Handler) -> Handler:
        prefix = "" if within is app else str(within.info.name)
        REGISTERED.append(Registered(name, handler, prefix))
        within.command(name, help=unwrapped(handler.__doc__ or ""))(_flat(handler, required))
        return handler

    return register


def unwrapped(text: str) -> str:
    """Return a docstring as help: each paragraph one line, which the terminal wraps.

    Indented lines (examples) stay lines of their own, with the heading before them.
    """
    paragraphs = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        lines = paragraph.splitlines()
        is_laid_out = any(line.startswith(" ") for line in lines)
        paragraphs.append(paragraph if is_laid_out else " ".join(lines))
    return "\n\n".join(paragraphs)


def groups_of(handler: Handler) -> Mapping[str, type[OptionGroup]]:
    """Return the option groups of a command by the names of its parameters."""
    hints = get_type_hints(handler)
    return {
        name: hints[name]
        for name in inspect.signature(handler).parameters
        if isinstance(hints[name], type) and issubclass(hints[name], OptionGroup)
    }


def _flat(handler: Handler, required: Sequence[str]) -> Handler:
    """Return ``handler`` with one parameter for each field of its option groups."""
    groups = groups_of(handler)
    hints = get_type_hints(handler, include_extras=True)
    arguments = [
        parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in inspect.signature(handler).parameters.items()
        if name not in groups
    ]
    flat = [one for group in groups.values() for one in _parameters(group, required)]
    listed = [*arguments, *sorted(flat, key=_place)]

    @wraps(handler)
    def run(**given: Any) -> None:
        options = {name: _group(group, given) for name, group in groups.items()}
        others = {one.name: given[one.name] for one in arguments}
        with show.warnings_on_stderr():
            handler(**others, **options)

    run.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in listed}
    return run


def _place(parameter: inspect.Parameter) -> int:
    """Return the position of an option in the help text: that of its help group."""
    info = parameter.annotation.__metadata__[0]
    return list(HelpGroup).index(info.rich_help_panel)


def _parameters(group: type[OptionGroup], required: Sequence[str]) -> Iterator[inspect.Parameter]:
    """Yield a parameter with Typer's annotation for each option of ``group``."""
    hints, defaults = get_type_hints(group), defaults_of(group)
    for name, one in options_of(group).items():
        default = defaults[name]
        value = hints[name]
        if one.switch:
            default, value = False, bool
        elif name in required or default is MISSING:
            default, value = inspect.Parameter.empty, _bare(value)
        elif _is_repeated(value):
            default, value = None, list[str] | None
        elif default is None or not _is_plain(type(default)):
            default, value = None, _bare(value) | None
        else:
            value = _bare(value)
        yield inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=Annotated[value, _info(one)],
        )


def _is_repeated(hint: Any) -> bool:
    """Return whether an option may be repeated: its field holds several values."""
    return get_origin(hint) in (Mapping, Sequence)


def _bare(hint: Any) -> Any:
    """Return the type that Typer parses for a field; ``str`` if Typer does not know the type."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    known = [part for part in parts if part is not NoneType]
    (only,) = known if len(known) == 1 else (str,)
    return only if isinstance(only, type) and _is_plain(only) else str


def _is_plain(value: type) -> bool:
    return value in TYPES or hasattr(value, "__members__")


def _info(one: Option) -> Any:
    """Return Typer's description of an option."""
    names = [one.flag] if not one.short else [one.short, one.flag]
    more: dict[str, Any] = {}
    if one.unit == BYTES:
        more["parser"] = partial(_size, least=int(one.least or 0))
    return typer.Option(
        *names,
        help=help_of(one),
        metavar=metavar_of(one),
        rich_help_panel=one.group,
        envvar=one.variable or None,
        **more,
    )


def help_of(one: Option) -> str:
    """Return the help text of an option, with its choices if its metavar does not show them."""
    named = one.metavar and one.choices
    return f"{one.help} One of: {', '.join(one.choices)}." if named else one.help


def metavar_of(one: Option) -> str | None:
    """Return the placeholder of the value of an option in the help text, or None."""
    if one.metavar:
        return one.metavar
    number = METAVARS.get(one.unit, one.unit.upper())
    if one.choices:
        return "|".join([number] * one.numbers + list(one.choices))
    return number or None


def _size(text: str, least: int) -> int:
    try:
        return size_bytes(str(text), least)
    except InputError as error:
        raise typer.BadParameter(str(error)) from None


def _group(group: type[OptionGroup], given: Mapping[str, Any]) -> OptionGroup:
    """Return an instance of ``group`` with the values of the command line."""
    defaults = defaults_of(group)
    return group(
        **{name: _read(one, given[name], defaults[name]) for name, one in options_of(group).items()}
    )


def _read(one: Option, value: Any, default: Any) -> Any:
    """Return the value of an option that the command line gives as ``value``."""
    if one.switch:
        return one.switch if value else default
    if value is None:
        return default
    if one.read is not None:
        return one.read(value)
    return tuple(value) if isinstance(value, list) else value
