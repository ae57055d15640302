"""What cases of several kinds are drawn from: types, scales, zero points, shapes, values."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.conformance.case import Case
from tests.conformance.writer import Array, Node, T, tflite

INTEGERS = ("int8", "uint8", "int16")
QUANTISED_AND_FLOAT = ("int8", "int8", "uint8", "int16", "float32")


class Draw:
    """Draws for one case, from what hypothesis hands to a composite strategy."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw

    def one(self, options: Sequence[Any]) -> Any:
        """Return one of ``options``."""
        return self.draw(st.sampled_from(list(options)))

    def some(self, options: Sequence[Any], least: int = 0) -> list[Any]:
        """Return different ones of ``options``, in their order."""
        found = self.draw(st.sets(st.sampled_from(list(options)), min_size=least))
        return [option for option in options if option in found]

    def shuffled(self, options: Sequence[Any]) -> list[Any]:
        """Return all of ``options`` in any order."""
        return list(self.draw(st.permutations(list(options))))

    def number(self, least: int, most: int) -> int:
        """Return an integer between two, or one of them."""
        return int(self.draw(st.integers(least, most)))

    def chance(self) -> bool:
        """Return True or False."""
        return bool(self.draw(st.booleans()))

    def shape(self, rank: int, most: int = 6) -> tuple[int, ...]:
        """Return ``rank`` extents from 1."""
        return tuple(self.number(1, most) for _ in range(rank))

    def rng(self) -> np.random.Generator:
        """Return a source of many values."""
        return np.random.default_rng(self.number(0, 2**20))

    def scale(self, around: float = 0.05) -> float:
        """Return a scale within a factor of 16 of ``around``, as float32."""
        if self.number(0, 5) == 0:  # powers of two: sums that are exactly halves
            return float(2.0 ** (round(np.log2(around)) + self.number(-3, 3)))
        return float(np.float32(around * 2.0 ** (self.number(-400, 400) / 100)))

    def zero(self, dtype: str) -> int:
        """Return a zero point: the edges of the type too; 0 where it has to be."""
        if dtype in ("int16", "int32", "int64", "float32", "bool"):
            return 0
        limits = np.iinfo(dtype)
        middle = (int(limits.min) + int(limits.max) + 1) // 2
        edges = (middle, int(limits.min), int(limits.max), middle + 3)
        if self.chance():
            return int(self.one(edges))
        return self.number(int(limits.min), int(limits.max))

    def tensor(self, shape: Sequence[int], dtype: str, around: float = 0.05) -> T:
        """Return a tensor: with a scale and a zero point if its type is quantised."""
        if dtype not in INTEGERS:
            return T(tuple(shape), dtype)
        return T(tuple(shape), dtype, self.scale(around), self.zero(dtype))

    def values(self, shape: Sequence[int], dtype: str) -> Array:
        """Return data of a type, over all of its range (floats: -2 to 2)."""
        rng = self.rng()
        if dtype.startswith("float"):
            return np.asarray(rng.uniform(-2, 2, tuple(shape)), dtype)
        if dtype == "bool":
            return np.asarray(rng.random(tuple(shape)) < 0.5)
        if dtype == "int4":
            return np.asarray(rng.integers(-7, 8, tuple(shape)), np.int8)
        limits = np.iinfo(dtype)
        return np.asarray(rng.integers(limits.min, limits.max, tuple(shape), dtype, endpoint=True))

    def axis(self, rank: int) -> int:
        """Return an axis, counted from the front or the back."""
        axis = self.number(0, rank - 1)
        return axis - rank if self.chance() else axis


def like(x: T, shape: Sequence[int]) -> T:
    """Return a tensor stored as ``x`` is, of another shape."""
    return T(tuple(int(e) for e in shape), x.dtype, x.scale, x.zero)


def constant(values: Any, dtype: str = "int32") -> T:
    """Return a constant of plain numbers."""
    data = np.asarray(values, dtype)
    return T(data.shape, dtype, data=data)


def case(kind: str, tensors: Sequence[T], node: Node, note: str = "", **more: Any) -> Case:
    """Return the case of one operator: its inputs are the tensors without data or -1."""
    given = dict.fromkeys(i for i in node.inputs if i >= 0 and tensors[i].data is None)
    inputs = [i for i in given if not tensors[i].variable]
    described = f"{_described(tensors, node)} {note}".strip()
    return Case(kind, tflite(tensors, [node], inputs, node.outputs), described, **more)


def _described(tensors: Sequence[T], node: Node) -> str:
    """The tensors and options of an operator in one line."""
    parts = []
    for i in (*node.inputs, *node.outputs):
        if i < 0:
            parts.append("none")
            continue
        t = tensors[i]
        text = f"{t.dtype}{list(t.shape)}"
        if isinstance(t.scale, float):
            text += f"*{t.scale:.6g}{-int(np.asarray(t.zero)):+d}"
        elif t.scale is not None:
            text += "*channels"
        elif t.data is not None and t.data.size <= 8:
            text += f"={t.data.tolist()}"
        parts.append(text)
    options = " ".join(f"{k}={v}" for k, v in node.options.items())
    made = len(node.inputs)
    return f"{', '.join(parts[:made])} -> {', '.join(parts[made:])} {options}".strip()
