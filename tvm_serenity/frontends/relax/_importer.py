"""What the three importers share: refusals that say why, and nothing on the terminal."""

import gc
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO

import tvm

from tvm_serenity.errors import SerenityError, UnsupportedError, WrongResultError


def run_importer(convert: Callable[[], tvm.IRModule]) -> tvm.IRModule:
    """Return ``convert()``; whatever it raises becomes an :class:`UnsupportedError`.

    A constant that was found to be wrong stays a :class:`WrongResultError`.

    TVM's importers print what stops them, warn of deprecated parts, and where one stops halfway
    its block builder complains on the native standard error when it is freed. All that is
    dropped; the exception is freed before, so that its frames do not keep the builder alive.
    """
    printed = StringIO()
    kind: type[SerenityError] = UnsupportedError
    with _native_errors_dropped(), redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return convert()
        except WrongResultError as error:
            reason, kind = str(error), WrongResultError
        except SerenityError as error:
            reason = str(error)
        except Exception as error:  # the importers assert and raise all kinds
            stopped = re.search(r"Error converting (operator \w+)", printed.getvalue())
            what = stopped[1] if stopped else "it"
            reason = f"TVM cannot import {what}: {first_line(error)}"
        gc.collect()  # the converter refers to itself
    raise kind(reason)


def first_line(error: Exception) -> str:
    """What ``error`` says, without the stack that TVM appends."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


@contextmanager
def _native_errors_dropped() -> Iterator[None]:
    sys.stderr.flush()
    kept, sink = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(sink)
