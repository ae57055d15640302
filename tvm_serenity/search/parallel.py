"""Work that is the same everywhere, done here, in processes, or on a Dask cluster (by joblib)."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pickle import PicklingError
from typing import Any, TypeVar

from tvm_serenity.errors import InputError, MissingPartError, SerenityError

CONNECT_TIMEOUT_S = 5
MANY_AT_ONCE, CHUNKS_A_JOB = 64, 8
"""Items of milliseconds are sent so many at once, in about so many parts for each process."""

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class FailedItem:
    """The error of one item, without its traceback: its message says it all."""

    error: SerenityError


@contextmanager
def results(
    work: Callable[[T], R], items: Sequence[T], jobs: int = 1, dask: str | None = None
) -> Iterator[Iterator[tuple[int, R]]]:
    """Yield an iterator over the indices of ``items`` and what ``work`` makes of them.

    The same as :func:`results_or_failures`, but the first :class:`SerenityError` is raised.
    """
    with results_or_failures(work, items, jobs, dask) as found:
        yield _raised(found)


@contextmanager
def results_or_failures(
    work: Callable[[T], R], items: Sequence[T], jobs: int = 1, dask: str | None = None
) -> Iterator[Iterator[tuple[int, R | FailedItem]]]:
    """Yield an iterator over the indices of ``items`` and what ``work`` makes of them.

    Results come as they are finished; an item whose work raises a :class:`SerenityError` is a
    :class:`FailedItem`. ``jobs`` processes of this machine work (1: this one), or those of the Dask
    scheduler at address ``dask``. Raises :class:`InputError` where that cannot be reached or an
    item cannot be sent, and :class:`MissingPartError` without Dask.
    """
    if jobs < 1:
        raise InputError(f"jobs={jobs}: it takes one or more")
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
    """Return what ``work`` makes of each of ``items``, which take milliseconds, in their order.

    Many are sent at once, and this process is one of the ``jobs``: it takes the last that no other
    has begun, and what cannot be sent. All else as of :func:`results_or_failures`.
    """
    at_once = min(MANY_AT_ONCE, -(-len(items) // (CHUNKS_A_JOB * max(1, jobs))))
    chunks = [range(i, min(i + at_once, len(items))) for i in range(0, len(items), at_once or 1)]
    given = [(i, [items[index] for index in chunk]) for i, chunk in enumerate(chunks)]
    if dask is None and min(jobs, len(chunks)) > 1:
        found = _here_as_well(partial(_each, work), given, min(jobs, len(chunks)) - 1)
    else:
        with results_or_failures(partial(_each, work), given, jobs, dask) as made:
            found = dict(one for _, one in made if not isinstance(one, FailedItem))
    return [one for i in range(len(chunks)) for one in found[i]]


def _each(
    work: Callable[[T], R], chunk: tuple[int, Sequence[T]]
) -> tuple[int, list[R | FailedItem]]:
    number, items = chunk
    return number, [_one(work, 0, item)[1] for item in items]


def _here_as_well(
    work: Callable[[T], tuple[int, R]], items: Sequence[T], others: int
) -> dict[int, R]:
    """What ``work`` makes of all ``items``, by number, here and in so many processes."""
    from joblib.executor import get_memmapping_executor

    workers = get_memmapping_executor(others)  # loky's own one breaks joblib.Parallel after it
    begun = [workers.submit(work, item) for item in items]
    try:
        found = [work(items[i]) for i in reversed(range(len(items))) if begun[i].cancel()]
        for item, future in zip(items, begun, strict=True):
            try:
                found += [] if future.cancelled() else [future.result()]
            except PicklingError:
                found.append(work(item))
        return dict(found)
    finally:
        for future in begun:
            future.cancel()


def _elsewhere(
    work: Callable[[T], R], items: Sequence[T], **options: Any
) -> Iterator[tuple[int, R | FailedItem]]:
    """Work by joblib, in processes or where its backend is."""
    import joblib

    parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1, **options)
    try:
        yield from parallel(joblib.delayed(_one)(work, i, item) for i, item in enumerate(items))
    except PicklingError as error:
        raise InputError(
            "an item cannot be sent to another process (define its class at the top of a "
            f"module, or use one process): {error.__cause__ or error}"
        ) from error


def _one(work: Callable[[T], R], index: int, item: T) -> tuple[int, R | FailedItem]:
    try:
        return index, work(item)
    except SerenityError as error:
        return index, FailedItem(error.with_traceback(None))


def _raised(found: Iterator[tuple[int, R | FailedItem]]) -> Iterator[tuple[int, R]]:
    for index, result in found:
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
        raise InputError(f"Dask scheduler {address!r} cannot be reached") from error
    try:
        yield client
    finally:
        client.close()
