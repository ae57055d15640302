"""The tiers, and the limit of what a test may cost."""

import ast
from pathlib import Path

import pytest

from tests import cases, costs
from tests.cases import only_exhaustive, sampled, scaled, some
from tests.costs import Cost, excess, reason, reasons


def fast(parameters: list[object]) -> list[object]:
    """Values that are not marked as exhaustive."""
    return [p for p in parameters if cases.exhaustive.mark not in _marks(p)]


def _marks(parameter: object) -> list[object]:
    return [mark.mark for mark in getattr(parameter, "marks", ())]


@pytest.mark.parametrize(("count", "kept"), [(1, [0]), (2, [0, 9]), (4, [0, 3, 6, 9])])
def test_a_sample_is_spread_from_the_first_to_the_last(count: int, kept: list[int]) -> None:
    assert fast(sampled(range(10), count)) == kept
    assert len(sampled(range(10), count)) == 10


def test_a_sample_of_few_is_all_of_them() -> None:
    assert fast(sampled("ab", 5)) == ["a", "b"]


def test_tuples_are_several_parameters_or_one() -> None:
    pairs = [(1, 2), (3, 4)]
    assert [getattr(p, "values", p) for p in sampled(pairs, 1)] == [(1, 2), (3, 4)]
    assert [p.values for p in sampled(pairs, 1, tuples=True)] == [((1, 2),), ((3, 4),)]


def test_marks_are_kept() -> None:
    given = pytest.param(1, marks=pytest.mark.skip)
    assert len(_marks(only_exhaustive(given))) == 2


def test_each_tier_takes_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "EXHAUSTIVE", False)
    monkeypatch.setattr(cases, "SANITIZED", False)
    assert some(range(10), 3) == [0, 3, 6]
    assert (scaled(1, 2), len(cases.cases(8, most=80))) == (1, 8)
    monkeypatch.setattr(cases, "SANITIZED", True)
    assert cases.cases(8, 5) == range(5, 7)
    monkeypatch.setattr(cases, "SANITIZED", False)
    monkeypatch.setattr(cases, "EXHAUSTIVE", True)
    assert some(range(10), 3) == list(range(10))
    assert (scaled(1, 2), len(cases.cases(8, most=80))) == (2, 80)


def test_what_costs_too_much_and_is_not_listed_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"tests/a.py::test_slow": "it must", "tests/a.py::test_one[2]": "it must"}
    monkeypatch.setattr(costs, "reasons", lambda: known)
    monkeypatch.setattr(costs, "slowness_now", costs.machine_slowness)
    limit = costs.LIMIT_S * costs.machine_slowness()
    assert excess(Cost("tests/a.py::test_quick", limit / 2, limit / 3, 0)) is None
    for name in ("tests/a.py::test_other", "tests/a.py::test_one[1]"):
        said = excess(Cost(name, limit / 2, limit, 0))
        assert said is not None
        assert name in said
        assert "slow_tests.toml" in said
    for name in ("tests/a.py::test_slow", "tests/a.py::test_slow[1]", "tests/a.py::test_one[2]"):
        assert excess(Cost(name, limit, limit, 0)) is None
    assert reason("tests/a.py::test_slow[x]", known) == "it must"
    monkeypatch.setattr(costs, "slowness_now", lambda: 3 * costs.machine_slowness())
    assert excess(Cost("tests/a.py::test_other", 2 * limit, 0, 0)) is None  # busy by now
    assert excess(Cost("tests/a.py::test_other", 4 * limit, 0, 0)) is not None


def test_listed_tests_exist_and_have_a_reason() -> None:
    root = Path(costs.HERE).parent
    for name, why in reasons().items():
        file, _, test = name.partition("[")[0].partition("::")
        tree = ast.parse((root / file).read_text(encoding="utf-8"))
        functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert test.rpartition("::")[2] in functions, name
        assert len(why) > 15, name


def test_files_whose_costs_are_known_exist() -> None:
    root = Path(costs.HERE).parent
    assert [file for file in costs.file_costs() if not (root / file).is_file()] == []
