"""What a kernel of the library costs on a core: cycles, or instructions where no cycles are known.

The counts of a kernel's work times the core's prices, which ``benchmarks/kernel_costs.py`` fits:
``prices.json`` in the folder of each kernel; ``cores.json`` has what holds for all of them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.firmware.isa import Extensions
from tvm_serenity.firmware.kernels import all_kernels
from tvm_serenity.firmware.kernels.record import KernelForm

CORES, TABLE = "cores.json", "prices.json"
Row = tuple[str, str]
"""A kernel's name, and one of its cases."""


@dataclass(frozen=True)
class Prices:
    """What a core's kernels take, in ``unit``: "cycles" or "instructions".

    ``error_percent``: the median error, and what 19 of 20 are within, of layers that were not seen.
    ``rows``: for each case of a kernel a price for each count of its work; ``code``: its functions.
    """

    core: str
    unit: str
    error_percent: tuple[float, float]
    rows: Mapping[Row, list[float]]
    code: Mapping[Row, Mapping[str, int]]

    def cost(self, form: KernelForm, layer: Any) -> int:
        """Return what one call of a form costs."""
        row = self.rows.get(self._row(form, layer))
        if row is None:
            kernel, case = self._row(form, layer)
            raise UnsupportedError(
                f"kernel {kernel} has no price for {case!r} on {self.core}: "
                f"python benchmarks/kernel_costs.py {self.core} --missing measures it"
            )
        counts = form.kernel.counts(layer, form.options)
        return round(sum(n * price for n, price in zip(counts, row, strict=True)))

    def code_of(self, form: KernelForm, layer: Any) -> Mapping[str, int]:
        """Return the functions of the library that a form calls, each with its bytes."""
        return self.code[self._row(form, layer)]

    def _row(self, form: KernelForm, layer: Any) -> Row:
        return form.kernel.name, form.kernel.case(layer, form.options)


def prices_for(core: Extensions) -> Prices | None:
    """Return the prices that hold for a core; None where there are none: of kernels in C alone."""
    return prices_of(core.name)


def unit_of(core: Extensions) -> str:
    """Return in what a core's prices are: "cycles" or "instructions"; "" without any."""
    found = prices_for(core)
    return "" if found is None else found.unit


@cache
def prices_of(core: str) -> Prices | None:
    """Return the prices of a core, None where it has none of its own."""
    known = cores().get(core)
    if known is None:
        return None
    rows: dict[Row, list[float]] = {}
    code: dict[Row, Mapping[str, int]] = {}
    for kernel in all_kernels():
        for case, found in table_of(kernel.name).get(core, {}).items():
            rows[kernel.name, case] = found["prices"]
            code[kernel.name, case] = found["code"]
    median, most = known["error_percent"]
    return Prices(core, known["unit"], (median, most), rows, code)


@cache
def cores() -> dict[str, dict[str, Any]]:
    """Return what is known of each core: its instructions, the unit of its prices, their error."""
    return _read(CORES)


@cache
def table_of(kernel: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Return a kernel's prices: by core, by case."""
    return _read(f"{kernel}/{TABLE}")


def _read(path: str) -> dict[str, Any]:
    text = (resources.files("tvm_serenity.firmware.kernels") / path).read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found
