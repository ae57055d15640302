"""Sweeps: points that are worked out by themselves, here, in processes or on Dask, and kept.

A point says by ``key`` what decides its rows, and works them out by ``rows``. Rows come in the
order of the points, so that the output does not depend on where they ran.
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
    """What is worked out at once. A row whose ``limit`` is set was ended by the deadline."""

    def key(self) -> str:
        """Return a digest of everything that decides the rows."""

    def rows(self) -> list[Row]:
        """Work the point out."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a sweep; ``done`` holds the rows of finished points by key."""

    def __init__(self, done: Mapping[str, list[Row]], points: int) -> None:
        super().__init__()
        self.done, self.points = dict(done), points


@dataclass(frozen=True)
class PointFile:
    """A file of finished points of one kind; each of their rows has the ``columns``."""

    path: Path
    kind: str
    columns: tuple[str, ...]

    def save(self, done: Mapping[str, list[Row]]) -> None:
        """Write finished points in one step."""
        write_bytes(self.path, json.dumps({self.kind: done}).encode())

    def load(self) -> dict[str, list[Row]]:
        """Return the finished points of the file; none where there is no such file."""
        try:
            points = json.loads(read_text(self.path))[self.kind]
            if not all(set(self.columns) <= set(row) for rows in points.values() for row in rows):
                raise ValueError
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{self.path}: holds no points of a sweep") from error
        return dict(points)


def run_sweep(
    points: Sequence[SweepWork],
    jobs: int = 1,
    dask: str | None = None,
    done: Mapping[str, list[Row]] | None = None,
    keep: PointFile | None = None,
    is_keyed: bool = True,
) -> list[Row]:
    """Return the rows of all ``points``, in their order; they share what is left of a deadline.

    ``done``: rows of points that need not be worked out again. ``keep``: holds the finished points
    at any time, but for those that the deadline ended. Ctrl-C raises :class:`Interrupted` with
    them. Not ``is_keyed``: nobody keeps any, and no time is spent on their keys.
    """
    keys = [point.key() if is_keyed else str(i) for i, point in enumerate(points)]
    finished = {key: rows for key, rows in (done or {}).items() if key in set(keys)}
    todo = [(k, p) for k, p in zip(keys, points, strict=True) if k not in finished]
    end, rest = time.monotonic() + seconds_left(), dict[str, list[Row]]()
    shares = [min(1.0, jobs / (len(todo) - i)) for i in range(len(todo))]
    work = [_Timed(point, end, share) for (_, point), share in zip(todo, shares, strict=True)]
    try:
        with results(_rows, work, jobs, dask) as found:
            for index, rows in found:
                ended = any(row.get("limit") for row in rows)
                (rest if ended else finished)[todo[index][0]] = rows
                if keep is not None and not ended:
                    keep.save(finished)
    except KeyboardInterrupt as interrupt:
        raise Interrupted(finished, len(points)) from interrupt
    return [row for key in dict.fromkeys(keys) for row in (finished | rest)[key]]


@dataclass(frozen=True)
class _Timed:
    """A point, when the deadline is (on the clock of this machine), and its share of what is left.

    Another process sees neither by itself.
    """

    point: SweepWork
    end: float
    share: float


def _rows(work: _Timed) -> list[Row]:
    with within(work.end - time.monotonic()), within(None, work.share):
        return work.point.rows()
