"""The report in a browser: its numbers are the command line's, and people can use it."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cases import only_exhaustive
from tests.cli.run import answer, serenity
from tests.report.browser import drawings, open_page

SWIFTNET = "models/swiftnet/swiftnet_vww_224_uint8.tflite"
KWS = "models/mlperf_tiny/kws_dscnn_int8.tflite"
AD = "models/mlperf_tiny/ad01_int8.tflite"
BOARD = "nucleo-l4r5zi"
MOST_BYTES = 1_500_000
UNSTABLE = {"seconds"}


@pytest.fixture(scope="module")
def model(shared: Path) -> Path:
    return shared / SWIFTNET


@pytest.fixture(scope="module")
def report(model: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """SwiftNet's page, and the numbers it was made from."""
    path = tmp_path_factory.mktemp("report") / "swiftnet.html"
    return path, answer("report", model, "-o", path)


@pytest.fixture(scope="module")
def built(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The page of a model for a board, and the numbers it was made from."""
    pytest.importorskip("tvm")
    path = tmp_path_factory.mktemp("built") / "ad.html"
    return path, answer("report", shared / AD, "--board", BOARD, "-o", path)


def stable(value: Any) -> Any:
    """Without what differs from run to run."""
    if isinstance(value, dict):
        return {k: stable(v) for k, v in value.items() if k not in UNSTABLE}
    return [stable(v) for v in value] if isinstance(value, list) else value


def timeless(explained: dict[str, Any]) -> dict[str, Any]:
    """Without where bands stop: the clock ends that search, sooner on a page with much else."""
    claims = [c for c in explained["claims"] if c["kind"] != "rows-floor"]
    return explained | {"claims": claims}


@pytest.mark.parametrize("name", [KWS, "zoo:swiftnet-cell-c", only_exhaustive(SWIFTNET)])
def test_numbers_are_those_of_the_other_commands(name: str, shared: Path, tmp_path: Path) -> None:
    model = name if name.startswith("zoo:") else shared / name
    data = answer("report", model, "-o", tmp_path / "page.html")
    schedule = answer("schedule", model)
    assert stable(data["schedule"]).items() <= stable(schedule).items()
    assert stable(data["rewrite"]) == stable(answer("rewrite", model))
    assert timeless(data["explain"]) == timeless(answer("explain", model))
    options = data["traffic_options"]
    asked = ("--block", options["block_bytes"], "--policy", options["policy"])
    capacities = ",".join(map(str, options["capacities"]))
    assert data["traffic"] == answer("offchip", model, *asked, "--capacities", capacities)
    boards = answer("boards")
    assert len(data["boards"]) == len(boards)
    for board in data["boards"]:
        for key in ("title", "ram_bytes", "flash_bytes"):
            assert board[key] == boards[board["board"]][key]


@pytest.mark.parametrize(("which", "method"), [("given", "given"), ("best", "auto")])
def test_profiles_are_those_of_inspect(
    which: str, method: str, model: Path, report: tuple[Path, dict[str, Any]]
) -> None:
    order = report[1]["orders"][which]
    shown = answer("inspect", model, "--method", method)
    assert order["live_bytes"] == [step["live_bytes"] for step in shown["steps"]]
    assert order["order"] == [step["op"] for step in shown["steps"]]
    assert (order["peak_bytes"], order["peak_step"]) == (shown["peak_bytes"], shown["peak_step"])
    for step, entry in enumerate(shown["steps"]):
        live = {r["name"] for r in order["ranges"] if r["start"] <= step < r["stop"]}
        assert live == set(entry["live"])


def test_what_is_on_the_page_is_in_the_data(
    report: tuple[Path, dict[str, Any]], browser: Any
) -> None:
    path, data = report
    open_page(browser, path)
    shown = browser.execute_script(
        "return [...document.querySelectorAll('[data-path]')].map(e => [e.dataset.path, "
        "e.textContent])"
    )
    assert len(shown) > 250
    for where, text in shown:
        value: Any = data
        for key in where.split("."):
            value = value[int(key)] if isinstance(value, list) else value[key]
        expected = f"{value:,}" if type(value) is int else value
        assert text == expected, where
    assert browser.get_log("browser") == []
    fetched = browser.execute_script(
        "return performance.getEntriesByType('resource').map(e => e.name)"
    )
    assert [name for name in fetched if not name.startswith(("data:", "blob:"))] == []


def test_hover_shows_the_right_tensors(report: tuple[Path, dict[str, Any]], browser: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    path, data = report
    open_page(browser, path)
    order = data["orders"]["given"]
    chart = browser.find_element("id", "given-chart")
    browser.execute_script(
        "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", chart
    )
    x, y = browser.execute_script(
        """const chart = arguments[0], { X, Y } = PLOTS.get(chart.id);
        const middle = [chart.clientWidth / 2, chart.clientHeight / 2];
        return [X(arguments[1] + 0.5) - middle[0], Y(1000) - middle[1]];""",
        chart,
        order["peak_step"],
    )
    ActionChains(browser).move_to_element_with_offset(chart, round(x), round(y)).perform()
    label = wait_for(browser, "#given-chart .hover:not([hidden])")
    assert f"step {order['peak_step']}:" in label
    assert "351,232 bytes live" in label
    live = [r for r in order["ranges"] if r["start"] <= order["peak_step"] < r["stop"]]
    for found in sorted(live, key=lambda r: -r["bytes"])[:5]:
        assert f"{found['bytes']:,}" in label
        assert found["name"] in label


def wait_for(browser: Any, selector: str) -> str:
    """The text of an element once it is there."""
    from selenium.webdriver.support.ui import WebDriverWait

    script = "return document.querySelector(arguments[0])?.textContent"
    return str(WebDriverWait(browser, 20).until(lambda b: b.execute_script(script, selector)))


def test_arena_boxes_name_their_tensor(report: tuple[Path, dict[str, Any]], browser: Any) -> None:
    path, data = report
    open_page(browser, path)
    texts = browser.execute_script("return arenaBoxes().map((b) => arenaText(b).join('; '))")
    boxes = [r for r in data["orders"]["best"]["ranges"] if r["bytes"] and r["stop"] > r["start"]]
    assert len(texts) == len(boxes)
    for text, box in zip(texts, boxes, strict=True):
        assert box["name"] in text
        assert f"{box['bytes']:,} bytes at {box['offset']:,}" in text


def test_keyboard_reaches_all_and_moves_the_step(
    report: tuple[Path, dict[str, Any]], browser: Any
) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    path, data = report
    open_page(browser, path)
    reached = []
    for _ in range(120):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        reached.append(browser.execute_script("return document.activeElement.id"))
        if reached[-1] == "step":
            ActionChains(browser).send_keys(Keys.ARROW_RIGHT).perform()
        if reached[-1] == "best-chart":
            ActionChains(browser).send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT).perform()
        if reached[-1] == "board-table":
            break
    controls = {"theme", "which", "step", "previous", "next", "to-peak"}
    charts = {"given-chart", "best-chart", "arena-chart", "traffic-chart"}
    assert controls | charts | {"board-table"} <= set(reached)
    step = data["orders"]["best"]["peak_step"] + 3
    now = browser.find_element("id", "now").text
    op = data["orders"]["best"]["order"][step]
    assert f"Step {step} of 85: {data['graph']['ops'][op]['name']}" in now
    assert f"{data['orders']['best']['live_bytes'][step]:,} bytes live" in now


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_stands_out_in_both_themes(
    theme: str, report: tuple[Path, dict[str, Any]], browser: Any
) -> None:
    open_page(browser, report[0], theme)
    found = browser.execute_script(
        """const luminance = (text) => {
          const parts = text.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255)
            .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
          return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
        };
        const under = (e) => {
          for (let at = e; at; at = at.parentElement) {
            const c = getComputedStyle(at).backgroundColor;
            if (c.startsWith("rgb(")) return c;
          }
          return "rgb(255, 255, 255)";
        };
        return [...document.querySelectorAll("h1, h2, h3, p, dt, dd, td, a, button, summary")]
          .filter((e) => e.checkVisibility() && e.textContent.trim())
          .map((e) => {
            const pair = [luminance(getComputedStyle(e).color), luminance(under(e))].sort();
            return [e.tagName, (pair[1] + 0.05) / (pair[0] + 0.05)];
          });"""
    )
    assert len(found) > 100
    assert min(ratio for _, ratio in found) >= 4.5
    paper = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(251, 250, 247)" if theme == "light" else "rgb(20, 24, 28)")
    drawn = browser.execute_script(
        "return getComputedStyle(document.getElementById('best-chart')).backgroundColor"
    )
    assert drawn == ("rgb(255, 255, 255)" if theme == "light" else "rgb(28, 34, 40)")


def test_the_button_changes_the_theme(report: tuple[Path, dict[str, Any]], browser: Any) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    open_page(browser, report[0], "dark")
    before = drawings(browser)
    browser.find_element("id", "theme").click()
    WebDriverWait(browser, 60).until(lambda b: drawings(b) > before)
    paper = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert paper == "rgb(251, 250, 247)"


def test_prints_to_pdf(report: tuple[Path, dict[str, Any]], browser: Any) -> None:
    open_page(browser, report[0])
    made = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert made.startswith(b"%PDF")
    assert made.count(b"/Type /Page\n") > 2
    assert browser.get_log("browser") == []


def test_names_cannot_break_the_page(tmp_path: Path, browser: Any) -> None:
    name = "</script><script>window.broken=1</script><b>"
    source, page = tmp_path / "odd.txt", tmp_path / "odd.html"
    quoted = json.dumps(name)
    source.write_text(f"input {quoted}[64]i8\n{quoted} conv: {quoted} -> y[64]i8\noutput y\n")
    answer("report", source, "-o", page)
    open_page(browser, page)
    assert browser.execute_script("return window.broken") is None
    assert browser.get_log("browser") == []
    assert name in browser.find_element("id", "claims").text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "-o report.html"),
        (("-o", "x.html", "--board", "pdp-11"), "unknown board"),
        (("-o", "missing/x.html"), "cannot be written"),
    ],
)
def test_refusals_leave_no_file(arguments: tuple[str, ...], says: str, tmp_path: Path) -> None:
    source = tmp_path / "small.txt"
    source.write_text("input x[64]i8\na conv: x -> y[64]i8\noutput y\n")
    places = [str(tmp_path / a) if a.endswith(".html") else a for a in arguments]
    found = serenity("report", source, *places)
    assert found.returncode == 2
    assert says in found.stderr
    assert found.stderr.count("\n") == 1
    assert list(tmp_path.glob("**/*.html")) == []


def test_milliseconds_of_a_firmware_project(
    shared: Path, tmp_path: Path, browser: Any, report: tuple[Path, dict[str, Any]]
) -> None:
    from tvm_serenity.cycles.emulate import installed
    from tvm_serenity.firmware.board.toolchain import have

    if not installed() or not have("arm-none-eabi-gcc"):
        pytest.skip("unicorn, capstone, the native driver or arm-none-eabi-gcc is missing")
    model, project, page = shared / AD, tmp_path / "ad", tmp_path / "ad.html"
    build = ("build", model, "--board", "nucleo-l4r5zi", "--no-check", "--name", "ad")
    assert serenity(*build, "-o", project).returncode == 0
    data = answer("report", model, "--firmware", project, "-o", page)
    assert "build" not in data["explain"]["claims"][0]  # no board was named
    assert data["latency"] == answer("latency", project)
    operators = data["latency"]["operators"]
    open_page(browser, page)
    drawn = browser.execute_script(
        "const [bars, , names] = PLOTS.get('latency-chart').chart.layers;"
        "return [bars.boxes.map((b) => b.x1), names.points.map((n) => n.text)]"
    )
    assert drawn[0] == [o["milliseconds"][1] for o in operators]
    for operator, text in zip(operators, drawn[1], strict=True):
        assert operator["name"].startswith(text.rstrip("…"))
    note = browser.find_element("id", "latency-note").text
    assert f"{data['latency']['milliseconds'][0]:.2f} to" in note
    assert "checked; with 13 % error" in note
    assert browser.get_log("browser") == []
    open_page(browser, report[0])
    assert report[1]["latency"] is None
    assert browser.execute_script("return document.querySelectorAll('.latency').length") == 0


def test_tabs_show_what_each_choice_makes_of_the_profile(
    report: tuple[Path, dict[str, Any]], browser: Any
) -> None:
    from selenium.webdriver.common.keys import Keys

    path, data = report
    choices = {one["name"]: one for one in data["choices"]}
    assert list(choices) == ["order", "rewrite", "rows"]
    given, best = (data["orders"][which]["live_bytes"] for which in ("given", "best"))
    assert choices["order"]["before"]["live_bytes"] == given
    assert choices["order"]["after"]["live_bytes"] == best
    rewritten = data["rewrite"]["schedule"]
    for name, after in (("order", data["schedule"]["schedule"]), ("rewrite", rewritten)):
        assert choices[name]["after"]["peak_bytes"] == after["peak_bytes"]
        assert choices[name]["after"]["outcome"] == after["outcome"]
    (rows,) = (c for c in data["explain"]["claims"] if c.get("name") == "rows")
    assert choices["rows"]["after"]["peak_bytes"] == rows["peak_bytes"]
    for one in choices.values():
        assert max(one["after"]["live_bytes"]) == one["after"]["peak_bytes"]
        assert one["after"]["lower_bound_bytes"] <= one["after"]["peak_bytes"]
    open_page(browser, path)
    tabs = browser.find_elements("css selector", "#choice-tabs [role=tab]")
    assert [tab.text for tab in tabs] == ["Order", "Rewrite", "Rows"]
    assert data["shown_choice"] == "rows"  # the least memory
    names = list(choices)
    for index in (2, 0, 1):
        one = choices[names[index]]
        assert [tab.get_attribute("aria-selected") for tab in tabs].index("true") == index
        words = browser.find_element("id", "choice-words").text
        assert f"{one['before']['peak_bytes']:,} bytes in {one['before']['ops']:,}" in words
        assert f"{one['after']['peak_bytes']:,} bytes in {one['after']['ops']:,}" in words
        drawn = browser.execute_script(
            "return PLOTS.get('choice-chart').chart.layers.slice(1, 3).map(l => Math.max(...l.y))"
        )
        assert drawn == [one["after"]["peak_bytes"], one["before"]["peak_bytes"]]
        tabs[index].send_keys(Keys.ARROW_RIGHT)
    assert tabs[2].get_attribute("aria-selected") == "true"  # around


@pytest.mark.parametrize("width", [390, 820, 1400])
def test_the_first_screen_is_the_answer_at_any_width(
    width: int, built: tuple[Path, dict[str, Any]], browser: Any
) -> None:
    """One figure, its three lines and one chart; nothing is wider than the screen."""
    path, data = built
    best, *_ = data["explain"]["claims"]
    assert path.stat().st_size < MOST_BYTES
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    try:
        open_page(browser, path)
        lead = browser.find_element("id", "lead")
        assert lead.text.startswith(f"{best['build']['ram_bytes']:,} bytes of RAM, ")
        assert lead.text.endswith(" ms a run")
        lines = browser.find_elements("css selector", "#answer p")
        assert [line.get_attribute("class") for line in lines] == ["", "build", "ram", "command"]
        assert lines[1].text == best["text"]
        top, wide = browser.execute_script(
            "return [document.getElementById('choice-chart').getBoundingClientRect().top,"
            "document.documentElement.scrollWidth]"
        )
        assert top < 900
        assert wide <= width
        charts = browser.execute_script(
            "return [...document.querySelectorAll('section > .chart svg, #choice-chart svg')]"
            ".map((e) => e.getBoundingClientRect().right)"
        )
        assert charts
        assert max(charts) <= width
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_ram_stands_against_time_with_names(
    built: tuple[Path, dict[str, Any]], report: tuple[Path, dict[str, Any]], browser: Any
) -> None:
    best = built[1]["explain"]["claims"][0]
    trade = built[1]["ram_and_time"]
    assert trade["unit"] == "ms"
    builds = [best["build"], *best["alternatives"]]
    figures = [(one["name"], one["ram_bytes"], one["time"]) for one in trade["points"]]
    assert figures == [(b["strategy"], b["ram_bytes"], b["milliseconds"][1]) for b in builds]
    assert len(builds) > 1
    open_page(browser, built[0])
    names = browser.execute_script(
        "return PLOTS.get('trade-chart').chart.layers[1].points.map((n) => n.text)"
    )
    assert sorted(names) == sorted(name for name, _, _ in figures)
    calls = report[1]["ram_and_time"]
    assert calls["unit"] == "kernel calls"
    least = report[1]["explain"]["claims"][0]
    assert calls["points"][0]["ram_bytes"] == least["peak_bytes"]
    assert calls["points"][0]["time"] == least["calls"]


def test_no_board_is_too_small_where_a_build_fits(
    built: tuple[Path, dict[str, Any]], report: tuple[Path, dict[str, Any]], browser: Any
) -> None:
    searched = [board for board in built[1]["boards"] if board["best_fits"] is not None]
    assert [(board["board"], board["best_fits"]) for board in searched] == [(BOARD, True)]
    boards = report[1]["boards"]
    assert all(board["best_fits"] is None for board in boards)
    least = report[1]["explain"]["claims"][0]["peak_bytes"]
    open_page(browser, report[0])
    rows = browser.find_elements("css selector", "#board-table tbody tr")
    words = [row.find_elements("css selector", "td")[-1].text for row in rows]
    for board, word in zip(boards, words, strict=True):
        enough = least <= board["largest_room_bytes"] and board["flash_spare_bytes"] > 0
        assert board["may_fit"] == enough
        assert (word == "build may fit") == (enough and not board["fits"])
    assert {"fits", "build may fit", "too small"} <= set(words)


def test_open_shows_the_page_in_the_browser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import webbrowser

    from tvm_serenity.cli import app
    from tvm_serenity.cli.commands import register

    register()
    shown: list[str] = []

    def browse(url: str) -> bool:
        shown.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", browse)
    graph = tmp_path / "graph.txt"
    graph.write_text("input x[9]\na: x -> y[4]\noutput y\n")
    named = tmp_path / "page.html"
    for more in (["-o", str(named)], []):
        app(["report", str(graph), "--open", *more], standalone_mode=False)
    assert shown[0] == named.resolve().as_uri()
    assert Path(shown[1].removeprefix("file://")).stat().st_size > 20_000
    capsys.readouterr()
    monkeypatch.setattr(webbrowser, "open", lambda _url: False)
    app(["report", str(graph), "--open", "-o", str(named)], standalone_mode=False)
    assert "no browser found" in capsys.readouterr().err
