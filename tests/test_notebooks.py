"""What notebooks show of graphs, schedules and plans, and their one-line forms."""

import xml.etree.ElementTree as ElementTree

from tvm_serenity.graph.text import parse
from tvm_serenity.plan import Buffer, PlanOptions, plan
from tvm_serenity.schedule import schedule

TEXT = """graph a<b
input x[9]i8
a conv: x -> y[2,2]i8
b conv: y -> z[4]i8
output z
"""
BUFFERS = [Buffer("a&b", lower=0, upper=3, size_bytes=64), Buffer("c", 2, 5, 96)]


def parsed(html: str) -> ElementTree.Element:
    """The HTML as a tree: it is well formed, and all text is escaped."""
    return ElementTree.fromstring(f"<div>{html}</div>")


def cells(html: str) -> dict[str, str]:
    rows = parsed(html).iter("tr")
    return {row[0].text or "": row[1].text or "" for row in rows}


def test_a_graph_is_a_line_and_a_table() -> None:
    graph = parse(TEXT)
    assert repr(graph) == "Graph('a<b', 2 ops, 3 tensors)"
    shown = cells(graph._repr_html_())
    assert shown["operators"] == "2: 2 conv"
    assert shown["inputs"] == "x [9] int8 9 bytes"
    assert shown["outputs"] == "z [4] int8 4 bytes"


def test_a_schedule_is_a_line_and_a_table() -> None:
    best = schedule(parse(TEXT))
    assert repr(best).startswith("Schedule(2 ops, peak 13 bytes, bound 13, optimal, 'auto', ")
    shown = cells(best._repr_html_())
    assert (shown["peak"], shown["lower bound"]) == ("13 bytes", "13 bytes")
    assert shown["order"] == "0, 1"


def test_a_plan_is_a_line_a_table_and_a_drawing() -> None:
    placed = plan(BUFFERS)
    assert repr(placed).startswith("Plan(2 buffers in 160 bytes, bound 160 (optimal, ")
    html = placed._repr_html_()
    assert cells(html)["arena"] == "160 bytes"
    rectangles = list(parsed(html).iter("{http://www.w3.org/2000/svg}rect"))
    titles = {r[0].text for r in rectangles}
    assert {t.split(" at ")[0] for t in titles if t} == {"a&b: 64 bytes", "c: 96 bytes"}
    assert sum(float(r.attrib["height"]) for r in rectangles) == 240.0


def test_a_plan_without_a_placement_has_no_drawing() -> None:
    none = plan(BUFFERS, options=PlanOptions(capacity_bytes=100))
    assert cells(none._repr_html_())["arena"] == "not placed"
    assert "<svg" not in none._repr_html_()


def test_a_large_graph_stays_short() -> None:
    lines = [
        "input x[1]i8",
        *(f"o{i} k{i}: {'x' if not i else f't{i - 1}'} -> t{i}[1]i8" for i in range(500)),
    ]
    graph = parse("\n".join([*lines, "output t499", ""]))
    assert len(repr(graph)) < 60
    assert len(graph._repr_html_()) < 2_000
    assert len(repr(schedule(graph))) < 120
