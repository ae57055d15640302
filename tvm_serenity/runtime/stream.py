"""Streaming inference on the Relax VM: a network on a window that moves along a stream."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_serenity.errors import InputError
from tvm_serenity.relax.pipeline import Planning, pipeline_of
from tvm_serenity.relax.sliding import SlidingModule
from tvm_serenity.runtime.vm import compare
from tvm_serenity.sliding.steady import WINDOWS
from tvm_serenity.validation.network_inputs import inputs_of_seeds

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class WindowsRun:
    """Consecutive windows: input and outputs of each, and the outputs of the unsplit network.

    ``whole``: computed by TVM's own kernels, with states carried from window to window.
    """

    windows: list[Array]
    outputs: list[tuple[Array, ...]]
    whole: list[tuple[Array, ...]]

    @property
    def differ(self) -> int:
        """The number of windows whose outputs differ from those of the unsplit network."""
        pairs = zip(self.outputs, self.whole, strict=True)
        return sum(not compare(one, two)["identical"] for one, two in pairs)


def run_windows(made: SlidingModule, seed: int = 0, count: int = WINDOWS) -> WindowsRun:
    """Compile ``made`` for this machine and run it on ``count`` windows of a stream."""
    target = tvm.target.Target("llvm")
    pipeline = pipeline_of(planning=Planning(method="given"))
    network = SlidingNetwork(made, tvm.compile(made.module, target, relax_pipeline=pipeline))
    whole = relax.VirtualMachine(made.read.library, tvm.cpu())
    steady = made.found.steady
    source, height = steady.network.inputs[0], steady.network.rows(steady.source)
    shape = made.read.shape(source)
    states: list[Any] = [
        np.full(known.shape, known.initial, known.dtype)
        for known in made.kept[len(made.kept) - len(steady.states) :]
    ]
    stream = _stream(made, (steady.steps_to_fill + count - 1) * steady.step, seed)
    found = WindowsRun([], [], [])
    for end, row in enumerate(stream, start=1):
        outputs = network.feed_row(row)
        if outputs is None:
            continue
        window = stream[end - height : end].reshape(shape)
        results = whole["main"](*(tvm.runtime.tensor(array) for array in (window, *states)))
        arrays = [r.numpy() for r in ([results] if hasattr(results, "numpy") else results)]
        states = arrays[len(arrays) - len(states) :]
        found.windows.append(window)
        found.outputs.append(tuple(outputs))
        found.whole.append(tuple(arrays[: made.outputs]))
    return found


def _stream(made: SlidingModule, rows: int, seed: int) -> Array:
    """Return seeded rows, drawn as the network's input is."""
    steady, drawn = made.found.steady, list[Array]()
    height, inputs = steady.network.rows(steady.source), inputs_of_seeds(made.read.lowered)
    while len(drawn) * height < rows:
        first, *_ = inputs(seed + len(drawn))
        drawn.append(first.reshape(height, -1))
    return np.ascontiguousarray(np.concatenate(drawn)[:rows])


class SlidingNetwork:
    """A network that takes the rows of a stream and returns the outputs of each window.

    ``executable``: ``made.module`` compiled for this machine.
    """

    def __init__(
        self, made: SlidingModule, executable: relax.VMExecutable | tvm.runtime.Module
    ) -> None:
        self.made = made
        self.machine = relax.VirtualMachine(executable, tvm.cpu())
        self.restart()

    def restart(self) -> None:
        """Discard the rows of the stream so far."""
        self.rows: list[Array] = []
        self.steps = 0
        self.kept = [
            deque(
                [
                    tvm.runtime.tensor(np.full(known.shape, known.initial, known.dtype))
                    for _ in range(known.count)
                ]
                for _ in range(known.period)
            )
            for known in self.made.kept
        ]

    def feed_row(self, row: Array) -> tuple[Array, ...] | None:
        """Take the next row; with the last row of a step, compute the new rows of the window.

        Return the outputs of the window that ends with this row. Return None if no step ends here
        or the first window is not full. Raises :class:`InputError` for a row of another size or
        type.
        """
        steady, shape = self.made.found.steady, self.made.rows
        count = shape[1] if len(shape) == 4 else 1
        size = int(np.prod(shape)) // count
        if row.size != size or row.dtype != self.made.dtype:
            raise InputError(
                f"a row of {row.size} {row.dtype}: rows of the stream are {size} {self.made.dtype}"
            )
        self.rows.append(np.asarray(row).reshape(-1))
        if len(self.rows) < count:
            return None
        arrived = np.ascontiguousarray(np.stack(self.rows).reshape(shape))
        self.rows = []
        given = [tensor for phases in self.kept for tensor in phases.popleft()]
        found: Sequence[Any] = self.machine["main"](tvm.runtime.tensor(arrived), *given)
        results = list(found)
        outputs = tuple(value.numpy() for value in results[: self.made.outputs])
        at = self.made.outputs
        for phases, known in zip(self.kept, self.made.kept, strict=True):
            phases.append(results[at : at + known.count])
            at += known.count
        self.steps = min(self.steps + 1, steady.steps_to_fill)
        return outputs if self.steps == steady.steps_to_fill else None
