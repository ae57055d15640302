"""``.pte`` files, ExecuTorch programs, as graphs with their planned memory.

The graph is one method (``forward``, or the first), its instructions in order. A kernel returns its
last argument, or writes to it if its name ends in ``_``; a backend call returns the values that
nothing computed before. Tensors with data are constants, tensors with data and a place are states,
inputs without a place are in the caller's memory. A value that no instruction computes is a view of
the bytes written last at its place: ExecuTorch omits views. Unwritten bytes are state.

Orders and offsets of such a file are fixed at export (``tvm_serenity.executorch``).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.frontends._flatbuffer import Table, root_table
from tvm_serenity.frontends._pte_schema import (
    IDENTIFIER,
    CallField,
    CallKind,
    ChainField,
    KernelField,
    PlanField,
    ProgramField,
    UnionField,
)
from tvm_serenity.frontends._pte_values import Held, LastWritten, check_places, read_values
from tvm_serenity.frontends.building import Building
from tvm_serenity.frontends.model_file import check_order, printable, unique
from tvm_serenity.graph import Graph, Role, Tensor

_VIEW = "executorch_prim::et_view"
_JUMPS: dict[int, str] = {
    CallKind.MOVE: "moves a value",
    CallKind.JUMP_FALSE: "jumps",
    CallKind.FREE: "frees",
}
_AT_EXPORT = (
    "an ExecuTorch program cannot be changed: it is ordered and planned at export, by "
    "tvm_serenity.executorch.order_pass"
)


@dataclass(frozen=True)
class PlannedTensor:
    """The place of a tensor in a program's plan: bytes from ``offset`` of ``memory``."""

    tensor: str
    memory: int
    offset: int
    size_bytes: int


@dataclass(frozen=True)
class Allocated:
    """The memory that a method of a program allocates before it runs."""

    method: str
    methods: tuple[str, ...]
    """All methods of the program."""
    memories: Mapping[int, int]
    """Bytes by ExecuTorch's memory id."""
    places: tuple[PlannedTensor, ...]


@dataclass(frozen=True)
class PteFile:
    """An ExecuTorch program; ``allocated``: the memory of its method."""

    format: ClassVar[str] = "pte"
    path: Path
    graph: Graph
    allocated: Allocated = field(repr=False)

    def reordered(self, order: Sequence[int]) -> bytes:
        """Refuse: another order needs other offsets, which the export plans."""
        check_order(self.graph, order)
        raise UnsupportedError(_AT_EXPORT)

    def check_operators(self, integers: bool = True) -> None:
        """Raise :class:`UnsupportedError`: only ExecuTorch runs its kernels."""
        raise UnsupportedError(
            "an ExecuTorch program cannot be compiled, only read for its memory; give "
            "the model that it was exported from, a .pt2 file or a torch.export program"
        )


def read(path: Path, data: bytes) -> PteFile:
    """Return the program in ``data``; ``path`` names it.

    Raises :class:`InputError` if the file is truncated, corrupt or no ExecuTorch program, and
    :class:`UnsupportedError` for unknown sizes and jumps.
    """
    methods = root_table(data, IDENTIFIER).tables(ProgramField.EXECUTION_PLAN)
    if not methods:
        raise InputError("the program has no method")
    names = [method.string(PlanField.NAME) for method in methods]
    chosen = names.index("forward") if "forward" in names else 0
    method = methods[chosen]
    memories = dict(enumerate(method.longs(PlanField.MEMORY_SIZES)))
    memories.pop(0, None)  # memory 0 is unused: constants have no place in a plan
    if any(size < 0 for size in memories.values()):
        raise InputError("a memory of the program has a negative size")
    reader = _Method(method)
    check_places(reader.values, memories)
    graph = reader.graph(path.name)
    places = tuple(reader.places(graph))
    every = tuple(map(printable, names))
    return PteFile(path, graph, Allocated(every[chosen], every, memories, places))


class _Method:
    """A method during the pass over its instructions, with the tensors that hold each value."""

    def __init__(self, method: Table) -> None:
        self.values = read_values(method.tables(PlanField.VALUES))
        self.entries = method.ints(PlanField.INPUTS)
        self.results = method.ints(PlanField.OUTPUTS)
        chains = method.tables(PlanField.CHAINS)
        self.calls = [call for chain in chains for call in chain.tables(ChainField.INSTRUCTIONS)]
        self.kernels = [_kernel(table) for table in method.tables(PlanField.OPERATORS)]
        backends = method.tables(PlanField.DELEGATES)
        self.backends = [printable(table.string(KernelField.NAME)) for table in backends]
        self.building = Building()
        self.held: dict[int, tuple[int, ...]] = {}
        """The graph's tensors that hold a value."""
        self.placed: dict[int, Held] = {}
        self.written = LastWritten()

    def graph(self, name: str) -> Graph:
        entries = [self.tensor(index) for index in self.entries]
        inputs = [
            self.declare(stored, Role.ACTIVATION, f"input_{index}")
            for index, stored in enumerate(entries)
            if stored is not None and self.is_new(stored.index)
        ]
        for index, call in enumerate(self.calls):
            self.call(index, call)
        outputs = [t for value in self.results for t in self.read(value)]
        building = self.building
        names = unique(tensor.name for tensor in building.tensors)
        building.tensors[:] = [
            Tensor(new, t.size_bytes, t.shape, t.dtype, t.role)
            for new, t in zip(names, building.tensors, strict=True)
        ]
        return building.graph(name, inputs, outputs)

    def places(self, graph: Graph) -> Iterable[PlannedTensor]:
        for tensor, stored in self.placed.items():
            if stored.memory:
                name = graph.tensors[tensor].name
                yield PlannedTensor(name, stored.memory, stored.offset, stored.size_bytes)

    def call(self, index: int, instruction: Table) -> None:
        kind, table = instruction.u8(UnionField.TYPE), instruction.table(UnionField.TABLE)
        if table is None or kind not in (CallKind.KERNEL, CallKind.DELEGATE):
            raise UnsupportedError(
                f"instruction {index} {_JUMPS.get(kind, 'is unknown')}: only methods "
                "without control flow are supported"
            )
        number, arguments = table.i32(CallField.INDEX), table.ints(CallField.ARGUMENTS)
        known = self.kernels if kind == CallKind.KERNEL else self.backends
        if not 0 <= number < len(known):
            raise InputError(f"instruction {index} calls function {number}, which does not exist")
        values = list(dict.fromkeys(v for argument in arguments for v in self.listed(argument)))
        if kind == CallKind.DELEGATE:
            made = [v for v in values if self.is_new(v)]
            self.add(f"{known[number]}_{index}", known[number], values, made)
        else:
            self.kernel(index, known[number], values, arguments)

    def kernel(self, index: int, kind: str, values: list[int], arguments: Sequence[int]) -> None:
        result = self.listed(arguments[-1]) if arguments else []
        base = kind.partition(".")[0]
        name = f"{base.rpartition('::')[2]}_{index}"
        if base == _VIEW and values and result and not self.stored(result[-1]).memory:
            (source, *_), made = self.read(values[0]), result[-1]
            view = source if self.building.tensors[source].role is Role.ACTIVATION else None
            self.add(name, base, values, [made], view)
        else:
            new = [] if base.endswith("_") else result
            self.add(name, kind, values, [v for v in new if v not in self.held], wrote=result)

    def add(
        self,
        name: str,
        kind: str,
        values: Sequence[int],
        made: Sequence[int],
        view: int | None = None,
        wrote: Sequence[int] = (),
    ) -> None:
        """Add an operator that reads ``values``.

        It returns ``made`` and writes to the rest of ``wrote``.
        """
        read = [t for value in values if value not in made for t in self.read(value)]
        mutated = [t for value in wrote if value not in made for t in self.read(value)]
        outputs = [
            self.declare(
                self.stored(v), Role.ACTIVATION, f"{name}:{i}" if i else name, owns=view is None
            )
            for i, v in enumerate(made)
        ]
        self.building.op(name, kind, read, outputs, view=view, mutated=mutated)

    def listed(self, value: int) -> list[int]:
        """Return the tensors of an argument: itself, or those of its list."""
        if not 0 <= value < len(self.values):
            raise InputError(f"value {value} does not exist, the method has {len(self.values)}")
        found = self.values[value]
        if isinstance(found, tuple):
            return [t for t in found if self.tensor(t) is not None]
        return [] if found is None else [value]

    def tensor(self, value: int) -> Held | None:
        if not 0 <= value < len(self.values):
            raise InputError(f"value {value} does not exist, the method has {len(self.values)}")
        found = self.values[value]
        return found if isinstance(found, Held) else None

    def stored(self, value: int) -> Held:
        found = self.tensor(value)
        assert found is not None, "only tensors are listed"
        return found

    def is_new(self, value: int) -> bool:
        """Return whether a call may return this value: it has no data, and no tensor holds it."""
        return value not in self.held and not self.stored(value).has_data

    def read(self, value: int) -> tuple[int, ...]:
        """Return the tensors that hold a value; declare it if no instruction computed it."""
        stored = self.tensor(value)
        if stored is None:
            return ()
        if value not in self.held:
            self.held[value] = self.declared(stored)
        return self.held[value]

    def declared(self, stored: Held) -> tuple[int, ...]:
        if stored.has_data:
            role = Role.STATE if stored.memory else Role.CONSTANT
            return (self.declare(stored, role, f"value_{stored.index}"),)
        if not stored.memory:
            raise InputError(f"value {stored.index} is read, but no instruction computes it")
        shown, whole = self.written.shown(stored)
        return shown if whole else (*shown, self.state(stored, not shown))

    def state(self, stored: Held, owns: bool) -> int:
        return self.declare(stored, Role.STATE, f"value_{stored.index}", owns=owns)

    def declare(self, stored: Held, role: Role, name: str = "", *, owns: bool = True) -> int:
        """Return a tensor of the graph for a value; ``owns``: its bytes are written now."""
        if role is Role.ACTIVATION and not stored.memory and stored.index in self.entries:
            role = Role.EXTERNAL
        made = self.building.tensor(
            Tensor(stored.name or name, stored.size_bytes, stored.shape, stored.dtype, role)
        )
        self.held[stored.index] = (made,)
        self.placed[made] = stored
        if owns:
            self.written.write(stored, made)
        return made


def _kernel(table: Table) -> str:
    name, overload = table.string(KernelField.NAME), table.string(KernelField.OVERLOAD)
    return printable(f"{name}.{overload}" if overload else name)
