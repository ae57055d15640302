"""All errors that the library raises on purpose.

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
    """An unusable model, file, graph or option; the message says what is allowed."""


class GraphError(InputError):
    """An ill-formed graph; the message names the operator or tensor."""


class CycleError(GraphError):
    """A cycle of operators; the message names them in order."""


class ParseError(InputError):
    """An unreadable line of a text or CSV file; the message names the line."""


class UnsupportedError(InputError):
    """A well-formed input beyond what is supported; the message names the operator."""


class FitError(SerenityError):
    """A network that needs more memory than its board or its limit allows.

    ``facts``: the figures that ``serenity build --json`` prints.
    """

    exit_status = 1

    def __init__(self, message: str, facts: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.facts = facts


class CheckError(SerenityError):
    """A result that an independent checker rejects."""


class WrongResultError(CheckError):
    """Compiled code whose result differs from its reference; the message says where."""

    exit_status = 1


class SerenityWarning(UserWarning):
    """A note on a right result; the command line prints it."""


class MissingPartError(SerenityError):
    """A package or tool that is not installed; the message says how to install it."""
