"""Sweeps: independent points that run in this process, in processes or on Dask, and can resume.

A point has a digest of its inputs (``key``) and computes its results (``rows``). Results are in the
order of the points, so the output does not depend on where they ran.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tvm_serenity.errors import InputError
from tvm_serenity.search.deadline import seconds_left, within
from tvm_serenity.search.parallel import results
from tvm_serenity.system.files import read_text, write_bytes

Row = dict[str, Any]


class SweepWork(Protocol):
    """One point of a sweep; its rows have a ``limit`` if the deadline ended it."""

    def key(self) -> str:
        """Return a digest of all inputs on which the rows depend."""

    def rows(self) -> list[Row]:
        """Compute and return the point's rows."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a sweep; ``done`` holds the rows of finished points by key."""

    def __init__(self, done: Mapping[str, list[Row]], points: int) -> None:
        super().__init__()
        self.done, self.points = dict(done), points


@dataclass(frozen=True)
class PointFile:
    """A file of finished points of one ``kind``; each row must have all ``columns``."""

    path: Path
    kind: str
    columns: tuple[str, ...]

    def save(self, done: Mapping[str, list[Row]]) -> None:
        """Write the rows of finished points atomically."""
        write_bytes(self.path, json.dumps({self.kind: done}).encode())

    def load(self) -> dict[str, list[Row]]:
        """Return the finished points of the file; an empty dictionary if it does not exist."""
        try:
            points = json.loads(read_text(self.path))[self.kind]
            if not all(set(self.columns) <= set(row) for rows in points.values() for row in rows):
                raise ValueError
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"{self.path}: the file does not hold {self.kind!r} of a sweep; name another file "
                "or remove it"
            ) from error
        return dict(points)


def run_sweep(
    points: Sequence[SweepWork],
    jobs: int = 1,
    dask: str | None = None,
    done: Mapping[str, list[Row]] | None = None,
    keep: PointFile | None = None,
    is_keyed: bool = True,
) -> list[Row]:
    """Return the rows of all ``points``, in order; the points share the time until the deadline.

    ``done``: rows by key of finished points, which are not computed again. ``keep``: a file that is
    updated after each finished point, unless the deadline ended it. ``is_keyed`` False: results are
    not saved, so points are not hashed. Ctrl-C raises :class:`Interrupted` with the finished
    points.
    """
    keys = [point.key() if is_keyed else str(i) for i, point in enumerate(points)]
    finished = {key: rows for key, rows in (done or {}).items() if key in set(keys)}
    todo = [(k, p) for k, p in zip(keys, points, strict=True) if k not in finished]
    end, rest = time.monotonic() + seconds_left(), dict[str, list[Row]]()
    shares = [min(1.0, jobs / (len(todo) - i)) for i in range(len(todo))]
    work = [_Timed(point, end, share) for (_, point), share in zip(todo, shares, strict=True)]
    try:
        with results(_rows, work, jobs, dask) as completed:
            for index, rows in completed:
                ended = any(row.get("limit") for row in rows)
                (rest if ended else finished)[todo[index][0]] = rows
                if keep is not None and not ended:
                    keep.save(finished)
    except KeyboardInterrupt as interrupt:
        raise Interrupted(finished, len(points)) from interrupt
    return [row for key in dict.fromkeys(keys) for row in (finished | rest)[key]]


@dataclass(frozen=True)
class _Timed:
    """A point with its deadline, which is passed on because processes do not share deadlines.

    ``end``: the deadline on this machine's clock. ``share``: the point's share of the time left.
    """

    point: SweepWork
    end: float
    share: float


def _rows(work: _Timed) -> list[Row]:
    with within(work.end - time.monotonic()), within(None, work.share):
        return work.point.rows()
