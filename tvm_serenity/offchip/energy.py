"""Energy and time of traffic, from an optional table of board regions with sources.

A table is a TOML file with one section per region; leave out unknown figures::

    [octal-ram]
    read_pj_per_byte = 120.0
    write_pj_per_byte = 120.0
    bytes_per_s = 200e6
    source = "data sheet, table 7: 60 mA at 1.8 V while reading at 200 MB/s, ..."
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass

from tvm_serenity.errors import InputError
from tvm_serenity.system.files import read_text


@dataclass(frozen=True)
class ExternalMemory:
    """An external memory; raises :class:`InputError` if a figure is invalid or has no source."""

    name: str
    source: str
    read_pj_per_byte: float | None = None
    write_pj_per_byte: float | None = None
    bytes_per_s: float | None = None

    def __post_init__(self) -> None:
        if not self.source.strip():
            raise InputError(f"region {self.name!r}: its figures have no source; set 'source'")
        if (self.read_pj_per_byte is None) != (self.write_pj_per_byte is None):
            raise InputError(
                f"region {self.name!r}: set both read_pj_per_byte and write_pj_per_byte, or neither"
            )
        if self.read_pj_per_byte is None and self.bytes_per_s is None:
            raise InputError(
                f"region {self.name!r}: it has neither energy nor bandwidth; set one of them"
            )
        for name in ("read_pj_per_byte", "write_pj_per_byte", "bytes_per_s"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1e18:
                raise InputError(f"region {self.name!r}: {name} is {value}; it must be above 0")


@dataclass(frozen=True)
class Estimate:
    """The cost of traffic: energy in microjoules, time in microseconds; None if unknown."""

    energy_uj: float | None
    time_us: float | None


REGIONS: Mapping[str, ExternalMemory] = {
    region.name: region
    for region in (
        ExternalMemory(
            "dram-45nm",
            "Horowitz, Computing's energy problem, ISSCC 2014, figure 1.1.9: 1.3 to 2.6 nJ for "
            "64 bits, here the lower end; bandwidth: LPDDR2-800, 32 bits wide, 4 B x 800 MT/s",
            162.5,
            162.5,
            3.2e9,
        ),
        ExternalMemory(
            "octal-ddr-100mhz",
            "peak of the interface: 8 bits x 2 edges x 100 MHz; energy depends on the part",
            bytes_per_s=200e6,
        ),
        ExternalMemory(
            "quad-spi-133mhz",
            "peak of the interface: 4 bits x 133 MHz; energy depends on the part",
            bytes_per_s=66.5e6,
        ),
    )
}
"""Built-in regions; for a board, measure it or read its data sheets, and write a table."""


def energy_of(read_bytes: int, write_bytes: int, region: ExternalMemory) -> Estimate:
    """Return the cost of moving these bytes in ``region``; transfers do not overlap."""
    energy = time = None
    if region.read_pj_per_byte is not None and region.write_pj_per_byte is not None:
        picojoules = read_bytes * region.read_pj_per_byte + write_bytes * region.write_pj_per_byte
        energy = picojoules / 1e6
    if region.bytes_per_s is not None:
        time = (read_bytes + write_bytes) / region.bytes_per_s * 1e6
    return Estimate(energy, time)


def load_regions(path: str) -> dict[str, ExternalMemory]:
    """Return the regions of a TOML file; raise :class:`InputError` if the file is invalid."""
    try:
        table = tomllib.loads(read_text(path))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: the file is not a readable table of regions: {error}") from error
    known = {"source", "read_pj_per_byte", "write_pj_per_byte", "bytes_per_s"}
    regions = {}
    for name, fields in table.items():
        if not isinstance(fields, dict) or not set(fields) <= known:
            raise InputError(
                f"{path}: region {name!r} has an unknown field; the fields are "
                f"{', '.join(sorted(known))}"
            )
        numbers = {key: value for key, value in fields.items() if key != "source"}
        if not all(isinstance(v, int | float) for v in numbers.values()):
            raise InputError(f"{path}: region {name!r}: all figures must be numbers")
        regions[name] = ExternalMemory(name, str(fields.get("source", "")), **numbers)
    if not regions:
        raise InputError(f"{path}: the file has no region; add a section per region")
    return regions


def region_of(text: str) -> ExternalMemory:
    """Return a built-in region by name, or ``FILE.toml:NAME`` from a table."""
    if text in REGIONS:
        return REGIONS[text]
    path, colon, name = text.rpartition(":")
    if not colon:
        raise InputError(
            f"unknown region {text!r}; choose one of {', '.join(REGIONS)}, or write FILE.toml:NAME"
        )
    regions = load_regions(path)
    if name not in regions:
        raise InputError(f"{path}: no region {name!r}; the file has {', '.join(regions)}")
    return regions[name]
