"""A builder and a runner for MetaSchedule that work in this process.

MetaSchedule's own ones start a process for each kernel, which imports TVM first: seconds per
kernel. The tiles measured here are lean schedules, which neither crash nor hang.
"""

from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm.ir.utils import derived_object

from tvm_serenity.validation.inputs import Parameter, drawn

NUMBER, LEAST_MS = 3, 5
"""Minimum runs of a trial, and their minimum milliseconds."""


def builder(folder: Path) -> Any:
    """Return a builder that compiles each candidate to a library of its own below ``folder``."""
    from tvm.s_tir import meta_schedule as ms

    class Builder(ms.builder.PyBuilder):  # type: ignore[misc]
        """A MetaSchedule builder without child processes."""

        count = 0

        def build(self, build_inputs: list[ms.builder.BuilderInput]) -> list[Any]:
            """Return the path of each candidate's library, or its error."""
            results = []
            for given in build_inputs:
                Builder.count += 1
                path = folder / f"{Builder.count}" / "kernel.so"  # MetaSchedule deletes its folder
                path.parent.mkdir()
                try:
                    tvm.compile(given.mod, target=given.target).export_library(str(path))
                    results.append(ms.builder.BuilderResult(str(path), None))
                except (RuntimeError, ValueError) as error:
                    results.append(ms.builder.BuilderResult(None, str(error)))
            return results

    return derived_object(Builder)()


def runner() -> Any:
    """Return a runner that times each library on random arguments."""
    from tvm.s_tir import meta_schedule as ms

    class Future(ms.runner.PyRunnerFuture):  # type: ignore[misc]
        """The result of a finished measurement."""

        def __init__(self, seconds: list[float]) -> None:
            super().__init__()
            self.seconds = seconds

        def done(self) -> bool:
            """Return True: the measurement is finished."""
            return True

        def result(self) -> Any:
            """Return the seconds."""
            return ms.runner.RunnerResult(self.seconds, None)

    class Runner(ms.runner.PyRunner):  # type: ignore[misc]
        """A MetaSchedule runner without child processes."""

        def run(self, runner_inputs: list[ms.runner.RunnerInput]) -> list[Any]:
            """Return the seconds of each library."""
            return [
                derived_object(Future)(_seconds(str(given.artifact_path), given.args_info))
                for given in runner_inputs
            ]

    return derived_object(Runner)()


def _seconds(library: str, infos: Any) -> list[float]:
    rng = np.random.default_rng(0)
    arguments = []
    for info in infos:
        _, dtype, shape = info.as_json()
        parameter = Parameter(tuple(int(extent) for extent in shape), str(dtype))
        arguments.append(tvm.runtime.tensor(drawn(parameter, "random", rng)))
    loaded = tvm.runtime.load_module(library)
    timed = loaded.time_evaluator(
        "main", tvm.cpu(), number=NUMBER, repeat=2, min_repeat_ms=LEAST_MS
    )
    return [float(seconds) for seconds in timed(*arguments).results]
