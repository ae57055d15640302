"""Every error the library raises on purpose.

    SerenityError
    ├── InputError              a model, file, graph or option that cannot be used
    │   ├── GraphError          a graph that is not well formed (names the op or tensor)
    │   │   └── CycleError      operators that wait for each other
    │   ├── ParseError          a text or CSV line that cannot be read (names the line)
    │   └── UnsupportedError    well formed, but outside of what is supported (names the op)
    ├── FitError                a network that needs more memory than its board has (figures)
    ├── CheckError              a result that an independent checker rejects
    │   └── WrongResultError    compiled code that computes something else (names what, and where)
    └── MissingPartError        an optional package or tool is not installed (says which)

The command line turns each into one line on standard error and exit status 2; a wrong result, or
what does not fit, is the answer no: exit status 1.
"""

from collections.abc import Mapping
from typing import Any


class SerenityError(Exception):
    """Base of all errors raised on purpose."""

    exit_status = 2


class InputError(SerenityError):
    """A model, file, graph or option that cannot be used; the message says what is allowed."""


class GraphError(InputError):
    """A graph that is not well formed; the message names the op or tensor."""


class CycleError(GraphError):
    """Operators that wait for each other, named in order."""


class ParseError(InputError):
    """A line of a text or CSV file that cannot be read; the message names the line."""


class UnsupportedError(InputError):
    """Well formed, but outside of what is supported; the message names the op."""


class FitError(SerenityError):
    """A network needs more memory than its board has, or than it was allowed.

    ``facts`` are the figures that ``serenity build --json`` prints.
    """

    exit_status = 1

    def __init__(self, message: str, facts: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.facts = facts


class CheckError(SerenityError):
    """A result that an independent checker rejects."""


class WrongResultError(CheckError):
    """Compiled code computes something else than its reference; the message says what and where."""

    exit_status = 1


class SerenityWarning(UserWarning):
    """What a user should know of a result that is right; the command line prints it."""


class MissingPartError(SerenityError):
    """An optional package or tool is not installed; the message says how to get it."""
