"""All errors that the library raises on purpose.

    SerenityError
    ├── InputError              an unusable model, file, graph or option
    │   ├── GraphError          an ill-formed graph (names the operator or tensor)
    │   │   └── CycleError      a cycle of operators
    │   ├── ParseError          an unreadable line of a text or CSV file (names the line)
    │   └── UnsupportedError    a well-formed input beyond what is supported (names the operator)
    ├── FitError                a network that needs more memory than its board has (figures)
    ├── CheckError              a result that an independent checker rejects
    │   └── WrongResultError    compiled code whose result is wrong (names the kernel and element)
    └── MissingPartError        an optional package or tool that is not installed (names it)

The command line prints each error as one line on standard error. The exit status is 1 for a wrong
result and for a network that does not fit, 2 for all other errors.
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
