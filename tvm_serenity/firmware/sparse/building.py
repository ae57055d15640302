"""Builds the firmware project of a sparse network whose connections have an order.

    build(net, found.order, "netduinoplus2", SparseSettings(memory=100, output="mlp"))

Before anything is written, the program runs on this machine: outputs must equal the naive reference
bit by bit, and the counted reads and writes the simulated ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tvm_serenity.boards import Board
from tvm_serenity.boards import board as known_board
from tvm_serenity.errors import FitError
from tvm_serenity.firmware.board.compiler import check_compiler
from tvm_serenity.firmware.board.fit import fit, shortage
from tvm_serenity.firmware.c_names import identifier
from tvm_serenity.firmware.check.calls import check as check_calls
from tvm_serenity.firmware.check.drawn_inputs import recorded
from tvm_serenity.firmware.check.host_run import rehearse, rehearse_more
from tvm_serenity.firmware.check.reference_runtime import NOTE
from tvm_serenity.firmware.check.report import CheckReport, host_build, why_not
from tvm_serenity.firmware.emit.forms import FORMS, forms_source
from tvm_serenity.firmware.emit.macros import MACROS, macros_source
from tvm_serenity.firmware.emit.project import Files, Layout, output_folder, project
from tvm_serenity.firmware.emit.trial import TRIAL, trial_source
from tvm_serenity.firmware.finishing import Unfinished, finish, origin_metadata
from tvm_serenity.firmware.program import Array
from tvm_serenity.firmware.result import Project
from tvm_serenity.firmware.sparse import reference
from tvm_serenity.firmware.sparse.interpreter import PlacedProgram, program
from tvm_serenity.firmware.sparse.words import inference
from tvm_serenity.options.memory import STACK_BYTES
from tvm_serenity.options.output import PROJECT
from tvm_serenity.sparse import FFNN, Policy, Traffic, simulate
from tvm_serenity.sparse.check import check_order
from tvm_serenity.sparse.simulate import policy_of
from tvm_serenity.validation.seeded_inputs import drawn_inputs

INPUTS = 8
"""The number of inputs on which the outputs are compared and recorded."""
COMPARED = "outputs, reads and writes as predicted on this machine"
"""The summary of the comparison."""


@dataclass(frozen=True, kw_only=True)
class SparseSettings:
    """The settings of the firmware of a sparse network.

    * ``memory``: the values of fast memory, one of which is the current connection; ``policy``: its
      evictions.
    * ``counted``: the program has an output of its reads and writes.
    * ``name``: the prefix of all C names; ``stack_bytes``: stack to keep free.
    * ``check``: compare before writing. ``format``: one of ``SOURCES``.
    * ``output``: the directory to write, None for none; ``force``: replace its content.
    * ``command``: the command that builds the project.
    """

    memory: int
    policy: Policy | str = Policy.MIN
    counted: bool = False
    name: str = "sparse"
    stack_bytes: int = STACK_BYTES
    check: bool = True
    format: str = PROJECT
    output: str | Path | None = None
    force: bool = False
    command: str | None = None


def build(net: FFNN, order: ArrayLike, board: Board | str, settings: SparseSettings) -> Project:
    """Return the firmware project of ``net`` for ``board``; write it to ``settings.output``.

    ``order``: connection numbers. Raises :class:`FitError` with the figures if it does not fit,
    :class:`WrongResultError` if outputs, or counted reads and writes, are not as predicted,
    :class:`InputError` for a wrong order or memory.
    """
    target = board if isinstance(board, Board) else known_board(board)
    check_compiler(target)
    with output_folder(settings.output, settings.force) as folder:
        return _SparseWork(net, order, target, settings).done(folder)


class _SparseWork:
    """A build: the network with its checked order and predicted I/Os, board and settings."""

    def __init__(self, net: FFNN, order: ArrayLike, board: Board, settings: SparseSettings) -> None:
        self.net, self.order = net, check_order(net, order)
        self.board, self.settings = board, settings
        self.policy = policy_of(settings.policy)
        self.traffic: Traffic = simulate(net, self.order, settings.memory, self.policy)
        self.inference = inference(net, self.order, settings.memory, self.policy)

    def done(self, folder: Path) -> Project:
        """Write, measure and check the project in ``folder``; return it."""
        s, placed = self.settings, self.program(self.settings.counted)
        check_calls(placed.program)
        unfinished = Unfinished(
            program=placed.program,
            layout=self.layout(),
            form=s.format,
            output=s.output,
            check=s.check,
            fitted=lambda code: self.fitted(placed, code),
            compared=lambda _texts: (self.compared(placed), self.expected(s.counted)),
            drawn=lambda: {"allowed": {}, "states": {}},
        )
        return finish(unfinished, folder)

    def program(self, counted: bool) -> PlacedProgram:
        """Return the program; ``counted``: with an output of its reads and writes."""
        sizes = len(self.net.inputs), len(self.net.outputs)
        name, stack = identifier(self.settings.name), self.settings.stack_bytes
        return program(name, self.inference, sizes, self.board, stack, counted)

    def layout(self) -> Layout:
        """Return the layout of the project."""
        own = {"kept_float": [], "loose": "", "sparse": self.predicted()}
        about = origin_metadata(None, None, self.settings.command, own)
        return Layout(self.board, self.settings.stack_bytes, metadata=about)

    def predicted(self) -> dict[str, Any]:
        """Return the I/Os that the simulator predicts, and the memory that they need."""
        return {
            "memory": self.settings.memory,
            "policy": str(self.policy),
            "reads": self.traffic.reads,
            "writes": self.traffic.writes,
            "slots": self.inference.slots,
            "spilled": self.inference.spilled,
        }

    def fitted(self, made: PlacedProgram, code: int | None) -> dict[str, Any]:
        """Return the figures with ``code`` bytes of code, or raise :class:`FitError`."""
        constants = made.program.constant_bytes
        found = fit(self.board, made.placed, constants, self.settings.stack_bytes, code)
        facts = {
            "board": self.board.name,
            "fits": found.fits and made.placed.fits,
            "arena_bytes": dict(made.placed.arena_bytes),
            "constant_bytes": constants,
            "code_bytes": code,
            "regions": found.json(),
            "sparse": self.predicted(),
        }
        if not facts["fits"]:
            raise FitError(shortage(found, sum(made.placed.arena_bytes.values()), None), facts)
        return facts

    def expected(self, counted: bool) -> dict[str, Array]:
        """Return the inputs and what the program must make of them."""
        first, *more = self.runs()
        results = self.results(first, counted)
        return {
            "input0": first,
            **{f"step{i}": one for i, one in enumerate(results)},
            **{f"output{i}": one for i, one in enumerate(results)},
            NOTE: np.array("a sparse network has no runtime; compared with float32 sums in order"),
            **recorded([([one], self.results(one, counted)) for one in more]),
        }

    def runs(self) -> list[Array]:
        """Return the inputs of the comparison, as ``verify`` draws them."""
        shape = [((len(self.net.inputs),), "float32")]
        return [drawn_inputs(shape, {}, seed)[0] for seed in range(INPUTS)]

    def results(self, inputs: Array, counted: bool) -> list[Array]:
        """Return the outputs for ``inputs``; ``counted``: the reads and writes too."""
        made: list[Array] = [reference.outputs(self.net, self.order.tolist(), inputs)]
        ios = np.array([self.traffic.reads, self.traffic.writes], np.int32)
        return [*made, ios] if counted else made

    def compared(self, made: PlacedProgram) -> CheckReport:
        """Compare outputs, reads and writes on this machine; return the report.

        A program without counters runs as it is, and once more with them.
        """
        skipped = why_not(self.settings.check)
        if skipped:
            return CheckReport(skipped=skipped)
        programs = [made] if self.settings.counted else [made, self.program(counted=True)]
        ran = [self.ran(one, counted=len(one.program.outputs) > 1) for one in programs]
        return ran[0]

    def ran(self, made: PlacedProgram, counted: bool) -> CheckReport:
        """Run a program on all inputs; raise :class:`WrongResultError` at a difference."""
        texts: Files = {
            **project(made.program, self.layout()),
            TRIAL: trial_source(made.program, external=False).encode(),
            FORMS: forms_source(made.program).encode(),
            MACROS: macros_source(made.program, []).encode(),
        }
        more: Sequence[Array] = self.runs()[1:]
        with host_build(made.program, texts, {}) as started:
            whole = rehearse(started.library, texts, self.expected(counted))
            answers = [
                {f"output{i}": one for i, one in enumerate(self.results(inputs, counted))}
                for inputs in more
            ]
            runs = [([inputs], want) for inputs, want in zip(more, answers, strict=True)]
            rehearse_more(started.library, texts, runs)
        whole = replace(whole, inputs=INPUTS)
        return CheckReport(kernels=1, sets=INPUTS, whole=whole, summary=COMPARED)
