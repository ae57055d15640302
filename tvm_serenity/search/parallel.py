"""Runs independent items of work in this process, in processes, or on a Dask cluster (joblib)."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pickle import PicklingError
from typing import Any, TypeVar

from tvm_serenity.errors import InputError, MissingPartError, SerenityError

CONNECT_TIMEOUT_S = 5
MANY_AT_ONCE, CHUNKS_A_JOB = 64, 8
"""Limit on the items per chunk, and number of chunks per process, for items of a few milliseconds.
"""

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class FailedItem:
    """The error of one item, without its traceback."""

    error: SerenityError


@contextmanager
def results(
    work: Callable[[T], R], items: Sequence[T], jobs: int = 1, dask: str | None = None
) -> Iterator[Iterator[tuple[int, R]]]:
    """Yield an iterator over pairs of an index of ``items`` and the result of ``work``.

    This is :func:`results_or_failures`, except that the first :class:`SerenityError` is raised.
    """
    with results_or_failures(work, items, jobs, dask) as outcomes:
        yield _raised(outcomes)


@contextmanager
def results_or_failures(
    work: Callable[[T], R], items: Sequence[T], jobs: int = 1, dask: str | None = None
) -> Iterator[Iterator[tuple[int, R | FailedItem]]]:
    """Yield an iterator over pairs of an index of ``items`` and the result of ``work``.

    Results come in order of completion. If ``work`` raises a :class:`SerenityError`, the result is
    a :class:`FailedItem`. The work runs in ``jobs`` processes of this machine (1: this process), or
    on the Dask scheduler at address ``dask``. Raises :class:`InputError` if the scheduler cannot be
    reached or an item cannot be sent, and :class:`MissingPartError` without Dask.
    """
    if jobs < 1:
        raise InputError(f"jobs must be 1 or more, got {jobs}")
    if dask is not None:
        import joblib

        with _client(dask), joblib.parallel_config(backend="dask"):
            yield _elsewhere(work, items, n_jobs=-1, pre_dispatch="all")
    elif min(jobs, len(items)) > 1:
        yield _elsewhere(work, items, n_jobs=min(jobs, len(items)), pre_dispatch="2*n_jobs")
    else:
        yield (_one(work, index, item) for index, item in enumerate(items))


def all_or_failures(
    work: Callable[[T], R], items: Sequence[T], jobs: int = 1, dask: str | None = None
) -> list[R | FailedItem]:
    """Return the results of ``work`` for all ``items``, in order; for items of a few milliseconds.

    Items are sent to processes in chunks. This process is one of the ``jobs``: it runs chunks from
    the end that no other process has begun, and chunks that cannot be sent. Errors are those of
    :func:`results_or_failures`.
    """
    at_once = min(MANY_AT_ONCE, -(-len(items) // (CHUNKS_A_JOB * max(1, jobs))))
    chunks = [range(i, min(i + at_once, len(items))) for i in range(0, len(items), at_once or 1)]
    given = [(i, [items[index] for index in chunk]) for i, chunk in enumerate(chunks)]
    if dask is None and min(jobs, len(chunks)) > 1:
        done = _here_as_well(partial(_each, work), given, min(jobs, len(chunks)) - 1)
    else:
        with results_or_failures(partial(_each, work), given, jobs, dask) as outcomes:
            done = dict(part for _, part in outcomes if not isinstance(part, FailedItem))
    return [result for i in range(len(chunks)) for result in done[i]]


def _each(
    work: Callable[[T], R], chunk: tuple[int, Sequence[T]]
) -> tuple[int, list[R | FailedItem]]:
    number, items = chunk
    return number, [_one(work, 0, item)[1] for item in items]


def _here_as_well(
    work: Callable[[T], tuple[int, R]], items: Sequence[T], others: int
) -> dict[int, R]:
    """Return the results of ``work`` by number, from this process and ``others`` processes."""
    from joblib.executor import get_memmapping_executor

    _ignore_replaced_workers()
    # With loky's own executor, a later joblib.Parallel would fail.
    workers = get_memmapping_executor(others)
    begun = [workers.submit(work, item) for item in items]
    try:
        finished = [work(items[i]) for i in reversed(range(len(items))) if begun[i].cancel()]
        for item, future in zip(items, begun, strict=True):
            try:
                finished += [] if future.cancelled() else [future.result()]
            except PicklingError:
                finished.append(work(item))
        return dict(finished)
    finally:
        for future in begun:
            future.cancel()


def _elsewhere(
    work: Callable[[T], R], items: Sequence[T], **options: Any
) -> Iterator[tuple[int, R | FailedItem]]:
    """Yield pairs of an index and a result, as joblib's processes or backend complete them."""
    import joblib

    _ignore_replaced_workers()
    parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1, **options)
    try:
        yield from parallel(joblib.delayed(_one)(work, i, item) for i, item in enumerate(items))
    except PicklingError as error:
        raise InputError(
            "an item of the work cannot be pickled for another process: "
            f"{error.__cause__ or error}; "
            "define its class at the top level of a module, or use one process"
        ) from error


def _ignore_replaced_workers() -> None:
    """Ignore loky's warning that a worker ended, from here on.

    Loky replaces a worker that has grown by 300 MB, as with TVM's import. Where warnings are
    errors, its thread would die of this one, and all results would be waited for without end.
    """
    warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)


def _one(work: Callable[[T], R], index: int, item: T) -> tuple[int, R | FailedItem]:
    try:
        return index, work(item)
    except SerenityError as error:
        return index, FailedItem(error.with_traceback(None))


def _raised(outcomes: Iterator[tuple[int, R | FailedItem]]) -> Iterator[tuple[int, R]]:
    for index, result in outcomes:
        if isinstance(result, FailedItem):
            raise result.error
        yield index, result


@contextmanager
def _client(address: str) -> Iterator[Any]:
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingPartError("--dask needs Dask: pip install 'tvm-serenity[dask]'") from error
    try:
        client = Client(address, timeout=CONNECT_TIMEOUT_S, set_as_default=True)
    except (OSError, ValueError) as error:
        raise InputError(
            f"the Dask scheduler {address!r} did not answer within {CONNECT_TIMEOUT_S} s; check "
            "the address and that it runs"
        ) from error
    try:
        yield client
    finally:
        client.close()
