"""Work that is the same everywhere, done here, in processes, or on a Dask cluster (by joblib)."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pickle import PicklingError
from typing import Any, TypeVar

from tvm_serenity.errors import InputError, MissingPartError, SerenityError

CONNECT_TIMEOUT_S = 5

T = TypeVar("T")
R = TypeVar("R")


@contextmanager
def results(
    work: Callable[[T], R], items: Sequence[T], jobs: int = 1, dask: str | None = None
) -> Iterator[Iterator[tuple[int, R]]]:
    """Yield an iterator over the indices of ``items`` and what ``work`` makes of them.

    Results come as they are finished. ``jobs`` processes of this machine work (1: this one), or
    those of the Dask scheduler at address ``dask``. Raises :class:`InputError` where that cannot
    be reached or an item cannot be sent, :class:`MissingPartError` without Dask, and the first
    error of ``work``.
    """
    import joblib

    if jobs < 1:
        raise InputError(f"jobs={jobs}: it takes one or more")

    def run() -> Iterator[tuple[int, R]]:
        parallel = joblib.Parallel(
            n_jobs=-1 if dask else min(jobs, max(len(items), 1)),
            return_as="generator_unordered",
            batch_size=1,
            pre_dispatch="all" if dask else "2*n_jobs",
        )
        tasks = (joblib.delayed(_one)(work, i, item) for i, item in enumerate(items))
        try:
            for index, found in parallel(tasks):
                if isinstance(found, SerenityError):
                    raise found
                yield index, found
        except PicklingError as error:
            raise InputError(
                "an item cannot be sent to another process (define its class at the top of a "
                f"module, or use one process): {error.__cause__ or error}"
            ) from error

    if dask is None:
        yield run()
        return
    with _client(dask), joblib.parallel_config(backend="dask"):
        yield run()


def _one(work: Callable[[T], R], index: int, item: T) -> tuple[int, R | SerenityError]:
    try:
        return index, work(item)
    except SerenityError as error:  # its traceback stays in the worker: the message says it all
        return index, error


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
