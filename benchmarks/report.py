"""The HTML report in Chromium: seconds until all charts are drawn, by number of operators.

    python benchmarks/report.py [OPS ...]

``main thread`` is CPU time of the page's main thread, ``wall`` from opening the file to the last
chart. The networks are two strands that join every seventh operator. Needs chromium, its driver
and selenium.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def network(ops: int) -> str:
    """Return a graph of ``ops`` operators in text form."""
    lines = ["graph strands", "input t0[4096]i8", "input t1[4096]i8"]
    for i in range(2, ops + 2):
        read = f"t{i - 2} t{i - 1}" if i % 7 == 0 else f"t{i - 2}"
        lines.append(f"op{i} conv: {read} -> t{i}[{512 << i % 4}]i8")
    return "\n".join([*lines, f"output t{ops} t{ops + 1}", ""])


def report(ops: int, folder: Path) -> Path:
    source, page = folder / f"{ops}.txt", folder / f"{ops}.html"
    source.write_text(network(ops))
    command = ["report", str(source), "-o", str(page), "--time-limit", "1"]
    subprocess.run([sys.executable, "-m", "tvm_serenity.cli", *command], check=True)
    return page


def measure(browser: Any, page: Path) -> tuple[float, float]:
    """Return wall seconds until the page is drawn, and its main thread's."""
    started = time.perf_counter()
    browser.get(page.as_uri())
    while not browser.execute_script("return document.body.dataset.drawn"):
        time.sleep(0.02)
    wall = time.perf_counter() - started
    metrics = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return wall, next(m["value"] for m in metrics if m["name"] == "TaskDuration")


def main() -> None:
    from selenium import webdriver

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ops", nargs="*", type=int, default=[10, 100, 500, 2000])
    chosen = parser.parse_args()
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu"):
        options.add_argument(argument)
    service = webdriver.ChromeService(executable_path="/usr/bin/chromedriver")
    with tempfile.TemporaryDirectory() as folder:
        pages = {ops: report(ops, Path(folder)) for ops in chosen.ops}
        for ops, page in pages.items():
            browser = webdriver.Chrome(service=service, options=options)
            browser.get("data:text/html,<p>")
            browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
            wall, main_thread = measure(browser, page)
            browser.quit()
            size = page.stat().st_size
            print(f"{ops:6} ops  wall {wall:6.2f} s  main thread {main_thread:6.2f} s  {size:,} B")


if __name__ == "__main__":
    main()
