"""The energy table and the figure."""

import math
from pathlib import Path
from typing import Any

import pytest

from tvm_serenity.errors import InputError
from tvm_serenity.offchip import ExternalMemory, energy_of, load_regions
from tvm_serenity.offchip.energy import REGIONS, region_of
from tvm_serenity.offchip.figure import bar_of, geometric_mean, plot_reduction


def test_energy_and_time_by_hand() -> None:
    region = ExternalMemory("ram", "made up", 100.0, 200.0, 1e6)
    found = energy_of(3_000, 1_000, region)
    assert (found.energy_uj, found.time_us) == (0.5, 4_000.0)
    assert energy_of(8, 0, REGIONS["octal-ddr-100mhz"]).energy_uj is None
    assert all(region.source for region in REGIONS.values())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[a]\nbytes_per_s = 1.0", "its figures have no source"),
        ('[a]\nsource = "s"', "neither energy nor bandwidth"),
        (
            '[a]\nsource = "s"\nread_pj_per_byte = 1.0',
            "set both read_pj_per_byte and write_pj_per_byte",
        ),
        ('[a]\nsource = "s"\nbytes_per_s = -1', "must be above 0"),
        ('[a]\nsource = "s"\nbytes_per_s = "fast"', "all figures must be numbers"),
        ('[a]\nsource = "s"\nspeed = 1', "fields are"),
        ("a = 1", "fields are"),
        ("", "has no region"),
        ("[", "not a readable table"),
    ],
)
def test_bad_tables_are_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "board.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        load_regions(str(path))
    with pytest.raises(InputError):
        region_of("nowhere")


def row(order: str, capacity: int, total: int, compulsory: int = 10) -> dict[str, Any]:
    return {
        "model": "net",
        "capacity_bytes": capacity,
        "order": order,
        "policy": "belady",
        "total_bytes": total,
        "compulsory_bytes": compulsory,
    }


def test_bars_say_what_fits_and_what_is_eradicated(tmp_path: Path) -> None:
    assert bar_of(row("given", 1, 40), row("serenity", 1, 20)) == (2.0, "")
    assert bar_of(row("given", 1, 40), row("serenity", 1, 10)) == (4.0, "eradicated")
    assert bar_of(row("given", 1, 10), row("serenity", 1, 10)) == (None, "fits")
    assert bar_of(row("given", 1, 40, 0), row("serenity", 1, 0, 0)) == (math.inf, "eradicated")
    assert geometric_mean([1.0, 4.0, math.inf]) == pytest.approx(2.0)
    rows = [row(o, c, 400 // c) for o in ("given", "serenity") for c in (1, 2, 40)]
    rows[3]["total_bytes"], rows[4]["total_bytes"] = 200, 10
    for name in ("a.svg", "b.png", "c.pdf"):
        plot_reduction(rows, str(tmp_path / name), "belady")
    first = (tmp_path / "a.svg").read_bytes()
    plot_reduction(rows, str(tmp_path / "a.svg"), "belady")
    assert (tmp_path / "a.svg").read_bytes() == first
    assert b"eradicated" in first
    assert b"N/A: fits" in first
