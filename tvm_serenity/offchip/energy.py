"""Energy and time of traffic: an optional table of board regions; every figure states its source.

A table is a TOML file with one section a region; leave out what is not known::

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
    """A memory that traffic goes to; raises :class:`InputError` on figures that make no sense."""

    name: str
    source: str
    read_pj_per_byte: float | None = None
    write_pj_per_byte: float | None = None
    bytes_per_s: float | None = None

    def __post_init__(self) -> None:
        if not self.source.strip():
            raise InputError(f"region {self.name!r}: state the source of its figures")
        if (self.read_pj_per_byte is None) != (self.write_pj_per_byte is None):
            raise InputError(f"region {self.name!r}: energy needs both reading and writing")
        if self.read_pj_per_byte is None and self.bytes_per_s is None:
            raise InputError(f"region {self.name!r}: has neither energy nor bandwidth")
        for what in ("read_pj_per_byte", "write_pj_per_byte", "bytes_per_s"):
            value = getattr(self, what)
            if value is not None and not 0 < value < 1e18:
                raise InputError(f"region {self.name!r}: {what} = {value} is not above 0")


@dataclass(frozen=True)
class Estimate:
    """What traffic costs: energy in microjoules, time in microseconds; None where not known."""

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
"""Regions built in; for a board, measure or read its data sheets and write a table."""


def energy_of(read_bytes: int, write_bytes: int, region: ExternalMemory) -> Estimate:
    """Return what moving so many bytes costs in ``region``; transfers do not overlap."""
    energy = time = None
    if region.read_pj_per_byte is not None and region.write_pj_per_byte is not None:
        picojoules = read_bytes * region.read_pj_per_byte + write_bytes * region.write_pj_per_byte
        energy = picojoules / 1e6
    if region.bytes_per_s is not None:
        time = (read_bytes + write_bytes) / region.bytes_per_s * 1e6
    return Estimate(energy, time)


def load_regions(path: str) -> dict[str, ExternalMemory]:
    """Return the regions of a TOML file; :class:`InputError` names what is wrong in it."""
    try:
        table = tomllib.loads(read_text(path))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: cannot be read as a table of regions: {error}") from error
    known = {"source", "read_pj_per_byte", "write_pj_per_byte", "bytes_per_s"}
    regions = {}
    for name, fields in table.items():
        if not isinstance(fields, dict) or not set(fields) <= known:
            raise InputError(f"{path}: region {name!r}: fields are {', '.join(sorted(known))}")
        numbers = {key: value for key, value in fields.items() if key != "source"}
        if not all(isinstance(v, int | float) for v in numbers.values()):
            raise InputError(f"{path}: region {name!r}: figures are numbers")
        regions[name] = ExternalMemory(name, str(fields.get("source", "")), **numbers)
    if not regions:
        raise InputError(f"{path}: has no region")
    return regions


def region_of(text: str) -> ExternalMemory:
    """Return a built-in region by name, or ``FILE.toml:NAME`` from a table."""
    if text in REGIONS:
        return REGIONS[text]
    path, colon, name = text.rpartition(":")
    if not colon:
        raise InputError(
            f"region {text!r}: there are {', '.join(REGIONS)}, or write FILE.toml:NAME"
        )
    regions = load_regions(path)
    if name not in regions:
        raise InputError(f"{path}: has no region {name!r}; there are {', '.join(regions)}")
    return regions[name]
