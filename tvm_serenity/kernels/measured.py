"""What forms of kernels were measured to take, in a file: by class of target, and by kernel.

A kernel is known by its structural hash, a class by the best vector instructions of its targets
(``CLASSES``): tiles that win on one processor need not win on one with other instructions. Each
entry has the seconds of the usual form and of others, measured in alternation on one machine.
:data:`SHIPPED` is the file that comes with the library; ``serenity tune`` writes more.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import tvm
from tvm import tirx

from tvm_serenity import compat
from tvm_serenity.errors import InputError
from tvm_serenity.kernels.dot_shapes import Tile
from tvm_serenity.kernels.lean import LEAN, lean, may_change
from tvm_serenity.kernels.tile import Tiling
from tvm_serenity.kernels.workspace import workspace_of
from tvm_serenity.system.files import read_text, write_bytes
from tvm_serenity.tvm_targets import has_feature, names_processor

SHIPPED, NONE = "shipped", "none"
"""What is measured by default, and nothing: other names are files."""
TABLE = "measured_kernels.json"
CLASSES = ("avx512vnni", "avx512f", "avxvnni", "avx2", "dotprod", "neon")
"""Instructions, in LLVM's words, that tiles depend on; a target is of the first class it has."""
PLAIN = "plain"
"""The class of targets without any of them, or that name no processor."""
CLEAR = 0.95
"""The share of the usual form's time that another one takes at most to be taken."""


@dataclass(frozen=True)
class Form:
    """A form of a kernel: its tile (None: TVM's own schedule), seconds, and bytes of scratch."""

    tile: Tiling | Tile | None
    seconds: float
    scratch_bytes: int = 0

    def applied(self, kernel: tirx.PrimFunc) -> Any:
        """Return ``kernel``, as TVM made it, in this form: one that stays, whatever comes later."""
        return kernel.with_attr(LEAN, True) if self.tile is None else in_tile(kernel, self.tile)

    def text(self) -> str:
        """Return the form in words."""
        if self.tile is None:
            return "TVM's own"
        if isinstance(self.tile, Tile):
            return f"{self.tile.columns} columns x {self.tile.vectors} vectors"
        return f"{self.tile.channels} channels x {self.tile.columns} columns" + (
            "" if self.tile.vector else ", no vectors"
        )


@dataclass(frozen=True)
class Measured:
    """The seconds of a kernel's usual form, and other forms."""

    seconds: float
    forms: tuple[Form, ...] = ()

    def better(self) -> tuple[Form, ...]:
        """Return the forms that are clearly faster than the usual one, the fastest first."""
        fast = [form for form in self.forms if form.seconds <= CLEAR * self.seconds]
        return tuple(sorted(fast, key=lambda form: form.seconds))


@dataclass(frozen=True)
class KnownForms:
    """What was measured of kernels on targets of one class, by ``key_of``; ``source``: the file."""

    source: str
    target_class: str
    kernels: Mapping[str, Measured] = field(default_factory=dict)

    def of(self, kernel: tirx.PrimFunc) -> Measured | None:
        """Return what is known of a kernel as TVM made it; None of those that stay as they are."""
        if not self.kernels or not may_change(kernel):
            return None
        return self.kernels.get(key_of(kernel))

    def in_tiles(self) -> "KnownForms":
        """Return the same without forms of TVM's own schedule, which run in one thread."""
        kernels = {
            key: Measured(one.seconds, tuple(f for f in one.forms if f.tile is not None))
            for key, one in self.kernels.items()
        }
        return KnownForms(self.source, self.target_class, kernels)

    def leanest(self, tiling: Tiling) -> Callable[[Any], Any]:
        """Return ``kernel -> its fastest tile that needs no more scratch than the usual form``."""

        def form(kernel: tirx.PrimFunc) -> Any:
            usual, known = lean(kernel, tiling), self.of(kernel)
            for one in known.better() if known else ():
                if one.tile is not None:
                    made = one.applied(kernel)
                    if workspace_of(made) <= workspace_of(usual):
                        return made
            return usual

        return form


def in_tile(kernel: tirx.PrimFunc, tile: Tiling | Tile) -> Any:
    """Return the lean form of a kernel with a tile: a ``Tile`` of a packed layer."""
    return lean(kernel, dots=tile) if isinstance(tile, Tile) else lean(kernel, tile)


def key_of(kernel: tirx.PrimFunc) -> str:
    """Return by what a kernel is known, as TVM made it: the same in any process."""
    return f"{compat.structural_hash(kernel.without_attr('global_symbol')) & (2**64 - 1):016x}"


def class_of(target: tvm.target.Target) -> str:
    """Return the class of a target."""
    if not names_processor(target):
        return PLAIN
    return next((name for name in CLASSES if has_feature(target, name)), PLAIN)


def known_for(source: str | Path, target: tvm.target.Target) -> KnownForms:
    """Return what ``source`` (:data:`SHIPPED`, :data:`NONE`, or a file) holds for a target."""
    name = class_of(target)
    if str(source) == NONE:
        return KnownForms(NONE, name)
    found = _shipped() if str(source) == SHIPPED else read(Path(source))
    return KnownForms(str(source), name, found.get(name, {}))


def read(path: Path) -> dict[str, dict[str, Measured]]:
    """Return what a file holds, by class of target and kernel.

    Raises :class:`InputError` where it is none that ``serenity tune`` wrote.
    """
    try:
        return _decoded(json.loads(read_text(path)))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(
            f"{path}: holds no measured kernels ({error}); make them with serenity tune"
        ) from None


def write(found: Mapping[str, Measured], target_class: str, path: Path) -> None:
    """Write measured kernels to a file, beside what it holds of others and of other classes."""
    known = read(path) if path.exists() else {}
    known[target_class] = {**known.get(target_class, {}), **found}
    write_bytes(path, text_of(known).encode())


def text_of(known: Mapping[str, Mapping[str, Measured]]) -> str:
    """Return the text of a file: one line a kernel, sorted."""
    classes = []
    for name, kernels in sorted(known.items()):
        lines = [f'  "{key}": {json.dumps(_encoded(one))}' for key, one in sorted(kernels.items())]
        classes.append(f' "{name}": {{\n' + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(classes) + "\n}\n"


def _encoded(one: Measured) -> dict[str, Any]:
    forms = []
    for form in one.forms:
        tile = {} if form.tile is None else asdict(form.tile)
        usual = {f.name: f.default for f in fields(Tiling) if f.default is not MISSING}
        kept = {name: value for name, value in tile.items() if value != usual.get(name, MISSING)}
        measured = {"seconds": _rounded(form.seconds), "scratch_bytes": form.scratch_bytes}
        forms.append({**kept, **measured})
    return {"seconds": _rounded(one.seconds), "forms": forms}


def _rounded(seconds: float) -> float:
    return float(f"{seconds:.4g}")


def _decoded(found: Mapping[str, Any]) -> dict[str, dict[str, Measured]]:
    return {
        str(name): {
            str(key): Measured(float(one["seconds"]), tuple(map(_form, one["forms"])))
            for key, one in kernels.items()
        }
        for name, kernels in found.items()
    }


def _form(found: Mapping[str, Any]) -> Form:
    tile: Tiling | Tile | None = None
    if "vectors" in found:
        tile = Tile(int(found["columns"]), int(found["vectors"]))
    elif "channels" in found:
        tile = Tiling(**{f.name: found[f.name] for f in fields(Tiling) if f.name in found})
    return Form(tile, float(found["seconds"]), int(found["scratch_bytes"]))


@cache
def _shipped() -> dict[str, dict[str, Measured]]:
    text = (resources.files("tvm_serenity.kernels") / TABLE).read_text(encoding="utf-8")
    return _decoded(json.loads(text))
