"""The cost of a library kernel on a core, in cycles, or in instructions if no cycles are known.

The cost is the sum of the kernel's counts times the core's prices. ``benchmarks/kernel_costs.py``
fits the prices: ``prices.json`` in each kernel's folder has its prices, ``cores.json`` the cores.
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
"""A row of the price tables: a kernel's name, and one of its cases."""


@dataclass(frozen=True)
class Prices:
    """The prices of kernels on a core, in ``unit``: "cycles" or "instructions".

    ``error_percent``: the median and the 95th percentile of the error for layers outside of
    the fit. ``rows``: the price of each count, for each case of a kernel. ``code``: the C functions
    of each case, with their bytes. ``decoding``: the cost of a byte of coded weights.
    ``gathering``: of an element that a vector instruction gathers, in addition to the instruction;
    on a core that counts instructions it stands for the time of cores that read one at a time.
    """

    core: str
    unit: str
    error_percent: tuple[float, float]
    rows: Mapping[Row, list[float]]
    code: Mapping[Row, Mapping[str, int]]
    decoding: float
    gathering: float

    def cost(self, form: KernelForm, layer: Any) -> int:
        """Return the cost of one call of a kernel for ``layer``, in ``unit``."""
        row = self.rows.get(self._row(form, layer))
        if row is None:
            kernel, case = self._row(form, layer)
            raise UnsupportedError(
                f"kernel {kernel} has no price for {case!r} on {self.core}: "
                f"python benchmarks/kernel_costs.py {self.core} --missing measures it"
            )
        counts = form.kernel.counts(layer, form.options)
        gathers = self.gathering * form.kernel.gathered(layer)
        return round(sum(n * price for n, price in zip(counts, row, strict=True)) + gathers)

    def code_of(self, form: KernelForm, layer: Any) -> Mapping[str, int]:
        """Return the C functions that a kernel calls for ``layer``, each with its bytes."""
        return self.code[self._row(form, layer)]

    def _row(self, form: KernelForm, layer: Any) -> Row:
        return form.kernel.name, form.kernel.case(layer, form.options)


def prices_for(core: Extensions) -> Prices | None:
    """Return the prices of a core, None if it has none."""
    return prices_of(core.name)


def unit_of(core: Extensions) -> str:
    """Return the unit of a core's prices, "cycles" or "instructions"; "" without prices."""
    prices = prices_for(core)
    return "" if prices is None else prices.unit


@cache
def prices_of(core: str) -> Prices | None:
    """Return the prices of the core called ``core``, None if it has none."""
    known = cores().get(core)
    if known is None:
        return None
    rows: dict[Row, list[float]] = {}
    code: dict[Row, Mapping[str, int]] = {}
    for kernel in all_kernels():
        for case, entry in table_of(kernel.name).get(core, {}).items():
            rows[kernel.name, case] = entry["prices"]
            code[kernel.name, case] = entry["code"]
    median, most = known["error_percent"]
    return Prices(
        core, known["unit"], (median, most), rows, code, known["decoding"], known["gathering"]
    )


@cache
def cores() -> dict[str, dict[str, Any]]:
    """Return ``cores.json``: the instruction set of each core, the unit and error of its prices."""
    return _read(CORES)


@cache
def table_of(kernel: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the prices of a kernel by core and case."""
    return _read(f"{kernel}/{TABLE}")


def _read(path: str) -> dict[str, Any]:
    text = (resources.files("tvm_serenity.firmware.kernels") / path).read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content
