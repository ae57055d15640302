"""A builder and a runner for MetaSchedule that work in this process.

Its own start processes for each kernel, which import TVM first: seconds a kernel. What is tried
here are tiles of lean schedules, which neither crash nor hang.
"""

from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm.ir.utils import derived_object

from tvm_serenity.validation.inputs import Parameter, drawn

NUMBER, LEAST_MS = 3, 5
"""Runs of a trial at least, and milliseconds of them."""


def builder(folder: Path) -> Any:
    """Return a builder that compiles each candidate to a library of its own below ``folder``."""
    from tvm.s_tir import meta_schedule as ms

    class Builder(ms.builder.PyBuilder):  # type: ignore[misc]
        """It."""

        count = 0

        def build(self, build_inputs: list[ms.builder.BuilderInput]) -> list[Any]:
            """Return where each candidate's library lies, or what stopped it."""
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
        """What was measured already."""

        def __init__(self, seconds: list[float]) -> None:
            super().__init__()
            self.seconds = seconds

        def done(self) -> bool:
            """Return that it is."""
            return True

        def result(self) -> Any:
            """Return the seconds."""
            return ms.runner.RunnerResult(self.seconds, None)

    class Runner(ms.runner.PyRunner):  # type: ignore[misc]
        """It."""

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
