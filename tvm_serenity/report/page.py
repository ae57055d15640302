"""The HTML page: template, style, scripts and data in one file."""

import html
import json
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import PurePath
from typing import Any


def page(data: Mapping[str, Any]) -> str:
    """Return the HTML of a report; ``data``: the JSON of ``serenity report --json``."""
    parts = {
        "title": html.escape(PurePath(str(data["model"])).name),
        "style": _resource("page.css"),
        "data": json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
        "script": "\n".join(_resource(name) for name in SCRIPTS),
    }
    return re.sub(r"<!--(\w+)-->", lambda found: parts[found[1]], _resource("page.html"))


SCRIPTS = (
    *("theme.js", "tables.js", "plot.js", "charts.js", "choices.js", "network.js"),
    "retained.js",
    "main.js",
)


def _resource(name: str) -> str:
    return (resources.files("tvm_serenity.report") / "web" / name).read_text(encoding="utf-8")
