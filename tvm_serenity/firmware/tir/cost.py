"""What a kernel of the library costs on a core: cycles, or instructions where no cycles are known.

The counts of a kernel's work (``work``) times the core's prices (``firmware/kernel_costs.json``,
which ``benchmarks/kernel_costs.py`` makes).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from tvm_serenity.firmware.tir.library import RoundedConvolution
from tvm_serenity.firmware.tir.work import kind, work

TABLE = "kernel_costs.json"


@dataclass(frozen=True)
class Prices:
    """What a core's kernels take, in ``unit``: "cycles" or "instructions".

    ``error_percent``: the median error, and what 19 of 20 are within, of layers that were not seen.
    ``rows``: for each kind of kernel a price for each count of its work; ``code``: its functions.
    """

    unit: str
    error_percent: tuple[float, float]
    rows: Mapping[str, list[float]]
    code: Mapping[str, Mapping[str, int]]

    def cost(self, form: str, plane_rows: int, layer: RoundedConvolution) -> int | None:
        """Return what one call of a form costs, None where it has no price."""
        row = self.rows.get(kind(form, layer))
        if row is None:
            return None
        counts = work(form, layer, plane_rows)
        return round(sum(n * price for n, price in zip(counts, row, strict=True)))

    def code_of(self, form: str, layer: RoundedConvolution) -> Mapping[str, int]:
        """Return the functions of the library that a form calls, each with its bytes."""
        return self.code.get(kind(form, layer), {})


@cache
def prices_of(core: str) -> Prices | None:
    """Return the prices of a core, None where it has none of its own."""
    found = _table().get(core)
    if found is None:
        return None
    median, most = found["error_percent"]
    return Prices(found["unit"], (median, most), found["prices"], found["code"])


def unit_of(core: str) -> str:
    """Return in what the prices of a core are: "cycles" or "instructions"; "" without any."""
    found = prices_of(core)
    return "" if found is None else found.unit


@cache
def _table() -> dict[str, dict[str, Any]]:
    text = (resources.files("tvm_serenity.firmware") / TABLE).read_text(encoding="utf-8")
    found: dict[str, dict[str, Any]] = json.loads(text)
    return found
