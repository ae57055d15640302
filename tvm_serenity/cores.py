"""Cores: the instruction sets of a processor, with its architecture, kernel prices and emulator.

    core_model("cortex-m33"), core_model("my-core.toml")

One file each, ``targets/cores/*.toml`` or a user's own, holds all facts of a core: this module
reads its table ``[isa]``, ``tvm_serenity.cycles.core`` its timing.
"""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from tvm_serenity.architectures import ARCHITECTURES, TOOLCHAINS
from tvm_serenity.errors import InputError, ParseError
from tvm_serenity.system.files import read_text
from tvm_serenity.system.toml_table import TomlTable

INSTRUCTIONS = {
    "thumb1": "Thumb-1: 16-bit instructions on registers r0 to r7",
    "thumb2": "Thumb-2",
    "dsp": "the DSP extension: two 16-bit products per instruction",
    "mve": "128-bit vectors (Helium)",
    "fpu": "floats in hardware",
}
"""Instruction sets by which kernels, or the C library, are selected."""

TIMING = ("model", "pipeline", "instructions")
"""Keys of a core's file that describe its timing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreIsa:
    """A combination of instruction sets, and its compiler flags.

    ``gcc``: the compiler's flags; ``libraries``: flags that choose its libraries, "" if ``gcc``
    does; ``llvm_cpu``: LLVM's name of the core; ``llvm_attributes``: attributes that LLVM does not
    derive from its triple and that name; ``llvm_abi``: its calling convention, "" for the triple's.
    ``prices``: the core whose kernel prices apply, "" for none.
    """

    instructions: tuple[str, ...]
    gcc: str
    libraries: str
    llvm_triple: str
    llvm_cpu: str
    llvm_attributes: tuple[str, ...]
    llvm_abi: str
    prices: str


@dataclass(frozen=True, kw_only=True)
class CoreModel:
    """A core: ``variants`` are the full core, then variants of chips that lack some instructions.

    ``architecture``: the name of its family (``tvm_serenity.architectures``); ``cycles``: the core
    whose timing table applies, "" for none; ``qemu``: a QEMU machine that runs its programs, None
    without one.
    """

    name: str
    title: str
    source: str
    architecture: str
    cycles: str
    qemu: str | None
    variants: tuple[CoreIsa, ...]

    def variant(self, instructions: Iterable[str]) -> CoreIsa | None:
        """Return the variant with exactly these instruction sets, or None."""
        wanted = set(instructions)
        return next((v for v in self.variants if set(v.instructions) == wanted), None)


def core_files() -> tuple[str, ...]:
    """Return the names of the cores in the package, sorted."""
    files = (resources.files("tvm_serenity.targets") / "cores").iterdir()
    return tuple(sorted(f.name.removesuffix(".toml") for f in files if f.name.endswith(".toml")))


def core_table(spec: str, beside: Path | None = None) -> TomlTable:
    """Return the file of the core ``spec``: one of ``core_files()``, or a ``.toml`` file.

    A file is searched in the folder ``beside``. Raises :class:`InputError`, which names the file.
    """
    if spec.endswith(".toml"):
        path = Path(spec) if beside is None else beside / spec
        try:
            return _parsed(str(path), read_text(path))
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"{path}: cannot be read: {reason}") from None
    if spec not in core_files():
        known = ", ".join(core_files())
        raise InputError(
            f"unknown core {spec!r}; there are {known}; or describe yours in a .toml file with a "
            "table [isa], and name that file"
        )
    file = resources.files("tvm_serenity.targets") / "cores" / f"{spec}.toml"
    return _parsed(f"cores/{file.name}", file.read_text(encoding="utf-8"))


def _parsed(where: str, text: str) -> TomlTable:
    try:
        data: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ParseError(f"{where}: {error}") from None
    return TomlTable(where, "", data).only("name", "title", "source", "isa", *TIMING)


def core_model(spec: str, beside: Path | None = None) -> CoreModel:
    """Return the core that ``spec`` names, from the file of :func:`core_table`.

    Raises :class:`ParseError`, which names file and key.
    """
    top = core_table(spec, beside)
    isa = top.table("isa")
    if isa is None:
        raise top.error("the table 'isa' is missing; it lists the instruction sets")
    isa.only(*CoreIsa.__dataclass_fields__, "architecture", "cycles", "qemu", "without")
    name = top.text("name")
    family = isa.choice("architecture", tuple(ARCHITECTURES))
    full = _full_core(isa, name, family)
    return CoreModel(
        name=name,
        title=top.text("title"),
        source=top.text("source"),
        architecture=family,
        cycles=isa.text("cycles", spec if "pipeline" in top.data else ""),
        qemu=isa.text("qemu", "") or None,
        variants=(full, *(_without(t, full) for t in isa.tables("without"))),
    )


def _full_core(isa: TomlTable, name: str, family: str) -> CoreIsa:
    optional = () if family in TOOLCHAINS else ("",)
    return CoreIsa(
        instructions=_names(isa, INSTRUCTIONS),
        gcc=isa.text("gcc", *optional),
        libraries=isa.text("libraries", ""),
        llvm_triple=isa.text("llvm_triple", *optional),
        llvm_cpu=isa.text("llvm_cpu", name),
        llvm_attributes=_texts(isa, "llvm_attributes", ()),
        llvm_abi=isa.text("llvm_abi", ""),
        prices=isa.text("prices", ""),
    )


def _without(table: TomlTable, full: CoreIsa) -> CoreIsa:
    """Return a variant that lacks the table's ``instructions`` and else equals the full core."""
    table.only(*CoreIsa.__dataclass_fields__)
    out = _names(table, full.instructions)
    return CoreIsa(
        instructions=tuple(i for i in full.instructions if i not in out),
        gcc=table.text("gcc", full.gcc),
        libraries=table.text("libraries", full.libraries),
        llvm_triple=table.text("llvm_triple", full.llvm_triple),
        llvm_cpu=table.text("llvm_cpu", full.llvm_cpu),
        llvm_attributes=_texts(table, "llvm_attributes", full.llvm_attributes),
        llvm_abi=table.text("llvm_abi", full.llvm_abi),
        prices=table.text("prices", full.prices),
    )


def _names(table: TomlTable, known: Iterable[str]) -> tuple[str, ...]:
    names = _texts(table, "instructions", None)
    for name in names:
        if name not in known:
            raise table.error(f"'instructions' has {name!r}; there are {', '.join(known)}")
    return names


def _texts(table: TomlTable, key: str, default: tuple[str, ...] | None) -> tuple[str, ...]:
    if default is not None and key not in table.data:
        return default
    values = table.get(key, list)
    if not all(isinstance(one, str) for one in values):
        raise table.error(f"{key!r} must be a list of strings")
    return tuple(values)
