"""Random Relax graphs through every form of their kernels and the whole pipeline."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from tests.conformance.counts import Counts, general
from tests.conformance.relax_forms import (
    Difference,
    Reference,
    kernels_differ,
    pipeline_differs,
    reference,
)
from tests.conformance.relax_graphs import graph, inputs_of
from tests.conformance.relax_rows import rows_differ
from tvm_serenity.errors import SerenityError, WrongResultError

KIND = "relax"


def differences(module: Any, seed: int, *, arena: bool = True) -> list[Difference]:
    """Return what computes something else than TVM's own kernels for a generated module.

    Raises :class:`SerenityError` where it is refused, and :class:`NoReferenceError` where TVM's own
    kernels cannot be made.
    """
    inputs = inputs_of(module, seed)
    found = tvm_reference(module, inputs)
    differing = [*kernels_differ(found), *rows_differ(found)]
    return [*differing, *(pipeline_differs(module, inputs, found) if arena else [])]


class NoReferenceError(Exception):
    """TVM itself cannot compute a module."""


def run(seconds: float, seed: int, folder: Path | None = None) -> Counts:
    """Return what became of random graphs of a seed; those that differ are saved as text."""
    return counted(KIND, graph, differences, seconds, seed, folder)


def counted(
    kind: str,
    draw: Callable[[Random], Any],
    differ: Callable[[Any, int], Sequence[Difference]],
    seconds: float,
    seed: int,
    folder: Path | None,
    covered: Callable[[Any], Sequence[str]] = lambda _: (),
) -> Counts:
    """Return what became of modules that ``draw`` makes, for so many seconds.

    ``differ`` takes a module and a seed of inputs, and raises as :func:`differences`. ``covered``:
    what an equal module counts for.
    """
    counts, until, number = Counts(), time.monotonic() + seconds, 0
    while time.monotonic() < until:
        drawn = seed * 1_000_003 + number
        number += 1
        module = draw(Random(drawn))
        try:
            found = differ(module, drawn)
        except WrongResultError as error:
            _different(kind, counts, drawn, module, str(error), folder)
        except SerenityError as refusal:
            counts.refused[f"{kind}: {general(str(refusal))}"] += 1
        except NoReferenceError as reason:
            counts.without_reference[f"{kind}: {general(str(reason))}"] += 1
        except Exception as error:
            _different(kind, counts, drawn, module, f"{type(error).__name__}: {error}", folder)
        else:
            if found:
                said = "; ".join(f"{d.form} {d.kernel}: {d.said}" for d in found)
                _different(kind, counts, drawn, module, said, folder)
            else:
                counts.equal[kind] += 1
                counts.covered.update(covered(module))
    return counts


def _different(
    kind: str, counts: Counts, seed: int, module: Any, said: str, folder: Path | None
) -> None:
    """Count a module that differs, and write it as text where there is a folder."""
    line = f"{kind} (seed {seed}): {said}"
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{kind}-{seed}.txt"
        path.write_text(f"{said}\n\n{module}\n")
        line = f"{line[:400]} [{path}]"
    counts.different.append(line)


def tvm_reference(module: Any, inputs: Sequence[Any]) -> Reference:
    """Return what TVM's own kernels make of inputs; :class:`NoReferenceError` where they cannot."""
    try:
        return reference(module, inputs)
    except Exception as error:
        raise NoReferenceError(_last_line(error)) from error


def _last_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[-1] if lines else type(error).__name__
