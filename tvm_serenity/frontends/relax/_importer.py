"""Error handling that the three importers share.

TVM's messages on models that it cannot import (its intermediate form, variable names, Python types)
do not help the author of the model. A refusal names the operator, its result, its inputs and a
remedy; TVM's text is dropped.
"""

import gc
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from typing import Any

import tvm
from tvm import relax

from tvm_serenity.errors import SerenityError, UnsupportedError, WrongResultError
from tvm_serenity.frontends.model_file import with_remedy


def run_importer(convert: Callable[[], tvm.IRModule]) -> tvm.IRModule:
    """Return ``convert()``; convert any exception to an :class:`UnsupportedError`.

    A :class:`WrongResultError` for a wrong constant passes through. TVM's importers print errors
    and warnings, and after an error their block builder complains on standard error when it is
    freed. All of that is dropped; the exception is freed first, because its frames keep the builder
    alive.
    """
    kind: type[SerenityError] = UnsupportedError
    with _native_errors_dropped(), redirect_stdout(StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return convert()
        except WrongResultError as error:
            reason, kind = str(error), WrongResultError
        except SerenityError as error:
            reason = str(error)
        except Exception:  # the importers assert and raise any type
            reason = (
                "TVM cannot import the model, and the error does not name an operator; "
                "export it with another version"
            )
        gc.collect()  # the converter is in a reference cycle
    raise kind(reason)


@contextmanager
def placed(where: str, form: Callable[[], str]) -> Iterator[None]:
    """Prefix errors that are raised within the context with the operator ``where``.

    Reasons of our own errors are kept. For other exceptions, of TVM or Python, the message contains
    ``form()``, a description of the operator's types and options.
    """
    try:
        yield
    except WrongResultError as error:
        raise WrongResultError(f"{where}: {error}") from error
    except SerenityError as error:
        reason = str(error)
    except Exception:  # the importers assert and raise any type
        reason = f"TVM's importer does not support this form ({form()})"
    else:
        return
    raise UnsupportedError(f"{where}: {with_remedy(reason)}")


def form_of(types: Iterable[relax.Type | None], options: Iterable[tuple[str, Any]] = ()) -> str:
    """Return an operator's input types and options in words."""
    read = ", ".join(type_text(kind) for kind in types) or "nothing"
    said = ", ".join(f"{name}={_value_text(value)}" for name, value in options)
    return f"reads {read}" + (f" with {said}" if said else "")


def type_text(kind: relax.Type | None) -> str:
    """Return the type of a value in words: ``float32[1, 3]``."""
    if kind is None:
        return "an omitted input"
    if isinstance(kind, relax.TupleType):
        return f"({', '.join(type_text(field) for field in kind.fields)})"
    if not isinstance(kind, relax.TensorType):
        return "sizes"
    values = getattr(kind.shape, "values", None)
    dtype = str(kind.dtype.dtype) if kind.dtype is not None else "unknown"
    if values is None:
        return f"{dtype} of unknown shape"
    extents = (str(int(v)) if isinstance(v, tvm.tirx.IntImm) else "?" for v in values)
    return f"{dtype}[{', '.join(extents)}]"


def _value_text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, str | int | float):
        return str(value)
    numbers = isinstance(value, list | tuple) and all(isinstance(v, int | float) for v in value)
    return str(list(value)) if numbers else "..."


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
