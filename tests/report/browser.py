"""A headless Chromium for the report's tests, driven by selenium; no host is reachable from it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

DRAWN_TIMEOUT_S = 120.0


@contextmanager
def chromium(width: int = 1280, height: int = 1000) -> Iterator[Any]:
    """Yield a browser; the test is skipped where Debian's chromium or its driver is missing."""
    webdriver = pytest.importorskip("selenium.webdriver")
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("chromium and chromium-driver are not installed: scripts/system_packages.sh")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--window-size={width},{height}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(
        service=webdriver.ChromeService(executable_path=driver), options=options
    )
    try:
        yield browser
    finally:
        browser.quit()


def open_page(browser: Any, path: Path, theme: str = "light") -> None:
    """Load a report with the system's colours set to ``theme``, and wait until it is drawn."""
    from selenium.webdriver.support.ui import WebDriverWait

    feature = {"name": "prefers-color-scheme", "value": theme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    browser.get(path.as_uri())
    WebDriverWait(browser, DRAWN_TIMEOUT_S).until(drawings)


def drawings(browser: Any) -> int:
    """How many times the page has drawn its charts."""
    return int(browser.execute_script("return Number(document.body.dataset.drawn || 0)"))
