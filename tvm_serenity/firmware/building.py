"""Builds a firmware project from a model: in a temporary folder, checked, then moved to the output.

    build("kws.tflite", "netduinoplus2", Settings(output="kws"))

The temporary folder replaces ``output`` only after the project is linked, fits the board and
computes the expected results. Before that, ``output`` is not changed.
"""

import hashlib
import json
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tvm_serenity.boards import Board
from tvm_serenity.boards import board as known_board
from tvm_serenity.errors import FitError
from tvm_serenity.firmware.board.compiler import check_compiler
from tvm_serenity.firmware.board.fit import Fit, boards_that_do, constants_fit, fit, shortage
from tvm_serenity.firmware.c_names import identifier
from tvm_serenity.firmware.check.report import CheckReport, why_not
from tvm_serenity.firmware.check.unknown import UNKNOWN, unknown_steps
from tvm_serenity.firmware.emit.project import Files, Layout, check_target, output_folder
from tvm_serenity.firmware.finishing import Unfinished, finish, origin_metadata
from tvm_serenity.firmware.kept import kept
from tvm_serenity.firmware.place.memory_map import slower_memory
from tvm_serenity.firmware.program import Array
from tvm_serenity.firmware.result import Project
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.graph import text
from tvm_serenity.offchip.transfers import certificate
from tvm_serenity.options.option import flags_of, options_of
from tvm_serenity.options.output import PROJECT
from tvm_serenity.quantize.choices import OFF
from tvm_serenity.system.files import ZOO, is_builtin

if TYPE_CHECKING:
    from tvm_serenity.firmware.compile.compiled import Compiled
    from tvm_serenity.firmware.compile.model import Model


def build(model: "Model", board: Board | str, settings: Settings | None = None) -> Project:
    """Return the firmware project of ``model`` for ``board``; write it to ``settings.output``.

    ``model`` is the path of a ``.tflite``, ``.onnx`` or ``.pt2`` file, what ``load`` returned for
    it, "zoo:NAME" for a built-in network, a ``torch.export`` program, or a Relax module (of these
    two ``settings.model`` may name the file they were made from); ``board`` is a board, the name of
    a known one, or the path of a ``.toml`` file.

    Raises :class:`FitError` with the figures where it does not fit, :class:`WrongResultError` where
    a kernel or the network computes something else than TVM's kernels or the model's own runtime,
    :class:`UnsupportedError` naming the operator that cannot be built, :class:`InputError` for what
    cannot be read or written. In each case nothing is written.
    """
    settings = settings or Settings()
    target = board if isinstance(board, Board) else known_board(board)
    if settings.output is not None:
        check_target(Path(settings.output), settings.force)
    check_compilers(target, settings)
    return kept(model, target, settings, lambda read: _built(read, target, settings))


def _built(model: "Model", target: Board, settings: Settings) -> Project:
    """Return the project, built without the cache."""
    from tvm_serenity.firmware.compile.model import opened

    found = opened(model, settings)
    from tvm_serenity.firmware.compile.driver import loose
    from tvm_serenity.firmware.compile.fallback import make

    name = identifier(settings.name or (_stem(found.file) if found.file else "model"))
    made = make(found.module, name, target, settings)
    origin = Origin(found.file, found.runtime_file, loose(found.module, settings))
    return finished(made, target, settings, origin)


def check_compilers(board: Board, settings: Settings) -> None:
    """Raise :class:`UnsupportedError` if a compiler of the build does not support the core.

    The compilers are the installed C compiler, and LLVM if it compiles the kernels.
    """
    check_compiler(board)
    if settings.codegen == "llvm":
        from tvm_serenity.firmware.lower.llvm import check_core

        check_core(board)


@dataclass(frozen=True)
class Origin:
    """The source of a network: its file, if it has one, and the file its runtime computes.

    The reference runtime confirms the outputs. ``loose``: why they may deviate more from it than
    the tolerance, or "".
    """

    file: str | None
    runtime_file: str | None
    loose: str = ""


def finished(made: "Compiled", board: Board, settings: Settings, origin: Origin) -> Project:
    """Return the project of a network that is already compiled for ``board``; as ``build`` does."""
    from tvm_serenity.firmware.compile.driver import checked

    checked(made)
    with output_folder(settings.output, settings.force) as folder:
        return _Work(made, board, settings, origin).done(folder)


def _digest(file: str | None) -> str | None:
    """Return the SHA-256 of a model's file; None if there is no file."""
    if file is None or is_builtin(file) or not Path(file).is_file():
        return None
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def _stem(file: str) -> str:
    """Return the name of a model's file, or of a built-in network without its parameters."""
    return Path(file.removeprefix(ZOO).partition("?")[0]).stem


@dataclass(frozen=True)
class _Work:
    """The inputs of a build: program, board, settings and origin."""

    made: "Compiled"
    board: Board
    settings: Settings
    origin: Origin

    def done(self, folder: Path) -> Project:
        """Write, measure and check the project in ``folder``; return it."""
        if not constants_fit(self.board, self.made.program.constant_bytes):
            self.fitted(None)
        s = self.settings
        unfinished = Unfinished(
            program=self.made.program,
            layout=self.layout(),
            form=s.format,
            output=s.output,
            check=s.check,
            fitted=self.fitted,
            compared=self.compared,
            drawn=self.drawn,
            extra_files=self.transfers(),
            notify=s.notify,
        )
        return finish(unfinished, folder)

    def layout(self) -> Layout:
        """Return the layout of the project."""
        s, file = self.settings, self.origin.file
        about = origin_metadata(
            None if file is None else Path(file).name,
            _digest(file),
            self.command(),
            {"kept_float": list(self.made.kept_float), "loose": self.origin.loose},
        )
        external = s.external_arena
        return Layout(self.board, s.stack_bytes, external, about, s.kernel_set, s.extend)

    def command(self) -> str | None:
        """Return the command of the build, without folders; None for a module in memory."""
        file, settings = self.origin.file, self.settings
        if file is None:
            return None
        names = [n for n in options_of(Settings) if n not in ("output", "force", "check", "name")]
        model = file if is_builtin(file) else Path(file).name
        words = ["serenity", "build", model, "--board", self.board.name, "--minimise", OFF]
        if settings.labels is not None:
            settings = replace(settings, labels=Path(settings.labels).name)
        if settings.kernel_set is not None:
            settings = replace(settings, kernel_set=Path(settings.kernel_set).name)
        words += ["--name", self.made.program.name, *flags_of(settings, names)]
        return shlex.join([*words, "-o", self.made.program.name])

    def drawn(self) -> dict[str, Any]:
        """Return the description of the random inputs of the comparison."""
        from tvm_serenity.firmware.validate.reference import drawn_from

        return drawn_from(self.made)

    def transfers(self) -> Files:
        """The transfer plan and its graph, for ``serenity check`` and ``serenity offchip``."""
        plan = self.made.transfers
        if plan is None:
            return {}
        name = self.made.program.name
        return {
            f"{name}_transfers.json": (json.dumps(certificate(plan), indent=1) + "\n").encode(),
            f"{name}_graph.txt": text.dump(plan.graph).encode(),
        }

    def fitted(self, code: int | None) -> dict[str, Any]:
        """Return the figures with ``code`` bytes of code, or raise :class:`FitError`."""
        made, stack = self.made, self.settings.stack_bytes
        copied = made.program.copied_bytes
        found = fit(self.board, made.placed, made.program.constant_bytes, stack, code, copied)
        arena = sum(made.placed.arena_bytes.values())
        limit = self.settings.limit_bytes
        fits = found.fits and made.placed.fits and self.settings.allows(arena)
        facts = self.facts(found, code, fits)
        if not fits:
            flash = found.lines[0].need_bytes
            facts["boards"] = list(boards_that_do(arena + copied, flash, stack))
            if made.transfers is None and not found.fits and not found.lines[0].shortfall_bytes:
                facts["stream_from"] = slower_memory(self.board)
            raise FitError(shortage(found, arena, limit, self.beyond()), facts)
        return facts

    def beyond(self) -> str:
        """Return why the fast memory that is asked for is not enough; "" if it is."""
        plan, asked = self.made.transfers, self.settings.fast_memory_bytes
        if plan is None or asked is None or plan.fast_bytes <= asked:
            return ""
        return (
            f"bands of rows need {plan.fast_bytes:,} bytes of fast memory, {asked:,} are allowed; "
            "give more with --fast-memory, fewer --rows, or --rows off for unsplit tensors"
        )

    def facts(self, found: Fit, code: int | None, fits: bool) -> dict[str, Any]:
        """Return the facts for JSON, before the comparisons."""
        from tvm_serenity.firmware.compile.driver import facts

        made = self.made
        return {
            "model": self.origin.file,
            "board": self.board.name,
            "fits": fits,
            "arena_bytes": dict(made.placed.arena_bytes),
            "arena_limit_bytes": self.settings.limit_bytes,
            "constant_bytes": made.program.constant_bytes,
            "code_bytes": code,
            **facts(made),
            "regions": found.json(),
            "blob": None,
            "peak": [{"name": r.name, "size_bytes": r.size_bytes} for r in found.peak],
            "boards": [],
            "stream_from": None,
        }

    def compared(self, texts: Files) -> tuple[CheckReport, dict[str, Array]]:
        """Compare kernels and network; return the report, and the expected value of every tensor.

        ``texts`` are the files of the project.
        """
        report, reference = self.checked(texts)
        if not reference or not self.made.program.users:
            return report, reference
        return report, {**reference, UNKNOWN: np.array(unknown_steps(self.made.program), np.int64)}

    def checked(self, texts: Files) -> tuple[CheckReport, dict[str, Array]]:
        """Compare as ``compared``; the result does not name the tensors that are not checked."""
        from tvm_serenity.firmware.validate.compare import Compared
        from tvm_serenity.firmware.validate.reference import reference

        made, settings = self.made, self.settings
        skipped = why_not(settings.check)
        if skipped:
            settings.notify("computing the reference")
            wanted = settings.format == PROJECT
            return CheckReport(skipped=skipped), reference(
                made, model=self.origin.runtime_file
            ) if wanted else {}
        return Compared(made, texts, settings, self.origin.runtime_file, self.origin.loose).done()
