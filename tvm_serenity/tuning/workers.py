"""A builder and a runner for MetaSchedule that run in this process.

MetaSchedule's own builder and runner start a process per kernel, which imports TVM and so takes
seconds. Lean kernels do not crash or hang, so they need no process.
"""

from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm.ir.utils import derived_object

from tvm_serenity.validation.inputs import Parameter, drawn

NUMBER, LEAST_MS = 3, 5
"""Minimum number of runs of a trial, and minimum milliseconds of the runs."""


def builder(folder: Path) -> Any:
    """Return a builder that compiles each candidate to a separate library in ``folder``."""
    from tvm.s_tir import meta_schedule as ms

    class Builder(ms.builder.PyBuilder):  # type: ignore[misc]
        """A MetaSchedule builder without child processes."""

        count = 0

        def build(self, build_inputs: list[ms.builder.BuilderInput]) -> list[Any]:
            """Return, for each candidate, the path of its library or an error message."""
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
            """Return the measured seconds, or the error."""
            return ms.runner.RunnerResult(self.seconds, None)

    class Runner(ms.runner.PyRunner):  # type: ignore[misc]
        """A MetaSchedule runner without child processes."""

        def run(self, runner_inputs: list[ms.runner.RunnerInput]) -> list[Any]:
            """Measure each library; return one finished future per library."""
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
