"""The HTML page: template, style, scripts, chart library and data in one file."""

import html
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib import metadata, resources
from pathlib import PurePath
from typing import Any

from tvm_serenity.errors import MissingPartError


def page(data: Mapping[str, Any]) -> str:
    """Return the HTML of a report; ``data``: the JSON of ``serenity report --json``.

    Raises :class:`MissingPartError` if the Python package ``plotly`` is not installed.
    """
    library, licence = chart_library()
    parts = {
        "title": html.escape(PurePath(str(data["model"])).name),
        "style": _resource("page.css"),
        "data": json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
        "library": library.replace("</script", "<\\/script"),
        "licence": html.escape(licence),
        "script": "\n".join(_resource(name) for name in SCRIPTS),
    }
    return re.sub(r"<!--(\w+)-->", lambda found: parts[found[1]], _resource("page.html"))


SCRIPTS = ("theme.js", "tables.js", "charts.js", "choices.js", "network.js", "main.js")


def _resource(name: str) -> str:
    return (resources.files("tvm_serenity.report") / "web" / name).read_text(encoding="utf-8")


@cache
def chart_library() -> tuple[str, str]:
    """Return the source of plotly.js and its licence from the Python package ``plotly``."""
    try:
        package = metadata.distribution("plotly")
        script = resources.files("plotly") / "package_data" / "plotly.min.js"
        code = script.read_text(encoding="utf-8")
    except (metadata.PackageNotFoundError, ModuleNotFoundError, FileNotFoundError) as error:
        raise MissingPartError(
            f"serenity report needs plotly ({error}): pip install plotly"
        ) from None
    texts = [f for f in package.files or () if f.name.upper().startswith("LICENSE")]
    licence = "\n".join(f.read_text() for f in texts) or code[: code.index("*/") + 2]
    return code, licence
