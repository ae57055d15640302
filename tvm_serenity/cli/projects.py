"""What the commands print of a firmware project: its sizes, and what a user does next."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tvm_serenity.options.output import OUTPUT_FORMATS, PROJECT


def advice(form: str, output: str, name: str) -> str:
    """Return the next command for a project of the format ``form``."""
    (known,) = (one for one in OUTPUT_FORMATS if one.name == form)
    use = known.use.format(output=output, name=name, absolute=Path(output).resolve())
    return use + ("" if form == PROJECT else "; serenity verify needs --format project")


def regions(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the bytes that a project needs of each region of its board, as text."""
    rows = {}
    for region in facts["regions"]:
        shortfall = region["shortfall_bytes"]
        text = f"{region['need_bytes']:,} of {region['size_bytes']:,} bytes ({region['detail']})"
        rows[region["name"]] = text + (f", {shortfall:,} bytes short" if shortfall else "")
    return rows
