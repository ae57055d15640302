"""Reads the timing tables of cores, from ``targets/cores/*.toml`` or a user's file.

    core_timing("cortex-m4"), core_timing("my-core.toml")

A table holds the cycles of each instruction and the effects of neighbouring instructions, each with
its source.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tvm_serenity.cores import core_files, core_table
from tvm_serenity.cycles.families import MODELS
from tvm_serenity.errors import InputError
from tvm_serenity.system.toml_table import TomlTable

KINDS = (
    "alu",
    "multiply",
    "divide",
    "load",
    "load_many",
    "store",
    "store_indexed",
    "store_many",
    "branch",
    "branch_indirect",
    "branch_table",
    "it",
    "float",
    "float_load",
    "float_store",
    "barrier",
)
"""The kinds of instructions that differ in timing, in the order of ``cpp/cycles/row.hpp``."""

MOST_CYCLES = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """The timing of a group of instructions.

    ``cycles``: cycles to issue one instruction. ``most``: its maximum (a division depends on the
    bits of its quotient). Loads and stores of several registers take one more transfer for each
    additional register. ``latency``: cycles until another instruction can use the result, on a core
    that waits for results. ``late``: a float instruction right after this one waits
    for its result. ``alone``: never issued in the same cycle as another instruction.
    """

    kind: str
    cycles: int
    most: int
    latency: int
    late: bool
    alone: bool
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineModel:
    """The instruction fetch and issue of a core.

    ``issue``: instructions per cycle. ``waits_for_results``: an instruction waits until the latency
    of its operands has passed; else instructions cost what they do with their neighbours, as Arm's
    manuals tell it. A core that issues two waits. ``refill``: the minimum and maximum of cycles
    from a taken branch to the fetch of its target; on a core with a branch predictor, from a
    mispredicted branch. ``refill_indirect``: the same for a branch to an address in a register, and
    for ``jal``. ``predicts_last_backward``: the predictor knows the last backward branch that was
    taken, alone. The names of the other fields have their units.
    """

    issue: int
    fetch_bytes: int
    fetch_words: int
    refill: tuple[int, int]
    refill_indirect: tuple[int, int]
    load_overlap_cycles: int
    address_hazard_cycles: int
    float_hazard_cycles: int
    folds_it: bool
    misaligned_half_cycles: int
    misaligned_byte_cycles: int
    transfers_per_cycle: int
    loads_per_cycle: int
    branch_predictor_entries: int
    predicts_last_backward: bool
    waits_for_results: bool
    source: str

    @property
    def adds_costs(self) -> bool:
        """Whether the cycles of a program are the sum of those of its instructions."""
        return self.issue == 1 and not self.waits_for_results


@dataclass(frozen=True, kw_only=True)
class CoreTiming:
    """The timing table of a core.

    ``instructions``: maps a mnemonic to its timing; a form follows a ``+``, as in ``str+index``.
    """

    name: str
    title: str
    source: str
    model: str
    pipeline: PipelineModel
    instructions: Mapping[str, Instruction]


@cache
def core_names() -> tuple[str, ...]:
    """Return the sorted names of the cores with a timing table."""
    return tuple(name for name in core_files() if "pipeline" in core_table(name).data)


def core_timing(spec: str, beside: Path | None = None) -> CoreTiming:
    """Return the timing table ``spec``: a name of ``core_names()``, or the path of a TOML file.

    A relative path is relative to the folder ``beside``. Raises :class:`InputError`, which names
    the file and the invalid key.
    """
    if not spec.endswith(".toml") and spec not in core_names():
        known = ", ".join(core_names())
        raise InputError(
            f"there is no timing table {spec!r}; choose one of {known}, or give a .toml file"
        )
    return _parse(core_table(spec, beside))


def _parse(top: TomlTable) -> CoreTiming:
    pipeline = top.table("pipeline")
    if pipeline is None:
        raise top.error("'pipeline' is missing")
    instructions: dict[str, Instruction] = {}
    for group in top.tables("instructions"):
        instruction = _instruction(group)
        for name in group.text("names").split():
            if name in instructions:
                raise group.error(f"{name!r} is in two groups; list each instruction once")
            instructions[name] = instruction
    if not instructions:
        raise top.error("'instructions' is missing")
    return CoreTiming(
        name=top.text("name"),
        title=top.text("title"),
        source=top.text("source"),
        model=top.choice("model", MODELS),
        pipeline=_pipeline(pipeline),
        instructions=instructions,
    )


def _instruction(group: TomlTable) -> Instruction:
    keys = ("kind", "names", "cycles", "most_cycles", "latency", "late", "alone", "source")
    group.only(*keys)
    cycles = group.number("cycles", least=0, most=MOST_CYCLES)
    return Instruction(
        kind=group.choice("kind", KINDS),
        cycles=cycles,
        most=group.number("most_cycles", cycles, cycles, MOST_CYCLES),
        latency=group.number("latency", cycles, 0, MOST_CYCLES),
        late=group.flag("late", False),
        alone=group.flag("alone", False),
        source=group.text("source"),
    )


def _pipeline(table: TomlTable) -> PipelineModel:
    table.only(*PipelineModel.__dataclass_fields__)
    return PipelineModel(
        issue=table.number("issue", least=1, most=2),
        fetch_bytes=table.number("fetch_bytes", least=2, most=32),
        fetch_words=table.number("fetch_words", least=1, most=7),
        refill=table.pair("refill", MOST_CYCLES),
        refill_indirect=table.pair("refill_indirect", MOST_CYCLES),
        load_overlap_cycles=table.number("load_overlap_cycles", 0, most=1),
        address_hazard_cycles=table.number("address_hazard_cycles", 0, most=1),
        float_hazard_cycles=table.number("float_hazard_cycles", 0, most=MOST_CYCLES),
        folds_it=table.flag("folds_it", False),
        misaligned_half_cycles=table.number("misaligned_half_cycles", 0, most=MOST_CYCLES),
        misaligned_byte_cycles=table.number("misaligned_byte_cycles", 0, most=MOST_CYCLES),
        transfers_per_cycle=table.number("transfers_per_cycle", 1, 1, 4),
        loads_per_cycle=table.number("loads_per_cycle", 1, 1, 2),
        branch_predictor_entries=table.number("branch_predictor_entries", 0, most=4096),
        predicts_last_backward=table.flag("predicts_last_backward", False),
        waits_for_results=table.flag("waits_for_results", False),
        source=table.text("source"),
    )


def pipeline_row(model: PipelineModel) -> list[int]:
    """Return the native driver's form of ``model`` (``Core`` in ``cpp/cycles/pipeline.hpp``)."""
    return [
        0 if model.adds_costs else model.issue,
        model.fetch_bytes,
        model.fetch_words,
        model.load_overlap_cycles,
        model.address_hazard_cycles,
        model.float_hazard_cycles,
        int(model.folds_it),
        model.misaligned_half_cycles,
        model.misaligned_byte_cycles,
        model.transfers_per_cycle,
        model.loads_per_cycle,
        model.branch_predictor_entries,
        int(model.predicts_last_backward),
    ]
