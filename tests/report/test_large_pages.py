"""Pages of many operators: what the time limit or the browser leaves out is said."""

from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.cli.run import answer
from tests.random_graphs import windowed_graph
from tests.report.browser import open_page
from tvm_serenity.graph.text import dump
from tvm_serenity.report.shapes import MOST_STEPS


@pytest.mark.parametrize("limit_s", [0, 0.3, 10])
def test_two_thousand_operators(limit_s: float, tmp_path: Path, browser: Any) -> None:
    lines = ["graph big", "input t0[4096]i8", "input t1[4096]i8"]
    for i in range(2, 2002):
        read = f"t{i - 2} t{i - 1}" if i % 7 == 0 else f"t{i - 2}"
        lines.append(f"op{i} conv: {read} -> t{i}[{512 << i % 4}]i8")
    source, page = tmp_path / "big.txt", tmp_path / "big.html"
    source.write_text("\n".join([*lines, "output t2000 t2001", ""]))
    data = answer("report", source, "-o", page, "--time-limit", limit_s)
    open_page(browser, page)
    assert browser.get_log("browser") == []
    missing = sum(row["total_bytes"] is None for row in data["traffic"])
    assert limit_s > 0 or missing == len(data["traffic"])
    note = browser.find_element("id", "traffic-note").text
    assert (f"before {missing} of {len(data['traffic'])}" in note) == (missing > 0)
    nodes = browser.execute_script(
        "return PLOTS.get('graph-chart').chart.layers[1].points.map((p) => p.x)"
    )
    assert nodes == [op["layer"] for op in data["graph"]["ops"]]


def test_of_a_long_order_the_page_shows_what_is_around_the_peak(
    tmp_path: Path, browser: Any
) -> None:
    graph = windowed_graph(Random(5), 6_200, 12)
    source, page = tmp_path / "long.txt", tmp_path / "long.html"
    source.write_text(dump(graph))
    data = answer("report", source, "-o", page, "--time-limit", 3)
    inspected = answer("inspect", source, "--method", "given")
    given, best = data["orders"]["given"], data["orders"]["best"]
    shown = slice(given["first_step"], given["first_step"] + len(given["order"]))
    assert len(given["order"]) == MOST_STEPS < given["steps"] == 6_200
    assert given["peak_step"] in range(shown.start, shown.stop)
    assert given["peak_step"] == inspected["peak_step"]
    assert given["order"] == [s["op"] for s in inspected["steps"][shown]]
    assert given["live_bytes"] == [s["live_bytes"] for s in inspected["steps"][shown]]
    for step in range(shown.start, shown.stop, 97):
        live = {r["name"] for r in given["ranges"] if r["start"] <= step < r["stop"]}
        assert live == set(inspected["steps"][step]["live"])
    drawn = [op["op"] for op in data["graph"]["ops"]]
    assert drawn == sorted({*given["order"], *best["order"]})
    assert all(op["name"] == graph.ops[op["op"]].name for op in data["graph"]["ops"])
    assert data["choices"][0]["before"]["ops"] == 6_200
    open_page(browser, page)
    assert browser.get_log("browser") == []
    first, last = best["first_step"], best["first_step"] + len(best["order"]) - 1
    notes = [e.text for e in browser.find_elements("css selector", ".excerpt")]
    assert len(notes) == 3
    assert all(f"{first:,} to {last:,} of the best order" in note for note in notes)
    for which, order in (("best", best), ("given", given)):
        browser.execute_script("document.getElementById('which').value = arguments[0];", which)
        browser.execute_script("chooseOrder(arguments[0])", which)
        now = browser.find_element("id", "now").text
        op = graph.ops[order["order"][order["peak_step"] - order["first_step"]]]
        assert f"Step {order['peak_step']} of 6200: {op.name}" in now
        assert f"{order['peak_bytes']:,} bytes live, the peak" in now
    label = browser.execute_script("return profileText('given', 7)[0]")
    assert label.startswith(f"step {given['first_step'] + 7}: ")
