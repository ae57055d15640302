"""A kernel set: templates of kernels for a core, which run every model that needs no others."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.firmware.integers import template
from tvm_serenity.firmware.kernels.sources import texts
from tvm_serenity.firmware.program import Kernel, LibraryFile, Param, Program

DIGEST_BYTES = 8
SET_FILE = "kernel_set.json"
"""The file that describes the kernel set of a folder."""
MOST_KERNELS = 255
"""The most kernels of a set: a loaded model has their numbers in bytes."""


@dataclass(frozen=True)
class SetKernel:
    """A kernel of a set; ``name`` is that of the layer it was first made for.

    ``text`` is the template of its body, ``integers`` the count of integers that it reads, and
    ``extents`` the elements of each local array, the most of all layers that the set was made for.
    ``digest`` identifies all but name and extents: the code that a blob needs.
    """

    name: str
    params: tuple[Param, ...]
    text: str
    support: tuple[LibraryFile, ...]
    restrict: bool
    integers: int
    extents: tuple[int, ...]
    digest: str

    def with_extents(self, extents: Sequence[int]) -> "SetKernel":
        """Return the kernel with local arrays that also hold ``extents`` elements."""
        return replace(self, extents=tuple(map(max, self.extents, extents)))


@dataclass(frozen=True)
class KernelSet:
    """The kernels of a set; ``name`` is the prefix of its C names.

    ``arena_bytes``: the largest arena of the models that the set was made for.
    """

    name: str
    core: str
    arena_bytes: int
    kernels: tuple[SetKernel, ...]

    @cached_property
    def number(self) -> Mapping[str, int]:
        """The place of each kernel in the set, by its digest."""
        return {kernel.digest: i for i, kernel in enumerate(self.kernels)}


def in_set(kernel: Kernel) -> tuple[SetKernel, tuple[int, ...]]:
    """Return the kernel without the integers of its layer, and these integers."""
    made = template(kernel.body)
    digest = digest_of(replace(kernel, body=made.text), len(made.integers), len(made.extents))
    found = SetKernel(
        kernel.name,
        kernel.params,
        made.text,
        kernel.support,
        kernel.restrict,
        len(made.integers),
        made.extents,
        digest,
    )
    return found, made.integers


def kernel_set(program: Program, core: str) -> KernelSet:
    """Return the kernel set that ``program`` needs on the core named ``core``."""
    empty = KernelSet(program.name, core, 0, ())
    return extended(empty, program)


def extended(known: KernelSet, program: Program) -> KernelSet:
    """Return the kernel set with all that ``program`` needs too; its kernels keep their places.

    Raises :class:`InputError` if the set would have too many kernels, or if its own are of another
    version of the kernel library.
    """
    check_library(known)
    kernels = {kernel.digest: kernel for kernel in known.kernels}
    for kernel in program.kernels:
        found, _ = in_set(kernel)
        kernels[found.digest] = kernels.get(found.digest, found).with_extents(found.extents)
    if len(kernels) > MOST_KERNELS:
        raise InputError(
            f"{program.name}: a kernel set has at most {MOST_KERNELS} kernels, this one needs "
            f"{len(kernels)}; build a set for fewer models"
        )
    arena_bytes = max(known.arena_bytes, *program.arena_bytes.values())
    return replace(known, arena_bytes=arena_bytes, kernels=tuple(kernels.values()))


def missing(known: KernelSet, program: Program) -> list[str]:
    """Return what the set lacks of the kernels of ``program``, by their names, with the reason."""
    reasons = []
    for kernel in program.kernels:
        found, _ = in_set(kernel)
        at = known.number.get(found.digest)
        file = f" ({kernel.support[0].path.partition('/')[0]})" if kernel.support else ""
        if at is None:
            reasons.append(f"{kernel.name}{file}")
        elif any(a > b for a, b in zip(found.extents, known.kernels[at].extents, strict=True)):
            reasons.append(f"{kernel.name}{file} with larger local arrays")
    return reasons


def set_for(program: Program, core: str, folder: str | Path | None, extend: bool) -> KernelSet:
    """Return the kernel set that runs ``program``: its own, or that of ``folder``.

    ``extend``: the set of the folder with the kernels that it lacks. Raises
    :class:`UnsupportedError` naming the kernels that the set lacks, and :class:`InputError` if it
    is for another core.
    """
    if folder is None:
        return kernel_set(program, core)
    known = read_set(folder)
    if known.core != core:
        raise InputError(
            f"{folder}: the kernel set is for {known.core}, and the board has {core}; name a board "
            "with that core, or build a set for this one"
        )
    if extend:
        return extended(known, program)
    lacking = missing(known, program)
    if lacking:
        raise UnsupportedError(
            f"{program.name}: the kernel set in {folder} lacks {len(lacking)} of "
            f"{len(program.kernels)} kernels: {', '.join(lacking)}; --extend makes a set with them"
        )
    return known


def used_by(known: KernelSet, program: Program) -> KernelSet:
    """Return the set with the kernels of ``program`` alone, and an arena of its size."""
    needed = {in_set(kernel)[0].digest for kernel in program.kernels}
    kernels = tuple(kernel for kernel in known.kernels if kernel.digest in needed)
    return replace(known, kernels=kernels, arena_bytes=max(program.arena_bytes.values()))


def set_json(known: KernelSet) -> str:
    """Return the description of a kernel set, which :func:`read_set` reads."""
    return json.dumps(asdict(known), indent=1) + "\n"


def read_set(folder: str | Path) -> KernelSet:
    """Return the kernel set of a folder that ``build --format blob`` wrote.

    Raises :class:`InputError` if the folder has none.
    """
    path = Path(folder) / SET_FILE
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        kernels = tuple(_kernel(one) for one in known["kernels"])
        return KernelSet(known["name"], known["core"], known["arena_bytes"], kernels)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read: {error.strerror}; name a folder that serenity build "
            "--format blob wrote"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: does not describe a kernel set; build it again") from error


def _kernel(known: Mapping[str, Any]) -> SetKernel:
    return SetKernel(
        known["name"],
        tuple(Param(**param) for param in known["params"]),
        known["text"],
        tuple(LibraryFile(**file) for file in known["support"]),
        known["restrict"],
        known["integers"],
        tuple(known["extents"]),
        known["digest"],
    )


def check_library(known: KernelSet) -> None:
    """Raise :class:`InputError` if kernels of the set are no longer those of the library."""
    for kernel in known.kernels:
        parts = Kernel(kernel.name, kernel.params, kernel.text, kernel.support, kernel.restrict)
        if digest_of(parts, kernel.integers, len(kernel.extents)) != kernel.digest:
            raise InputError(
                f"{known.name}: kernel {kernel.name} is of another version of tvm-serenity; build "
                "the set again from its models"
            )


def digest_of(kernel: Kernel, integers: int, extents: int) -> str:
    """Return what identifies the code of a kernel whose body is a template."""
    parts = [
        *(f"{p.dtype} {p.name} {p.readonly}" for p in kernel.params),
        f"{kernel.restrict} {integers} {extents}",
        kernel.body,
        *texts(kernel.support),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[: 2 * DIGEST_BYTES]
