"""Retained rows over time in a report: the numbers of other commands, and their charts."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.run import answer, serenity
from tests.conformance.builder import Net
from tests.conformance.quantise import integer_file
from tests.report.browser import open_page
from tvm_serenity.report import retained

STEP = 2


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("tvm")
    net = Net(7)
    x = net.input(1, 24, 6, 2)
    for channels in (4, 6, 4):
        x = net.conv(x, channels, 3)
    net.output(net.dense(net.mean(x, [1, 2]), 3))
    path = tmp_path_factory.mktemp("retained") / "net.tflite"
    path.write_bytes(integer_file(net, dict.fromkeys(range(len(net.values)), (-3.0, 3.0))))
    return path


@pytest.fixture(scope="module")
def page(model: Path) -> tuple[Path, dict[str, Any]]:
    path = model.with_suffix(".html")
    return path, answer("report", model, "--sliding", STEP, "-o", path)


def test_numbers_are_those_of_rows(model: Path, page: tuple[Path, dict[str, Any]]) -> None:
    bands, moving = page[1]["retained"]
    assert page[1]["command"].endswith(f"--sliding {STEP}")
    (said,) = (c for c in page[1]["explain"]["claims"] if c.get("name") == "rows")
    assert (bands["name"], bands["peak_bytes"]) == ("rows", said["peak_bytes"])
    assert bands["kept_bytes"] == 0
    step = answer("rows", model, "--sliding", STEP)
    assert (moving["name"], moving["calls"]) == ("sliding", step["ops"])
    for key in ("peak_bytes", "kept_bytes"):
        assert moving[key] == step[key]
    kept = {f["name"]: f["kept_bytes"] for f in moving["features"]}
    assert sum(kept.values()) == step["kept_bytes"] > 0
    assert {f["name"]: f["kept_bytes"] for f in step["features"]}.items() <= kept.items()
    for one in (bands, moving):
        live = np.array([f["live_bytes"] for f in one["features"]])
        assert live.shape[1] == one["calls"]
        assert live.sum(axis=0).max() == one["peak_bytes"]
        assert live.max(axis=1).tolist() == [f["most_bytes"] for f in one["features"]]
        assert all(a["most_bytes"] >= b["most_bytes"] for a, b in pairwise(one["features"]))
    for feature in moving["features"]:  # what is retained is there all the time
        assert min(feature["live_bytes"]) >= feature["kept_bytes"]


def test_many_features_and_calls_are_summed_up(
    model: Path, page: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retained, "MOST_FEATURES", 2)
    monkeypatch.setattr(retained, "MOST_PARTS", 10)
    (few,), (all_of_it, _) = answer("report", model)["retained"], page[1]["retained"]
    assert few["features"][2]["name"] == retained.OTHERS
    assert few["peak_bytes"] == all_of_it["peak_bytes"]
    for some, every in zip(few["features"][:2], all_of_it["features"], strict=False):
        assert len(some["live_bytes"]) <= 10
        assert max(some["live_bytes"]) == some["most_bytes"] == every["most_bytes"]


def test_the_page_draws_them(page: tuple[Path, dict[str, Any]], browser: Any) -> None:
    path, data = page
    open_page(browser, path)
    for i, one in enumerate(data["retained"]):
        tops = browser.execute_script(
            "return PLOTS.get(arguments[0]).chart.layers.map((l) => Math.max(...l.y))",
            f"retained-{i}-chart",
        )
        live = np.array([f["live_bytes"] for f in one["features"]])
        assert tops == np.cumsum(live, axis=0).max(axis=1).tolist()
    assert browser.get_log("browser") == []


def test_what_does_not_move_is_said(tmp_path: Path, browser: Any) -> None:
    source, page = tmp_path / "small.txt", tmp_path / "small.html"
    source.write_text("input x[64]i8\na conv: x -> y[64]i8\noutput y\n")
    assert answer("report", source, "-o", page)["retained"] == []
    open_page(browser, page)
    assert browser.execute_script("return document.querySelectorAll('.retained').length") == 0
    assert browser.get_log("browser") == []
    refused = serenity("report", source, "-o", tmp_path / "x.html", "--sliding", "1")
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert not (tmp_path / "x.html").exists()
