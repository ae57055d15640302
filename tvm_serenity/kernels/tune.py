"""Tilings measured on the machine, by TVM's MetaSchedule with its XGBoost cost model.

The space holds the register tiles of ``kernels.tile``, with and without vectors: every point is a
lean schedule. What would need more scratch than the limit is not taken.

The tiles that won are kept in one file, by the structural hash of their kernel. MetaSchedule
copies kernels through TVM's JSON form, which crashes TVM 0.27 under apache-tvm-ffi 0.1.15.
"""

import json
import logging
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir.utils import derived_object

from tvm_serenity.errors import InputError, MissingPartError
from tvm_serenity.files import write_bytes
from tvm_serenity.kernels.lean import LEAN, inline_stages, lean, may_change
from tvm_serenity.kernels.records import Packed
from tvm_serenity.kernels.spec_read import kind_of
from tvm_serenity.kernels.tile import Tiling, tiled, tiling_for
from tvm_serenity.kernels.workspace import workspace_of

CHANNELS, COLUMNS = 32, 8
"""The largest tile that is tried."""
POPULATION = 32
"""Tiles drawn for the cost model to choose from; a kernel has about a hundred in all."""

Notify = Callable[[str], None]


@dataclass(frozen=True)
class Measured:
    """A kernel (by structural hash), its best tile, the seconds that takes, tiles measured."""

    name: str
    key: str
    tiling: Tiling
    seconds: float
    trials: int


def tune(
    kernels: Mapping[str, Any],
    target: tvm.target.Target,
    trials: int,
    seed: int = 0,
    notify: Notify = lambda _text: None,
) -> list[Measured]:
    """Measure up to ``trials`` tiles of each kernel.

    ``kernels`` are PrimFuncs in block form by name; those that no tile fits are left out.
    """
    try:
        import xgboost  # noqa: F401
    except ImportError:
        raise MissingPartError("tuning needs xgboost: pip install 'tvm-serenity[tune]'") from None
    if trials < 1:
        raise InputError(f"--trials {trials}: at least 1")
    check_serialisation()
    logger = logging.getLogger("tvm.s_tir.meta_schedule")
    logger.setLevel(logging.WARNING)
    for handler in [h for h in logger.handlers if h.get_name() is None]:
        logger.removeHandler(handler)  # of others: MetaSchedule sets its own up, by their names
    found = []
    for index, (name, kernel) in enumerate(kernels.items()):
        if not spaces(kernel, target):
            continue
        notify(f"{name} ({index + 1} of {len(kernels)})")
        records = _search(_workload(kernel), target, trials, seed)
        timed = [(min(float(s) for s in r.run_secs), r) for r in records if r.run_secs]
        if timed:
            seconds, best = min(timed, key=lambda pair: pair[0])
            tiling = _tiling_of(best.trace, kernel)
            found.append(Measured(name, _key(kernel), tiling, seconds, len(timed)))
    return found


def check_serialisation() -> None:
    """Raise :class:`MissingPartError` under a version of tvm-ffi that crashes TVM."""
    version = metadata.version("apache-tvm-ffi")
    if tuple(int(part) for part in version.split(".")[:3]) >= (0, 1, 15):
        raise MissingPartError(
            f"tuning needs apache-tvm-ffi below 0.1.15, {version} is installed: "
            "pip install 'apache-tvm-ffi<0.1.15'"
        )


def _search(module: tvm.IRModule, target: tvm.target.Target, trials: int, seed: int) -> list[Any]:
    """Measure tiles of one kernel; return MetaSchedule's records."""
    from tvm.s_tir import meta_schedule as ms

    vectors = tiling_for(target).vector
    space = ms.space_generator.ScheduleFn(
        lambda schedule: _designs(schedule, vectors), sch_rules=[], postprocs=[], mutator_probs={}
    )
    strategy = ms.search_strategy.EvolutionarySearch(
        population_size=POPULATION,
        init_min_unmeasured=8,
        genetic_num_iters=1,
        genetic_max_fail_count=4,
    )
    database = ms.database.MemoryDatabase()
    with tempfile.TemporaryDirectory() as folder, _without_intrinsics():
        ms.tune_tir(
            module,
            target=_counted(target),
            work_dir=folder,
            max_trials_global=trials,
            num_trials_per_iter=min(trials, 16),
            builder=_builder(Path(folder)),
            database=database,
            cost_model="xgb",
            space=space,
            strategy=strategy,
            num_tuning_cores=1,
            seed=seed + 1,
        )
        return list(database.get_all_tuning_records())


def _builder(folder: Path) -> Any:
    """A MetaSchedule builder that works in this process."""
    from tvm.s_tir import meta_schedule as ms

    class Builder(ms.builder.PyBuilder):  # type: ignore[misc]
        """Compiles each candidate to a library of its own."""

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


def _tiling_of(trace: s_tir.Trace, kernel: tirx.PrimFunc) -> Tiling:
    """The tile a trace decided on."""
    schedule = s_tir.Schedule(_workload(kernel))
    trace.apply_to_schedule(schedule, remove_postproc=False)
    sizes = [[int(v) for v in decision] for decision in trace.decisions.values()]
    vector = any(inst.kind.name == "Vectorize" for inst in trace.insts)
    columns = sizes[0][-1] if len(sizes) > 1 else 1
    return Tiling(sizes[-1][-1], columns, vector)


def write(found: list[Measured], path: Path) -> None:
    """Write the best tiles to a file, beside those that are there for other kernels."""
    known = _read(path) if path.exists() else {}
    for one in found:
        tile = {"channels": one.tiling.channels, "columns": one.tiling.columns}
        known[one.key] = {**tile, "vector": one.tiling.vector, "seconds": one.seconds}
    write_bytes(path, (json.dumps(known, indent=2) + "\n").encode())


def tuned(path: Path, target: tvm.target.Target, limit: int = 0) -> Callable[[Any], Any]:
    """Return ``kernel -> its best measured form``; its usual lean form where none was measured.

    ``limit``: bytes of scratch that a kernel may need at most.
    """
    known = _read(path)

    def best(kernel: tirx.PrimFunc) -> Any:
        usual = lean(kernel, tiling_for(target))
        tile = known.get(_key(kernel))
        if tile is None or LEAN in (kernel.attrs or {}):
            return usual
        made = lean(kernel, Tiling(tile["channels"], tile["columns"], tile["vector"]))
        return made if workspace_of(made) <= limit else usual

    return best


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path}: holds no tiles ({error}); make them with serenity tune"
        ) from None
    if not isinstance(found, dict):
        raise InputError(f"{path}: holds no tiles; make them with serenity tune")
    return found


def _key(kernel: tirx.PrimFunc) -> str:
    return f"{tvm_ffi.structural_hash(kernel.without_attr('global_symbol')) & (2**64 - 1):016x}"


@contextmanager
def _without_intrinsics() -> Iterator[None]:
    """Spare MetaSchedule the import of all hardware intrinsics, 40 s of parsing: none is used."""
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
    """Return how many forms of tiles fit a kernel: none, scalars, scalars and vectors."""
    if not may_change(kernel) or kind_of(kernel) == Packed.__name__:
        return 0
    return len(_designs(s_tir.Schedule(_workload(kernel)), tiling_for(target).vector))


def _designs(schedule: s_tir.Schedule, vectors: bool) -> list[Any]:
    """The spaces of a kernel: tiles of scalars, and of vectors where the machine has them."""
    inline_stages(schedule)
    found = []
    for vector in (True, False) if vectors else (False,):
        copy = schedule.copy()
        if tiled(copy, Tiling(CHANNELS, COLUMNS, vector), sample=True):
            found.append(copy)
    return found


def _workload(kernel: tirx.PrimFunc) -> Any:
    return tvm.IRModule({"main": kernel.with_attr("global_symbol", "main")})


def _counted(target: tvm.target.Target) -> Any:
    """The target with its number of cores, which MetaSchedule asks for: one."""
    return tvm.target.Target({**target.export(), "num-cores": 1})
