"""Where the shared models lie, for the tests that read them; what all tests run under."""

import gc
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests import costs
from tests.cases import EXHAUSTIVE, SANITIZED
from tvm_serenity.errors import MissingPartError
from tvm_serenity.without_torch import without_torch

# A job in the background of a shell ignores Ctrl-C, and so would the commands that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
CACHE = Path(__file__).resolve().parents[1] / "build" / "cache"
"""Where workers and runs share objects, images and runs, unless the variable names another."""
os.environ.setdefault("SERENITY_CACHE", str(CACHE))

# TVM imports PyTorch where it can: three times as slow. Without TVM, tests are skipped by name.
with without_torch(), suppress(ImportError):
    import tvm  # noqa: F401

# Imported modules are never garbage; looking for garbage among them takes 2 % of the time.
gc.set_threshold(50_000, 20, 20)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real models and traces; tests that need it are skipped where it is absent."""
    if not SHARED.is_dir():
        pytest.skip(f"the shared data is not at {SHARED}")
    return SHARED


@pytest.fixture(scope="session", autouse=True)
def _builds_are_made() -> Iterator[None]:
    """Take no project from an earlier run: tests plant faults, which no name of a build says."""
    with pytest.MonkeyPatch.context() as patch:
        with without_torch(), suppress(MissingPartError):  # without TVM nothing is built
            patch.setattr("tvm_serenity.firmware.kept.entries", lambda: None)
        yield


@pytest.fixture(autouse=True)
def _no_shared_forms() -> None:
    """Share no lean kernels with earlier tests: a test may plant a fault in what makes them."""
    made_lean = sys.modules.get("tvm_serenity.kernels.lean")
    if made_lean is not None:
        made_lean._form.cache_clear()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Forget what the last run cost; only the process that starts the workers does."""
    if not hasattr(session.config, "workerinput"):
        shutil.rmtree(costs.MEASURED, ignore_errors=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of this tier, dearest files first: then all workers end at the same time.

    A number in ``SERENITY_RANDOM_ORDER`` is the seed of another order, of files and inside of them.
    """
    if not EXHAUSTIVE:
        kept: list[pytest.Item] = []
        left_out: list[pytest.Item] = []
        for item in items:
            (left_out if item.get_closest_marker("exhaustive") else kept).append(item)
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept
    seed = os.environ.get("SERENITY_RANDOM_ORDER")
    if seed is not None:
        Random(seed).shuffle(items)
        first: dict[str, int] = {}
        items.sort(key=lambda item: first.setdefault(item.nodeid.partition("::")[0], len(first)))
        return
    known = costs.file_costs()
    items.sort(key=lambda item: -known.get(item.nodeid.partition("::")[0], 0.0))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    """Write down what a test costs, fixtures included that it is the first to ask for."""
    own, children = costs.cpu_seconds()
    began = time.monotonic()
    result = yield
    own_now, children_now = costs.cpu_seconds()
    passed = time.monotonic() - began
    costs.record(costs.Cost(item.nodeid, own_now - own, children_now - children, passed))
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[Any]:
    """Fail a test that takes more CPU seconds than a test may, unless it is listed as slow."""
    own, children = costs.cpu_seconds()
    result = yield
    own_now, children_now = costs.cpu_seconds()
    excess = costs.excess(costs.Cost(item.nodeid, own_now - own, children_now - children, 0.0))
    if excess is not None and not (EXHAUSTIVE or SANITIZED):
        pytest.fail(excess, pytrace=False)
    return result
