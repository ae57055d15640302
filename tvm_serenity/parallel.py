"""Work that is the same everywhere, done here, in processes, or on a Dask cluster (by joblib)."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pickle import PicklingError
from typing import Any, TypeVar

from tvm_serenity.errors import InputError, MissingPartError, SerenityError

CONNECT_TIMEOUT_S = 5

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
