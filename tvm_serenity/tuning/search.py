"""Searches register tiles on this machine, by TVM's MetaSchedule with its XGBoost cost model.

The search space contains the register tiles of ``kernels.tile``, with and without vectors; each
point is a lean kernel. MetaSchedule copies kernels through TVM's JSON form, which crashes TVM 0.27
with apache-tvm-ffi 0.1.15.
"""

import logging
import math
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import tvm
from tvm import s_tir, tirx

from tvm_serenity.errors import MissingPartError
from tvm_serenity.kernels.lean import inline_stages, may_change
from tvm_serenity.kernels.tile import Tiling, tiled, tiling_for
from tvm_serenity.tuning.workers import builder, runner

CHANNELS, COLUMNS = 32, 8
"""The largest register tile of the search, in channels and columns."""
POPULATION = 32
"""Number of tiles that the cost model ranks per round; a kernel has about a hundred tiles."""


def check_parts() -> None:
    """Raise :class:`MissingPartError` if MetaSchedule or its cost model cannot run."""
    try:
        import xgboost  # noqa: F401
    except ImportError:
        raise MissingPartError("tuning needs xgboost: pip install 'tvm-serenity[tune]'") from None
    check_serialisation()


def searched(
    kernel: tirx.PrimFunc, target: tvm.target.Target, trials: int, seed: int = 0
) -> dict[Tiling, float]:
    """Return up to ``trials`` tiles of a kernel with their least seconds, the fastest first.

    ``kernel``: a PrimFunc in block form for which :func:`spaces` has tiles.
    """
    logger = logging.getLogger("tvm.s_tir.meta_schedule")
    logger.setLevel(logging.WARNING)
    for handler in [h for h in logger.handlers if h.get_name() is None]:
        # Remove other libraries' handlers; MetaSchedule adds its own by name.
        logger.removeHandler(handler)
    seconds: dict[Tiling, float] = {}
    for record in _search(_workload(kernel), target, trials, seed):
        if record.run_secs:
            tile = _tiling_of(record.trace)
            seconds[tile] = min(seconds.get(tile, math.inf), *(float(s) for s in record.run_secs))
    return dict(sorted(seconds.items(), key=lambda pair: pair[1]))


def check_serialisation() -> None:
    """Raise :class:`MissingPartError` if the installed apache-tvm-ffi would crash TVM."""
    version = metadata.version("apache-tvm-ffi")
    if tuple(int(part) for part in version.split(".")[:3]) >= (0, 1, 15):
        raise MissingPartError(
            f"tuning needs apache-tvm-ffi below 0.1.15, but {version} is installed; run "
            "pip install 'apache-tvm-ffi<0.1.15'"
        )


def evolution() -> Any:
    """Return MetaSchedule's evolutionary search with a population for small search spaces."""
    from tvm.s_tir import meta_schedule as ms

    return ms.search_strategy.EvolutionarySearch(
        population_size=POPULATION,
        init_min_unmeasured=8,
        genetic_num_iters=1,
        genetic_max_fail_count=4,
    )


def _search(module: tvm.IRModule, target: tvm.target.Target, trials: int, seed: int) -> list[Any]:
    """Return MetaSchedule's records of the measured tiles of one kernel."""
    from tvm.s_tir import meta_schedule as ms

    vectors = tiling_for(target).vector
    space = ms.space_generator.ScheduleFn(
        lambda schedule: _designs(schedule, vectors), sch_rules=[], postprocs=[], mutator_probs={}
    )
    database = ms.database.MemoryDatabase()
    with tempfile.TemporaryDirectory() as folder, _without_intrinsics():
        ms.tune_tir(
            module,
            target=_counted(target),
            work_dir=folder,
            max_trials_global=trials,
            num_trials_per_iter=min(trials, 16),
            builder=builder(Path(folder)),
            runner=runner(),
            database=database,
            cost_model="xgb",
            space=space,
            strategy=evolution(),
            num_tuning_cores=1,
            seed=seed + 1,
        )
        return list(database.get_all_tuning_records())


def _tiling_of(trace: s_tir.Trace) -> Tiling:
    """Return the tile that the decisions of ``trace`` give."""
    sizes = [[int(v) for v in decision] for decision in trace.decisions.values()]
    vector = any(inst.kind.name == "Vectorize" for inst in trace.insts)
    columns = sizes[0][-1] if len(sizes) > 1 else 1
    return Tiling(sizes[-1][-1], columns, vector)


@contextmanager
def _without_intrinsics() -> Iterator[None]:
    """Prevent MetaSchedule from importing all hardware intrinsics, which would take 40 s."""
    name = "tvm.s_tir.tensor_intrin"
    if name in sys.modules:
        yield
        return
    sys.modules[name] = ModuleType(name)
    try:
        yield
    finally:
        del sys.modules[name]
        vars(s_tir).pop("tensor_intrin", None)


def spaces(kernel: tirx.PrimFunc, target: tvm.target.Target) -> int:
    """Return the number of search spaces of a kernel.

    0: there are no tiles; 1: scalar tiles; 2: scalar and vector tiles.
    """
    if not may_change(kernel):
        return 0
    return len(_designs(s_tir.Schedule(_workload(kernel)), tiling_for(target).vector))


def _designs(schedule: s_tir.Schedule, vectors: bool) -> list[Any]:
    """Return the spaces of a kernel: scalar tiles, and vector tiles if the machine has vectors."""
    inline_stages(schedule)
    designs = []
    for vector in (True, False) if vectors else (False,):
        copy = schedule.copy()
        if tiled(copy, Tiling(CHANNELS, COLUMNS, vector), sample=True):
            designs.append(copy)
    return designs


def _workload(kernel: tirx.PrimFunc) -> Any:
    return tvm.IRModule({"main": kernel.with_attr("global_symbol", "main")})


def _counted(target: tvm.target.Target) -> Any:
    """Return ``target`` with a core count of 1, because MetaSchedule requires a count."""
    return tvm.target.Target({**target.export(), "num-cores": 1})
