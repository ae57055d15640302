"""Limits, progress, Ctrl-C, hostile shapes: always the best order so far, or a clear error."""

import itertools
import signal
from types import FrameType

import pytest

from tests.schedule.test_exact_cases import is_valid, random_problem
from tvm_serenity.errors import InputError
from tvm_serenity.schedule.exact import Interrupted, exact
from tvm_serenity.schedule.problem import Problem, peak_of
from tvm_serenity.schedule.result import Options, Progress
from tvm_serenity.search.outcome import Outcome


def network(inputs: list[list[int]], sizes: list[int] | None = None) -> Problem:
    """Each op makes one tensor; what nobody reads is an output."""
    consumers: list[list[int]] = [[] for _ in inputs]
    for op, reads in enumerate(inputs):
        for t in reads:
            consumers[t].append(op)
    count = len(inputs)
    return Problem(
        sizes=tuple(sizes or [1] * count),
        producer=tuple(range(count)),
        consumers=tuple(map(tuple, consumers)),
        kept=tuple(not c for c in consumers),
        workspace=(0,) * count,
        in_place=((),) * count,
        predecessors=tuple(map(tuple, inputs)),
        ops=tuple(range(count)),
    )


def hard() -> Problem:
    """Far more states than any limit of these tests allows."""
    nx = pytest.importorskip("networkx")
    graph = nx.connected_watts_strogatz_graph(220, 4, 0.75, tries=200, seed=1)
    return network([sorted(u for u in graph[v] if u < v) for v in range(220)])


@pytest.mark.parametrize("native", [True, False])
def test_a_time_limit_ends_the_search_with_order_and_bound(native: bool) -> None:
    problem = hard()
    found = exact(problem, Options(time_limit_s=0.5, rules={"native": native}))
    assert found.outcome is Outcome.TIMEOUT
    assert found.statistics["limit"] == "time"
    assert is_valid(problem, found.order)
    assert peak_of(problem, found.order) == found.peak_bytes > found.lower_bound_bytes > 0
    assert found.seconds < 5


@pytest.mark.parametrize("native", [True, False])
def test_a_memory_limit_ends_the_search(native: bool) -> None:
    rules = {"native": native, "segments": False, "beam": False, "windows": False}
    found = exact(hard(), Options(memory_limit_bytes=100_000, rules=rules))
    assert found.outcome is Outcome.TIMEOUT
    assert found.statistics["limit"] == "memory"


@pytest.mark.parametrize("native", [True, False])
def test_ctrl_c_carries_the_best_result(native: bool) -> None:
    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    problem = hard()
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(Interrupted) as caught:
            exact(problem, Options(rules={"native": native}))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    found = caught.value.solution
    assert found.outcome is Outcome.TIMEOUT
    assert is_valid(problem, found.order)
    assert peak_of(problem, found.order) == found.peak_bytes


def test_progress_is_reported_and_its_errors_end_the_search() -> None:
    reports: list[Progress] = []
    exact(hard(), Options(time_limit_s=1.0, progress=reports.append))
    assert reports
    for earlier, later in itertools.pairwise(reports):
        assert later.best_bytes <= earlier.best_bytes
        assert later.lower_bound_bytes >= earlier.lower_bound_bytes
        assert later.seconds >= earlier.seconds

    def stop(progress: Progress) -> None:
        raise InputError("enough")

    with pytest.raises(InputError, match="enough"):
        exact(hard(), Options(time_limit_s=5.0, progress=stop))


def test_the_same_input_gives_the_same_output() -> None:
    for seed in range(20):
        problem = random_problem(seed, least=20, most=40)
        first, second = exact(problem), exact(problem)
        assert (first.order, first.states) == (second.order, second.states)
        assert first.statistics == second.statistics


def test_no_op_and_one_op() -> None:
    assert exact(network([])).outcome is Outcome.OPTIMAL
    assert exact(network([])).order == ()
    one = exact(network([[]], [7]))
    assert (one.order, one.peak_bytes, one.outcome) == ((0,), 7, Outcome.OPTIMAL)


def test_sizes_near_the_limit_do_not_overflow() -> None:
    sizes = [2**63 - 1 - 10, 2, 2, 2, 2, 2]
    problem = network([[], [0], [0], [1, 2], [0], [3, 4]], sizes)
    for native in (True, False):
        found = exact(problem, Options(rules={"native": native}))
        assert found.peak_bytes == found.lower_bound_bytes == peak_of(problem, found.order)


@pytest.mark.parametrize("step", [1, 2])
def test_a_deep_chain(step: int) -> None:
    inputs = [sorted({max(0, op - 1), max(0, op - step)}) if op else [] for op in range(100_000)]
    found = exact(network(inputs))
    assert found.outcome is Outcome.OPTIMAL
    assert found.peak_bytes == step + 1


def test_a_wide_graph() -> None:
    count = 20_000
    found = exact(network([*([] for _ in range(count)), list(range(count))]))
    assert found.outcome is Outcome.OPTIMAL
    assert found.peak_bytes == count + 1


def test_equal_cells_are_solved_once() -> None:
    inputs: list[list[int]] = [[]]
    for _ in range(50):
        base = len(inputs)
        inputs += [[base - 1], [base - 1], [base], [base + 1], [base], [base + 1]]
        inputs += [[base + 2, base + 3, base + 4, base + 5]]
    problem = network(inputs, [1, *[8, 8, 3, 3, 3, 3, 1] * 50])
    found = exact(problem, Options(rules={"root-cuts": False}))
    assert found.outcome is Outcome.OPTIMAL
    assert found.statistics["stretches"] == 50
    assert found.states < 50
