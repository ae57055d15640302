"""The papers' figures and tables: each file, the values that are equal, what the command prints."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cases import exhaustive
from tests.cli.run import answer, serenity
from tvm_serenity.graph.text import parse
from tvm_serenity.memory import peak_bytes
from tvm_serenity.papers import KINDS, PAPERS, Budget, PaperCell, exhibit
from tvm_serenity.papers.networks import linear_arena_bytes

FOLDER = Path(__file__).parents[2] / "tvm_serenity" / "papers"
EXHIBITS = [(p.name, kind, n) for p in PAPERS.values() for kind in KINDS for n in p.numbers(kind)]
SLOW = [
    ("gleinig", "figure", 2),
    ("gleinig", "figure", 4),
    ("gleinig", "figure", 5),
    ("gleinig", "figure", 6),
    ("gleinig", "figure", 7),
    ("gleinig", "figure", 8),
    ("serenity", "figure", 10),
    ("serenity", "figure", 11),
    ("serenity", "figure", 13),
]


def cells(name: str, kind: str, number: int) -> Sequence[PaperCell]:
    found: Sequence[PaperCell] = exhibit(name, kind, number).compute(Budget())  # type: ignore[arg-type]
    return found


def test_each_exhibit_is_a_file() -> None:
    files = {p.stem for p in FOLDER.glob("*.py") if "_figure_" in p.stem or "_table_" in p.stem}
    assert files == {f"{name.replace('-', '_')}_{kind}_{n}" for name, kind, n in EXHIBITS}
    for name, kind, number in EXHIBITS:
        shown = exhibit(name, kind, number)
        assert (shown.kind, shown.number) == (kind, number)


@pytest.mark.parametrize(
    ("name", "kind", "number", "equal"),
    [
        ("liberis-lane", "figure", 1, 3),
        ("liberis-lane", "figure", 2, 7),
        ("liberis-lane", "figure", 3, 7),
        ("liberis-lane", "table", 1, 5),
        ("serenity", "figure", 12, 2),
        ("gleinig", "figure", 3, 6),
    ],
)
def test_values_that_are_the_papers(name: str, kind: str, number: int, equal: int) -> None:
    if name != "gleinig":
        pytest.importorskip("tvm")
    near = [c for c in cells(name, kind, number) if _near(c)]
    assert len(near) == equal, near


def _near(cell: PaperCell) -> bool:
    return cell.paper == cell.ours or abs(cell.difference or 1) < 0.006


def test_differences_are_explained() -> None:
    pytest.importorskip("tvm")
    for name, kind, number in EXHIBITS:
        if (name, kind, number) in SLOW:
            continue
        for cell in cells(name, kind, number):
            stated = cell.paper is not None
            assert _near(cell) or not stated or cell.note, cell


@exhaustive
@pytest.mark.parametrize(("name", "kind", "number"), SLOW)
def test_slow_exhibits(name: str, kind: str, number: int) -> None:
    pytest.importorskip("tvm")
    if number in (7, 8):
        pytest.importorskip("scipy")
    found = cells(name, kind, number)
    assert found
    assert all(c.ours is None or not isinstance(c.ours, float) or c.ours >= 0 for c in found)


def test_the_linear_allocator_leaves_gaps_where_tflites_does() -> None:
    """The third tensor is larger than the gap that the first leaves, so it goes on top."""
    graph = parse("input x[10]i8\na: x -> y[20]i8\nb: y -> z[30]i8\nc: y z -> w[10]i8\noutput w\n")
    assert peak_bytes(graph) == 60
    assert linear_arena_bytes(graph) == 60
    assert (
        linear_arena_bytes(parse("input x[10]i8\na: x -> y[20]i8\nb: y -> z[30]i8\noutput z\n"))
        == 60
    )


def test_the_smallest_gap_is_taken() -> None:
    text = """input x[1]i8
a: x -> p[40]i8 q[5]i8 r[20]i8 s[5]i8
b: p r -> t[1]i8
c: q s t -> u[15]i8
d: u q s -> v[40]i8
output v
"""
    graph = parse(text)  # u takes the gap that r leaves, v the larger one that p leaves
    assert linear_arena_bytes(graph) == 71


def test_the_command_prints_both_values() -> None:
    pytest.importorskip("tvm")
    found = answer("paper", "liberis-lane", "--figure", "1")
    assert found["exhibit"] == "figure 1"
    pairs = [(c["paper"], c["ours"]) for c in found["cells"]]
    assert pairs == [(5216, 5216), (4960, 4960), (4960, 4960)]
    text = serenity("paper", "liberis-lane", "--figure", "1").stdout
    assert "5,216 bytes" in text
    assert "+0.0%" in text
    assert "table 1" in serenity("paper", "serenity").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nobody",), "no such paper; choose one of serenity"),
        (
            ("serenity", "--figure", "9"),
            "figure 9 is not computed; the figures of this paper are: 10, 11, 12, 13",
        ),
        (("gleinig", "--table", "1"), "tables of this paper are: none"),
        (("serenity", "--table", "1", "--figure", "10"), "--table"),
    ],
)
def test_what_is_not_there_is_refused(words: tuple[str, ...], message: str) -> None:
    done = serenity("paper", *words)
    assert done.returncode == 2
    assert message in done.stderr
