"""Rounded products of vectors on AArch64: what is replaced, and that it computes the same."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.kernels.test_packed import WIDE, compiled

tvm = pytest.importorskip("tvm")

from tvm import tirx  # noqa: E402
from tvm.script.ir_builder import tirx as T  # noqa: E402, N812

from tests.kernels.programs import MISSING, Program  # noqa: E402
from tvm_serenity import compat  # noqa: E402
from tvm_serenity.kernels.arithmetic import high_product  # noqa: E402
from tvm_serenity.kernels.build import written  # noqa: E402
from tvm_serenity.kernels.lean import lean  # noqa: E402
from tvm_serenity.kernels.nodes import parts  # noqa: E402
from tvm_serenity.kernels.pointwise import add, multiply  # noqa: E402
from tvm_serenity.kernels.records import Pair, Product, Sum  # noqa: E402
from tvm_serenity.kernels.rounding_products import with_rounding_products  # noqa: E402
from tvm_serenity.kernels.spec import described  # noqa: E402
from tvm_serenity.kernels.tile import HOST  # noqa: E402
from tvm_serenity.quantize import fixed  # noqa: E402
from tvm_serenity.quantize.params import Affine  # noqa: E402

TARGET = tvm.target.Target({"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mattr": ["+neon"]})
emulated = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
ROWS = 64
ENDS = [-(1 << 31), 1 - (1 << 31), -(1 << 30), -3, -1, 0, 1, 2, 3, (1 << 30) - 1, (1 << 31) - 1]
EXTENTS = {16: 16, 48: 16, 8: 8, 24: 8, 4: 4, 12: 4, 6: 0}
"""Neighbours in memory, and the vectors that they are made in (none of 6)."""


def products(neighbours: int, kind: Any = WIDE) -> Any:
    """A kernel of rounded products in rows of neighbours, made from a record of a kind."""

    def emit(a: Any, b: Any, out: Any) -> None:
        with T.serial(ROWS) as row, T.serial(neighbours) as i:
            T.buffer_store(out, high_product(a[row, i], b[row, i]), [row, i])

    held = ((ROWS, neighbours), "int32")
    return described(written({"a": held, "b": held, "out": held}, emit), kind)


def vectors(kernel: Any) -> set[int]:
    """The extents of loops of vectors."""
    loops = parts(kernel.body, tirx.For)
    return {int(loop.extent) for loop in loops if loop.kind == tirx.ForKind.VECTORIZED}


def called(kernel: Any) -> bool:
    found = [str(call.op.name) for call in parts(kernel.body, tvm.ir.expr.Call)]
    return "tirx.q_multiply_shift" in found


def wrong(folder: Path) -> list[int]:
    """The extents of rows whose products are not those of numpy: random ones, and the ends."""
    kernels = {f"by{n}": with_rounding_products(products(n)) for n in EXTENTS}
    program = Program(kernels, TARGET, folder)
    rng, apart = np.random.default_rng(0), []
    for n in EXTENTS:
        a = rng.integers(-(1 << 31), 1 << 31, (ROWS, n)).astype(np.int32)
        b = rng.integers(1 << 30, 1 << 31, (ROWS, n)).astype(np.int32)
        a.flat[: len(ENDS)] = a.flat[-len(ENDS) :] = ENDS
        b.flat[: len(ENDS)] = (1 << 31) - 1
        b.flat[-len(ENDS) :] = 1 << 30
        (found,) = program.run(f"by{n}", [a, b], [((ROWS, n), "int32")])
        if not np.array_equal(found, fixed.high_product(a, b)):
            apart.append(n)
    return apart


@emulated
def test_products_are_exact_and_faults_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert wrong(tmp_path) == []
    instruction = "tvm_serenity.kernels.rounding_products.INSTRUCTION"
    monkeypatch.setattr(instruction, "llvm.aarch64.neon.sqdmulh")  # does not round
    assert wrong(tmp_path) == [n for n, width in EXTENTS.items() if width]


@pytest.mark.parametrize("neighbours", EXTENTS)
def test_loops_along_neighbours_are_made_in_vectors(neighbours: int) -> None:
    width = EXTENTS[neighbours]
    made = with_rounding_products(products(neighbours))
    assert vectors(made) == ({width} if width else set())
    assert called(made) == bool(width)
    text = str(compiled(made, TARGET).mod.inspect_source("asm"))
    assert ("sqrdmulh" in text) == bool(width)


def test_kernels_whose_factors_are_not_known_stay() -> None:
    kernel = products(16, Affine((1.0,), (0,), "int8"))
    assert with_rounding_products(kernel) is kernel


def pair(*shapes: tuple[int, ...]) -> Pair:
    sources = Affine((0.1,), (-3,), "int8"), Affine((0.2,), (100,), "uint8")
    return Pair((shapes[0], shapes[1]), sources, Affine((0.3,), (5,), "int8"), -128, 127)


def kernels_of_pairs() -> dict[str, Any]:
    """Sums, differences and products of tensors, some broadcast, rows of 16, 20 and 7."""
    left, right, out = (fixed.multiplier(real) for real in (0.25, 0.5, 2.0**-18))
    minus = fixed.Multiplier(right.value, right.shift, (-0.5,))
    made = {}
    for n in (16, 20, 7):
        whole, one = (1, 3, 5, n), (1, 1, 1, n)
        made[f"sum{n}"] = add(Sum(pair(whole, whole), left, right, out, 20))
        made[f"difference{n}"] = add(Sum(pair(whole, one), left, minus, out, 20))
        made[f"product{n}"] = multiply(Product(pair(one, whole), fixed.multiplier(0.0123)))
    return {name: lean(kernel, HOST) for name, kernel in made.items()}


@emulated
def test_sums_and_products_of_tensors_are_those_of_this_machine(tmp_path: Path) -> None:
    plain = kernels_of_pairs()
    made = {name: with_rounding_products(kernel) for name, kernel in plain.items()}
    assert {name for name, kernel in made.items() if called(kernel)} == {
        f"{name}{n}" for name in ("sum", "difference", "product") for n in (16, 20)
    }
    program, rng = Program(made, TARGET, tmp_path), np.random.default_rng(1)
    for name, kernel in plain.items():
        shapes = [tuple(compat.buffer_shape(param)) for param in kernel.params]
        x = rng.integers(-128, 128, shapes[0]).astype(np.int8)
        y = rng.integers(0, 256, shapes[1]).astype(np.uint8)
        wanted = tvm.runtime.tensor(np.zeros(shapes[2], np.int8))
        given = [tvm.runtime.tensor(array) for array in (x, y)]
        compiled(kernel, tvm.target.Target("llvm"))["main"](*given, wanted)
        (found,) = program.run(name, [x, y], [(shapes[2], "int8")])
        np.testing.assert_array_equal(found, wanted.numpy())
        assert len(np.unique(found)) > 20
