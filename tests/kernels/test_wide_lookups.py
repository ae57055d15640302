"""Tables of bytes that lie in registers, against numpy: here, and on AArch64 under QEMU."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

tvm = pytest.importorskip("tvm")

from tests.kernels.programs import MISSING, Program  # noqa: E402
from tvm_serenity.kernels.lean import LEAN, lean  # noqa: E402
from tvm_serenity.kernels.parallel import in_parallel  # noqa: E402
from tvm_serenity.kernels.pointwise import lookup  # noqa: E402
from tvm_serenity.kernels.wide_lookups import ByteShuffle, shuffle_for, wide_lookup  # noqa: E402
from tvm_serenity.tvm_targets import native  # noqa: E402

NEON = tvm.target.Target(
    {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a53", "mattr": ["+neon"]}
)
BYTES = st.sampled_from(("int8", "uint8"))
SHAPES = st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple)
HERE = pytest.mark.skipif(shuffle_for(native()) is None, reason="this processor has no VBMI")
EMULATED = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")

Bytes = npt.NDArray[Any]


def drawn(shape: tuple[int, ...], source: str, result: str, seed: int) -> tuple[Bytes, Bytes]:
    """Arguments, among them every value where there is room, and a table."""
    rng, least = np.random.default_rng(seed), np.iinfo(source).min
    x = rng.permutation(np.resize(np.arange(256), math.prod(shape))).reshape(shape) + least
    table = rng.permutation(np.arange(256)) + np.iinfo(result).min
    return x.astype(source), table.astype(result)


def by_definition(x: Bytes, table: Bytes) -> Bytes:
    return np.asarray(table[x.astype(int) - np.iinfo(x.dtype).min])


def run(kernel: Any, x: Bytes, table: Bytes, over: bool = False) -> Bytes:
    """The result; ``over``: it is written over the argument, of the same type."""
    main = kernel.with_attr("global_symbol", "main")
    library = tvm.compile(tvm.IRModule({"main": main}), native())
    given = tvm.runtime.tensor(x)
    out = given if over else tvm.runtime.tensor(np.full(x.shape, 7, table.dtype))
    library["main"](given, tvm.runtime.tensor(table), out)
    return np.asarray(out.numpy())


@HERE
@settings(max_examples=25, deadline=None, derandomize=True)
@given(SHAPES, BYTES, BYTES, st.integers(0, 9), st.booleans())
def test_every_table_here(
    shape: tuple[int, ...], source: str, result: str, seed: int, threads: bool
) -> None:
    shape = (*shape, 16)
    x, table = drawn(shape, source, result, seed)
    shuffle = shuffle_for(native())
    assert shuffle is not None
    kernel = wide_lookup(lean(lookup(shape, source, result)), shuffle)
    assert kernel.attrs[LEAN]
    found = run(in_parallel(kernel) if threads else kernel, x, table)
    np.testing.assert_array_equal(found, by_definition(x, table))
    if source == result:
        np.testing.assert_array_equal(run(kernel, x, table, over=True), by_definition(x, table))


@HERE
def test_halves_that_are_exchanged_are_caught() -> None:
    x, table = drawn((256,), "int8", "int8", 0)
    right = shuffle_for(native())
    assert right is not None
    wrong = replace(right, select=lambda pieces, at: right.select([*pieces[2:], *pieces[:2]], at))
    found = run(wide_lookup(lookup((256,), "int8", "int8"), wrong), x, table)
    assert (found != by_definition(x, table)).any()


@EMULATED
def test_every_table_on_aarch64(tmp_path: Path) -> None:
    shuffle = shuffle_for(NEON)
    assert isinstance(shuffle, ByteShuffle)
    cases = {
        f"{source}_{result}_{size}": drawn((size,), source, result, size)
        for source in ("int8", "uint8")
        for result in ("int8", "uint8")
        for size in (16, 31, 300)
    }
    kernels = {
        name: wide_lookup(lean(lookup(x.shape, str(x.dtype), str(table.dtype))), shuffle)
        for name, (x, table) in cases.items()
    }
    program = Program(kernels, NEON, tmp_path)
    assert "tbx" in program.library.inspect_source("asm")
    for name, (x, table) in cases.items():
        (found,) = program.run(name, [x, table], [(x.shape, str(table.dtype))])
        np.testing.assert_array_equal(found, by_definition(x, table))


def test_what_has_less_than_a_register_stays() -> None:
    kernel = lookup((15,), "int8", "int8")
    assert wide_lookup(kernel, ByteShuffle(16, lambda pieces, at: pieces)) is kernel


def test_targets_that_name_no_such_instructions_load() -> None:
    assert shuffle_for(tvm.target.Target("llvm")) is None
    assert shuffle_for(tvm.target.Target({"kind": "llvm", "mcpu": "haswell"})) is None
