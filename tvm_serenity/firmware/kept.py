"""The cache of projects: a build whose inputs have not changed is not repeated.

An entry is decided by the file's bytes and name, board, options, and the versions of this package,
of the packages that it computes with, and of the tools it runs; it holds what the build returned.
What has no file, or failed, is no entry. Nor is a build whose searches had a time limit of the
user's: a second run may find more, nor one for a kernel set, which is read from its folder.
"""

import io
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tvm_serenity.architectures import architecture
from tvm_serenity.boards import Board
from tvm_serenity.firmware.board.toolchain import SETTINGS, identity
from tvm_serenity.firmware.emit.project import replaced
from tvm_serenity.firmware.result import Project, packed
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.frontends import format_of, load
from tvm_serenity.frontends.labels import read_labels
from tvm_serenity.system import cache, sources
from tvm_serenity.system.files import ZOO

if TYPE_CHECKING:
    from tvm_serenity.firmware.compile.model import Model
    from tvm_serenity.frontends import ModelFile

EARLIER = "compared in an earlier run of the same build"
TOOLS = ("make", "cc")
"""Tools of every build, beside those of the board's architecture."""
PACKAGES = (
    *("apache-tvm", "apache-tvm-ffi", "numpy", "tflite", "ai-edge-litert"),
    *("onnx", "onnxruntime", "torch", "torchao", "executorch"),
)
"""Packages that read or compute a network."""
NOT_DECIDING = ("notify", "output", "force")
"""Settings that a project does not depend on."""
WRITTEN, RETURNED, ARRAYS, REST = "written", "returned", "arrays", "rest"
"""Parts of an entry: what the folder holds, the files, arrays and facts of the project."""


@dataclass(frozen=True)
class _Origin:
    """What a project is made of: the name of it that ``build`` reports, and all that was read."""

    name: str
    parts: tuple[str | bytes, ...]


def entries() -> cache.Cache | None:
    """Return the cache; tests that plant faults in a build put none in its place."""
    return cache.opened()


def kept(
    model: "Model",
    board: Board,
    settings: Settings,
    build: Callable[["Model"], Project],
    goal: str = "",
) -> Project:
    """Return what ``build`` returned for the same model, board, settings and goal, in any run.

    The project is written where ``settings`` say. A file is read once: ``build`` is given what was
    read of it.
    """
    held = entries()
    if held is None or settings.time_limit_s is not None or settings.kernel_set is not None:
        return build(model)
    model = _read(model, settings)
    origin = _origin(model)
    if origin is None:
        return build(model)
    name = _name(origin, board, settings, f"project {settings.output is not None} {goal}")
    entry = held.get(name)
    if entry is None:
        made = build(model)
        search = made.facts.get("search")
        if search is None or search["complete"]:  # an interrupted one may find more next time
            held.put(name, _packed(made))
        return made
    settings.notify("taking the project from an earlier run of the same build")
    return _unpacked(entry, origin, settings)


def key_of(model: "Model", board: Board, settings: Settings, kind: str) -> str | None:
    """Return the cache key of the result of ``kind`` for a model on a board.

    None for a model that is no single file: what decides it is not known.
    """
    origin = _origin(_read(model, settings))
    return None if origin is None else _name(origin, board, settings, kind)


def _read(model: "Model", settings: Settings) -> "Model":
    if not isinstance(model, str | os.PathLike) or str(model).startswith(ZOO):
        return model
    return load(model, settings.dims, settings.opaque, settings.signature)


def _origin(model: "Model") -> _Origin | None:
    """Return the file of ``model``; None for a model in memory, or of several files."""
    if isinstance(model, str | os.PathLike):
        return _Origin(str(model), (str(model),))
    if format_of(model) is None:
        return None
    file = cast("ModelFile", model)
    if getattr(file, "data_files", ()) or not file.path.is_file():
        return None
    read = [f"{name}={_plain(getattr(file, name, None))}" for name in ("dims", "opaque")]
    data = getattr(file, "data", None)
    changed = data if isinstance(data, bytes) else b""
    return _Origin(str(file.path), (file.path.name, file.path.read_bytes(), changed, *read))


def _name(origin: _Origin, board: Board, settings: Settings, kind: str) -> str:
    said = [
        f"{f.name}={_plain(getattr(settings, f.name))}"
        for f in fields(settings)
        if f.name not in NOT_DECIDING
    ]
    about = repr(replace(board, file="")), json.dumps(board.timing, default=str)
    tools = [identity(tool) for tool in (*TOOLS, *architecture(board.architecture).tools)]
    told = [f"{name}={os.environ.get(name)}" for name in SETTINGS]
    labels = () if settings.labels is None else read_labels(settings.labels)
    made_by = sources.own_digest(), sources.versions(*PACKAGES)
    return cache.key(kind, *made_by, *tools, *told, *about, *said, repr(labels), *origin.parts)


def _plain(value: Any) -> str:
    return repr(dict(value)) if isinstance(value, Mapping) else repr(value)


def _packed(made: Project) -> bytes:
    """Return a project as a cache entry."""
    folder = made.directory
    found = [] if folder is None else [p for p in folder.rglob("*") if p.is_file()]
    written = {p.relative_to(folder).as_posix(): p for p in found if folder is not None}
    rest = json.dumps({"metadata": made.metadata, "facts": made.facts}).encode()
    parts = {WRITTEN: cache.pack(written), RETURNED: cache.pack(made.files)}
    return cache.pack({**parts, ARRAYS: packed(made.reference), REST: rest})


def _unpacked(entry: bytes, origin: _Origin, settings: Settings) -> Project:
    """Return the project of a cache entry, written to the output of ``settings``."""
    held = cache.contents(entry)
    if settings.output is not None:
        with replaced(Path(settings.output), settings.force) as folder:
            cache.unpack(held[WRITTEN], folder)
    rest = json.loads(held[REST])
    with np.load(io.BytesIO(held[ARRAYS])) as arrays:
        reference = {name: arrays[name] for name in arrays.files}
    facts = {**rest["facts"], "model": origin.name}
    check = dict(facts["check"])
    if not check["skipped"]:
        check["text"] = f"{check['text']}; {EARLIER}"
    return Project(
        None if settings.output is None else Path(settings.output),
        rest["metadata"],
        reference,
        cache.contents(held[RETURNED]),
        {**facts, "check": check},
    )
