"""Random Relax graphs: chains and branches of operators, of small and odd sizes.

``graph(random)`` draws one from a ``random.Random``: seeded, or hypothesis' own
(``st.randoms(use_true_random=False)``), which shrinks it. Integers stay below 2**30, where their
arithmetic is defined; floats are tame enough that few of them become infinite.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
from tvm import relax

MOST_ELEMENTS = 4096
"""Elements of a tensor, at the most."""
MOST_INTEGER = 1 << 30
"""What integers stay below."""
RANGES = {"int8": 128, "uint8": 255, "int32": 1000, "int64": 1000, "float32": 4, "bool": 1}
RANGES |= {"int16": 1000, "uint16": 1000, "uint32": 1000, "float16": 4, "float64": 4}
"""The largest magnitude of an input or weight, by its type."""


@dataclass(frozen=True)
class Value:
    """A tensor of the graph; the magnitude of its elements is ``bound`` at the most."""

    var: Any
    shape: tuple[int, ...]
    dtype: str
    bound: int

    @property
    def elements(self) -> int:
        """How many elements it has."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def is_float(self) -> bool:
        """Whether it holds floats."""
        return self.dtype == "float32"


@dataclass
class Growing:
    """A graph while operators are added to it."""

    random: Random
    builder: Any
    values: list[Value] = field(default_factory=list)
    newest: float = 0.7

    def chance(self, of: float) -> bool:
        """Whether something of that probability happens."""
        return self.random.random() < of

    def one(self, choices: Sequence[Any]) -> Any:
        """One of the choices."""
        return choices[self.random.randrange(len(choices))]

    def between(self, low: int, high: int) -> int:
        """An integer, both limits included."""
        return self.random.randint(low, high)

    def find(self, fits: Callable[[Value], bool]) -> Value | None:
        """A value that fits, often the newest one; None if there is none."""
        found = [v for v in self.values if fits(v)]
        if not found:
            return None
        return found[-1] if self.chance(self.newest) else self.one(found)

    def emit(self, expr: Any, bound: int) -> Value | None:
        """Add an operator; None where its result is too large."""
        made = self.builder.normalize(expr)
        shape = tuple(int(extent) for extent in made.ty.shape.values)
        value = Value(made, shape, str(made.ty.dtype.dtype), bound)
        if value.elements > MOST_ELEMENTS:
            return None
        value = Value(self.builder.emit(made), shape, value.dtype, bound)
        self.values.append(value)
        return value

    def weight(self, shape: Sequence[int], dtype: str, most: int | None = None) -> Value:
        """A constant of random elements."""
        limit = RANGES[dtype] if most is None else most
        return Value(relax.const(self.array(shape, dtype, limit)), tuple(shape), dtype, limit)

    def array(self, shape: Sequence[int], dtype: str, limit: int) -> Any:
        """Random elements up to a magnitude; edges of the range more often than others."""
        return elements(np.random.default_rng(self.between(0, 1 << 30)), shape, dtype, limit)


def elements(rng: Any, shape: Sequence[int], dtype: str, limit: int) -> Any:
    """Return random elements of a type up to a magnitude, its edges more often than others."""
    if dtype.startswith("float"):
        made = rng.standard_normal(shape) * limit / 4
        return np.asarray(made, dtype)
    if dtype == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    low, high = (0 if dtype.startswith("u") else -limit), limit - (dtype == "int8" and limit == 128)
    made = rng.integers(low, high, shape, endpoint=True)
    edge = rng.random(shape)
    made = np.where(edge < 0.1, low, np.where(edge > 0.9, high, made))
    return np.asarray(made, dtype)


Operators = Sequence[Callable[[Growing], bool]]
"""Each adds one operator to a graph, or says that none fits."""


def graph(random: Random, most: int = 7) -> Any:
    """Return an IRModule whose ``main`` is a random graph of up to ``most`` operators."""
    from tests.conformance.relax_operators import OPERATORS

    return grown(random, (2, most), OPERATORS, _input, _results)


def grown(
    random: Random,
    most: tuple[int, int],
    operators: Operators,
    input_of: Callable[[Growing, int], Value],
    results_of: Callable[[Growing, Sequence[Value]], Any],
) -> Any:
    """Return an IRModule whose ``main`` has up to ``most`` inputs and operators.

    ``input_of`` draws an input by its number; ``results_of`` what is returned.
    """
    builder = relax.BlockBuilder()
    growing = Growing(random, builder)
    inputs = [input_of(growing, i) for i in range(growing.between(1, most[0]))]
    growing.values += inputs
    with builder.function("main", [v.var for v in inputs]):
        with builder.dataflow():
            wanted = growing.between(1, most[1])
            for _ in range(wanted):
                _any_operator(growing, operators)
            output = builder.emit_output(results_of(growing, inputs))
        builder.emit_func_output(output)
    return builder.finalize()


def _any_operator(growing: Growing, operators: Operators) -> None:
    """Add one operator that fits some value of the graph."""
    for _ in range(20):
        if growing.one(operators)(growing):
            return


def _input(growing: Growing, index: int) -> Value:
    dtype = growing.one(["float32", "float32", "int8", "int8", "uint8", "int32"])
    rank = growing.one([4, 4, 4, 4, 3, 2, 1, 0])
    shape: list[int] = [growing.one([1, 2, 3, 4, 5, 7, 8, 9]) for _ in range(rank)]
    if rank == 4:
        shape[0] = growing.one([1, 1, 1, 2, 3])
        shape[3] = growing.one([1, 2, 3, 4, 6, 8, 12, 16])
    var = relax.Var(f"x{index}", relax.TensorType(shape, dtype))
    return Value(var, tuple(shape), dtype, RANGES[dtype])


def _results(growing: Growing, inputs: Sequence[Value]) -> Any:
    """The newest value, and now and then others; never an input itself."""
    made = growing.values[len(inputs) :]
    if not made:
        return growing.builder.emit(relax.op.add(growing.values[0].var, growing.values[0].var))
    kept = [v.var for v in made[:-1] if growing.chance(0.15)]
    return relax.Tuple([made[-1].var, *kept]) if kept else made[-1].var


def inputs_of(module: Any, seed: int) -> list[Any]:
    """Return seeded inputs of a generated module."""
    rng = np.random.default_rng(seed)
    found = []
    for param in module["main"].params:
        shape = [int(extent) for extent in param.ty.shape.values]
        dtype = str(param.ty.dtype.dtype)
        found.append(elements(rng, shape, dtype, RANGES[dtype]))
    return found
