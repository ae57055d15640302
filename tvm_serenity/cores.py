"""Cores: what a processor executes, and what compiles, prices and emulates it.

    core_model("cortex-m33"), core_model("my-core.toml")

One file each, ``targets/cores/*.toml`` or one of the user's own, is all that is known of a core:
its table ``[isa]`` is read here, its timing by ``tvm_serenity.cycles.core``.
"""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from tvm_serenity.errors import InputError, ParseError
from tvm_serenity.system.files import read_text
from tvm_serenity.system.toml_table import TomlTable

INSTRUCTIONS = {
    "thumb1": "Thumb-1: 16-bit instructions, of registers r0 to r7",
    "thumb2": "Thumb-2",
    "dsp": "the DSP extension: two products of 16 bits an instruction",
    "mve": "vectors of 128 bits (Helium)",
    "fpu": "floats in hardware",
}
"""Sets of instructions that kernels, or the C library, are chosen by."""

TIMING = ("model", "pipeline", "instructions")
"""Keys of a core's file that are of its timing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreIsa:
    """A set of instructions, and what compiles for it.

    ``gcc``: the compiler's flags; ``llvm_attributes``: what LLVM does not know by its triple and
    the core's name. ``prices``: the core whose prices of kernels hold, "" for none.
    """

    instructions: tuple[str, ...]
    gcc: str
    llvm_triple: str
    llvm_attributes: tuple[str, ...]
    prices: str


@dataclass(frozen=True, kw_only=True)
class CoreModel:
    """A core: ``variants`` are the whole core, then what chips make of it that leave some out.

    ``compiler``: the program that compiles C for it; ``cycles``: the core whose timing table holds,
    "" for none; ``qemu``: a machine of QEMU that runs its programs, None without one.
    """

    name: str
    title: str
    source: str
    compiler: str
    cycles: str
    qemu: str | None
    variants: tuple[CoreIsa, ...]

    def variant(self, instructions: Iterable[str]) -> CoreIsa | None:
        """Return the variant that has exactly ``instructions``, None where there is none."""
        wanted = set(instructions)
        return next((v for v in self.variants if set(v.instructions) == wanted), None)


def core_files() -> tuple[str, ...]:
    """Return the names of the cores that come with the package, sorted."""
    found = (resources.files("tvm_serenity.targets") / "cores").iterdir()
    return tuple(sorted(f.name.removesuffix(".toml") for f in found if f.name.endswith(".toml")))


def core_table(spec: str, beside: Path | None = None) -> TomlTable:
    """Return the file of the core ``spec``: one of ``core_files()``, or a ``.toml`` file.

    A file is looked for in the folder ``beside``. Raises :class:`InputError` naming it.
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
            f"unknown core {spec!r}; there are {known}; describe yours in a file with a table "
            "[isa], and name that .toml file"
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
    """Return the core that ``spec`` names, as :func:`core_table` finds it.

    Raises :class:`ParseError` naming file and key.
    """
    top = core_table(spec, beside)
    isa = top.table("isa")
    if isa is None:
        raise top.error("'isa' is missing: which instructions the core has, and who compiles them")
    isa.only(*CoreIsa.__dataclass_fields__, "compiler", "cycles", "qemu", "without")
    name = top.text("name")
    whole = _whole(isa)
    return CoreModel(
        name=name,
        title=top.text("title"),
        source=top.text("source"),
        compiler=isa.text("compiler"),
        cycles=isa.text("cycles", spec if "pipeline" in top.data else ""),
        qemu=isa.text("qemu", "") or None,
        variants=(whole, *(_without(t, whole) for t in isa.tables("without"))),
    )


def _whole(isa: TomlTable) -> CoreIsa:
    return CoreIsa(
        instructions=_names(isa, INSTRUCTIONS),
        gcc=isa.text("gcc"),
        llvm_triple=isa.text("llvm_triple"),
        llvm_attributes=_texts(isa, "llvm_attributes", ()),
        prices=isa.text("prices", ""),
    )


def _without(table: TomlTable, whole: CoreIsa) -> CoreIsa:
    """A variant: ``instructions`` are those that it lacks, the rest is as in the whole core."""
    table.only(*CoreIsa.__dataclass_fields__)
    out = _names(table, whole.instructions)
    return CoreIsa(
        instructions=tuple(i for i in whole.instructions if i not in out),
        gcc=table.text("gcc", whole.gcc),
        llvm_triple=table.text("llvm_triple", whole.llvm_triple),
        llvm_attributes=_texts(table, "llvm_attributes", whole.llvm_attributes),
        prices=table.text("prices", whole.prices),
    )


def _names(table: TomlTable, known: Iterable[str]) -> tuple[str, ...]:
    found = _texts(table, "instructions", None)
    for name in found:
        if name not in known:
            raise table.error(f"'instructions' has {name!r}; there are {', '.join(known)}")
    return found


def _texts(table: TomlTable, key: str, default: tuple[str, ...] | None) -> tuple[str, ...]:
    if default is not None and key not in table.data:
        return default
    found = table.get(key, list)
    if not all(isinstance(one, str) for one in found):
        raise table.error(f"{key!r} is a list of strings")
    return tuple(found)
