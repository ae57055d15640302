"""An option of the commands: a dataclass field that describes itself.

    ram_bytes: int | None = option(
        None, Option("--ram", "Limit RAM, stack included.", unit=BYTES)
    )

The command line, its help, its errors, the reference page and the JSON Schema are derived from the
field's metadata.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

from tvm_serenity.errors import InputError

METADATA = "option"
BYTES, SECONDS, ROWS = "bytes", "seconds", "rows"
MILLISECONDS, MEGAHERTZ, FACTOR = "milliseconds", "MHz", "factor"


class HelpGroup(StrEnum):
    """The section of help and of the reference page that lists an option."""

    MODEL = "Model"
    MEMORY = "Memory"
    ROWS = "Rows"
    SPEED = "Speed"
    OUTPUT = "Output"
    CHECKS = "Checks"


@dataclass(frozen=True)
class Conflict:
    """A field that an option conflicts with, and why.

    ``values``: values of the other field that conflict; if empty, all but its default and
    ``unless``. ``mine``: values of the option itself that conflict; if empty, all but its default.
    """

    other: str
    why: str
    values: tuple[Any, ...] = ()
    unless: tuple[Any, ...] = ()
    mine: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Need:
    """A field without which an option has no effect, and why."""

    other: str
    why: str


@dataclass(frozen=True, kw_only=True)
class _Details:
    """The optional metadata of an option; see :class:`Option`."""

    short: str = ""
    group: HelpGroup = HelpGroup.OUTPUT
    choices: tuple[str, ...] = ()
    numbers: bool = False
    metavar: str = ""
    unit: str = ""
    least: float | None = None
    above: float | None = None
    most: float | None = None
    read: Callable[[Any], Any] | None = None
    check: Callable[[Any], object] | None = None
    variable: str = ""
    switch: str = ""
    searched: bool = False
    conflicts: tuple[Conflict, ...] = ()
    needs: tuple[Need, ...] = ()


@dataclass(frozen=True)
class Option(_Details):
    """The spelling and the meaning of an option.

    * ``flag``: its name, ``--a/--no-a`` for a switch with both; ``help``: one paragraph;
      ``short``: a second name; ``group``: the help section; ``metavar``: the placeholder of its
      value in help.
    * ``choices``: the allowed values; with ``numbers`` also integers from ``least`` on. ``unit``:
      the unit of a number; ``least``, ``most``, ``above``: the limits of that number.
    * ``read``: converts the text of the command line (a list of texts if the option may be
      repeated). ``check``: raises :class:`InputError` if it refuses a value.
    * ``switch``: the value of the flag without an argument. ``variable``: the environment variable
      that sets the option.
    * ``searched``: ``fit`` chooses the value, so users cannot set it there.
    * ``conflicts`` and ``needs``: fields that exclude the option, and fields that it requires.
    """

    flag: str = ""
    help: str = ""

    @property
    def name(self) -> str:
        """The flag that turns the option on."""
        return self.flag.partition("/")[0]


def option(default: Any, described: Option) -> Any:
    """Return a dataclass field with an option as metadata; ``MISSING`` stands for no default."""
    metadata = {METADATA: described}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


def options_of(group: type) -> Mapping[str, Option]:
    """Return the options of a dataclass by field name; fields without metadata are left out."""
    return {f.name: f.metadata[METADATA] for f in _described(group)}


def described(group: type, name: str) -> Option:
    """Return the option of field ``name``."""
    return options_of(group)[name]


def conflicts_of(group: type, name: str) -> tuple[Conflict, ...]:
    """Return the conflicts of a field with fields and values that ``group`` has."""
    known = options_of(group)
    return tuple(
        conflict
        for conflict in known[name].conflicts
        if conflict.other in known
        and (not conflict.values or set(conflict.values) & set(known[conflict.other].choices))
    )


def defaults_of(group: type) -> Mapping[str, Any]:
    """Return the default of each option; ``MISSING`` for an option without one."""
    return {f.name: _default(f) for f in _described(group)}


def searched(group: type) -> tuple[str, ...]:
    """Return the fields whose values ``fit`` chooses."""
    return tuple(name for name, one in options_of(group).items() if one.searched)


def values_of(asked: Any, wanted: type) -> dict[str, Any]:
    """Return the values of ``asked`` for the fields that ``wanted`` has too."""
    names = {f.name for f in fields(wanted)}
    return {f.name: getattr(asked, f.name) for f in fields(asked) if f.name in names}


def flags_of(asked: Any, names: Iterable[str]) -> list[str]:
    """Return the command line words that set the fields ``names`` to their values in ``asked``.

    Fields at their default are omitted.
    """
    described, defaults, words = options_of(type(asked)), defaults_of(type(asked)), []
    for name in names:
        value, one = getattr(asked, name), described[name]
        if value == defaults[name]:
            continue
        on, _, off = one.flag.partition("/")
        if isinstance(value, bool):
            words.append(on if value else off)
        elif value == one.switch:
            words.append(on)
        elif isinstance(value, Mapping):
            words += [word for key, held in value.items() for word in (on, f"{key}={held}")]
        else:
            words += [on, f"{value:g}" if isinstance(value, float) else str(value)]
    return words


def differing(base: Option, **details: Any) -> Option:
    """Return the option with some metadata changed, for another command."""
    return replace(base, **details)


def _described(group: type) -> Iterator[Field[Any]]:
    return (f for f in fields(group) if METADATA in f.metadata)


def _default(one: Field[Any]) -> Any:
    return one.default if one.default_factory is MISSING else one.default_factory()


@dataclass(frozen=True, kw_only=True)
class OptionGroup:
    """A group of options; its constructor checks the values and their combinations.

    Raises :class:`InputError` with the option, or both conflicting options, the reason and the
    remedy.
    """

    def __post_init__(self) -> None:
        """Check every value, then every declared conflict and need."""
        for name, one in options_of(type(self)).items():
            _check_value(one, getattr(self, name))
        for refusal in refusals(self):
            raise InputError(refusal)


def _check_value(one: Option, value: Any) -> None:
    if value is None:
        return
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if one.choices and value not in one.choices and not (one.numbers and number):
        raise InputError(f"{one.name} {value!r}: {_allowed(one)}")
    if number and not _within(one, value):
        raise InputError(f"{one.name} {value}: {_allowed(one)}")
    if one.check is not None:
        one.check(value)


def _within(one: Option, value: float) -> bool:
    """Return whether a number is within the limits; NaN is not."""
    if one.least is not None and not value >= one.least:
        return False
    if one.above is not None and not value > one.above:
        return False
    return one.most is None or value <= one.most


def _allowed(one: Option) -> str:
    """Return the allowed values of the option, as an error message states them."""
    if one.choices and not one.numbers:
        verb = "is" if len(one.choices) == 1 else "are"
        return f"there {verb} {', '.join(one.choices)}"
    limit = "" if one.most is None else f" up to {one.most:,}"
    if one.least is not None:
        limit = f" from {one.least} on" if one.most is None else f" from {one.least}{limit}"
    if one.above is not None:
        limit = f" above {one.above}"
    number = f"write a number{' of ' + one.unit if one.unit else ''}{limit}"
    return f"{number}, or {', '.join(one.choices)}" if one.choices else number


def refusals(asked: OptionGroup) -> Iterator[str]:
    """Yield a message for each conflict in ``asked``: both options, the reason and the remedy."""
    known, defaults = options_of(type(asked)), defaults_of(type(asked))
    for name, one in known.items():
        value = getattr(asked, name)
        for conflict in conflicts_of(type(asked), name):
            other = known[conflict.other]
            if not _is_given(value, defaults[name], conflict.mine):
                continue
            theirs = getattr(asked, conflict.other)
            free = (defaults[conflict.other], *conflict.unless)
            if theirs in conflict.values if conflict.values else theirs not in free:
                both = f"{spelled(other, theirs)} does not take {spelled(one, value)}"
                yield f"{both}: {conflict.why}; leave out {one.name} or {other.name}"
        for need in one.needs:
            if need.other not in known or value == defaults[name]:
                continue
            if getattr(asked, need.other) == defaults[need.other]:
                both = f"{one.name} goes with {known[need.other].name}"
                yield f"{both}: {need.why}; give both or neither"


def _is_given(value: Any, default: Any, refused: tuple[Any, ...]) -> bool:
    return value in refused if refused else value != default


def spelled(one: Option, value: Any) -> str:
    """Return the option as it is written on the command line."""
    bare = isinstance(value, bool) or one.switch or one.unit == BYTES
    if bare or not isinstance(value, int | float | str):
        return one.name
    return f"{one.name} {value:g}" if isinstance(value, float) else f"{one.name} {value}"
