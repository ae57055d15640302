"""Random Relax graphs, always the same ones: every form of each kernel computes the same.

``benchmarks/conformance.py --part relax`` draws more. Each kind of mistake that was made once is
made again here, and must be found.
"""

import ctypes
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

tvm = pytest.importorskip("tvm")

from tests.conformance.relax_forms import first_difference, poisoned, run_kernel  # noqa: E402
from tests.conformance.relax_graphs import graph  # noqa: E402
from tests.conformance.relax_runs import NoReferenceError, differences  # noqa: E402
from tvm_serenity.kernels import lean  # noqa: E402
from tvm_serenity.kernels.row_loops import RowValues  # noqa: E402

SMALL = settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@SMALL
@given(st.randoms(use_true_random=False))
def test_a_random_graph_computes_the_same(random: Random) -> None:
    """Drawn by hypothesis, which shrinks what fails."""
    module = graph(random, most=5)
    assert differences(module, 0) == []


@pytest.mark.parametrize("seed", [3, 17, 21])
def test_a_graph_of_a_seed_computes_the_same(seed: int) -> None:
    assert differences(graph(Random(seed)), seed) == []


def first_seed(seeds: range) -> int | None:
    """The first seed at which a difference is found."""
    for seed in seeds:
        try:
            if differences(graph(Random(seed)), seed, arena=False):
                return seed
        except NoReferenceError:
            continue
    return None


def test_a_consumer_moved_without_proof_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What padded a sum was computed for the sum's elements alone: the border was never written."""
    assert first_seed(range(9, 12)) is None
    monkeypatch.setattr(lean, "runs_each_once", lambda *_: True)
    lean._form.cache_clear()  # correct forms of the same kernels
    assert first_seed(range(12)) is not None


def test_a_row_that_reads_its_neighbour_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = RowValues.of

    def shifted(expr: object, row: object, height: int) -> RowValues:
        rows = right(expr, row, height).rows
        return RowValues((*rows[:-1], max(rows[-1] - 1, 0)))

    monkeypatch.setattr(RowValues, "of", staticmethod(shifted))
    assert first_seed(range(20)) is not None


def test_what_is_never_written_shows() -> None:
    """Results and scratch are poisoned before a kernel runs, with two patterns."""
    written = run_kernel(lambda *_: None, [], [((2, 2), "float32"), ((), "int8")], 0xA5)
    assert [array.tobytes() for array in written] == [b"\xa5" * 16, b"\xa5"]
    library = ctypes.CDLL(None)
    library.malloc.restype = ctypes.c_void_p
    with poisoned(0x5A):
        at = library.malloc(100_000)
        assert ctypes.string_at(at, 100_000) == bytes([0x5A ^ 0xFF]) * 100_000


def test_arrays_are_compared_bit_by_bit() -> None:
    one = np.asarray([0.0, np.nan], np.float32)
    assert first_difference([one], [one.copy()]) == ""
    assert "result 0(0,): -0.0 instead of 0.0" in first_difference([-one], [one])
    assert first_difference([one], [one.astype("float64")]) != ""
    assert first_difference([one], []) == "1 results instead of 0"
    assert first_difference([np.zeros((), np.int8)], [np.ones((), np.int8)]) != ""
