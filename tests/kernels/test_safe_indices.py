"""No index is of a form that TVM or LLVM compile wrongly: object code against Python's integers."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax, te, tirx

from tests.cases import cases
from tests.firmware.projects import HELLO_FLOAT, build
from tvm_serenity.firmware.lower import flatten
from tvm_serenity.kernels.nodes import parts
from tvm_serenity.kernels.safe_indices import safe_indices
from tvm_serenity.relax import lean_kernels
from tvm_serenity.tvm_targets import native

TARGETS = {"baseline": tvm.target.Target("llvm"), "native": native()}
PLAIN = tvm.target.Target({"kind": "llvm", "opt-level": 0})
"""In place of a C compiler, whose vectoriser is not LLVM's."""
TYPES = ("float32", "int8", "int16", "int32", "float64")
Index = Callable[[Any, Any, Any], Any]


def _kernel(index: Index, shape: tuple[int, int, int], size: int, dtype: str) -> tirx.PrimFunc:
    """``out[a, i, j] = max(x[index(a, i, j)], 0)``: what LLVM makes vectors of."""
    x = te.placeholder((size,), dtype, name="x")
    out = te.compute(shape, lambda a, i, j: te.max(x[index(a, i, j)], tirx.const(0, dtype)))
    return te.create_prim_func([x, out]).with_attrs({"tirx.noalias": True})


def _wrong(kernel: Any, index: Index, target: Any) -> int:
    """How many elements the compiled kernel computes wrongly."""
    named = kernel.with_attr("global_symbol", "kernel")
    built = tvm.compile(tvm.IRModule({"kernel": named}), target=target)
    x, out = (p.ty for p in kernel.params)
    shape = tuple(int(e) for e in out.shape)
    drawn = np.random.default_rng(0).integers(-100, 100, int(x.shape[0]))
    given = drawn.astype(str(x.dtype))
    grid = np.indices(shape)
    result = tvm.runtime.tensor(np.zeros(shape, str(out.dtype)))
    built["kernel"](tvm.runtime.tensor(given), result)
    return int((result.numpy() != np.maximum(given[index(*grid)], 0)).sum())


def _falling(seed: int) -> tuple[Index, tuple[int, int, int], int]:
    """A sum of quotients and remainders of a number that falls, or starts elsewhere than at 0."""
    rng = random.Random(seed)
    shape = (rng.choice((1, 2, 3)), rng.choice((4, 5, 8)), rng.choice((4, 6, 16, 64)))
    steps = (shape[1] * shape[2], shape[2], 1)
    signs = [rng.choice((-1, -1, 1)) for _ in shape]
    ends = [s * n * (e - 1) for s, n, e in zip(signs, steps, shape, strict=True)]
    begins = rng.choice((0, 0, 1, 3)) - sum(min(0, end) for end in ends)
    one, two = rng.choice((2, 3, 4, 8)), rng.choice((2, 3, 4))
    form = rng.randrange(5)

    def index(a: Any, i: Any, j: Any) -> Any:
        e = begins + sum(s * n * v for s, n, v in zip(signs, steps, (a, i, j), strict=True))
        whole = e // (one * two) * (one * two)
        forms = (
            lambda: e // one,
            lambda: e % one,
            lambda: e % (one * two) // one,
            lambda: e // one * one + e % one,
            lambda: whole + e % (one * two) // one * one + e % one,
        )
        return forms[form]()

    return index, shape, begins + sum(abs(end) for end in ends) + 1


def _masked(seed: int) -> tuple[Index, tuple[int, int, int], int]:
    """A row beside the remainder of a power of two of the innermost loop, which may be moved."""
    rng = random.Random(seed)
    mask, rows = rng.choice((4, 8, 16, 32)), rng.choice((3, 5, 7))
    extent = rng.choice((2 * mask, 4 * mask, 4 * mask + rng.randrange(mask)))
    by, other = rng.choice((0, 0, mask, 1, 3)), rng.choice((0, 0, mask // 2))

    def index(a: Any, i: Any, j: Any) -> Any:
        row = (a * rows + i % rows) * mask
        return row + (j + by) % mask if not other else row + (j + by) % mask // 2 * 2 + j % 2

    return index, (3, 2 * rows, extent), 3 * rows * mask


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", cases(7, most=200))
def test_drawn_indices(seed: int, target: str) -> None:
    dtype = TYPES[seed % len(TYPES)]
    for drawn in (_falling, _masked):
        index, shape, size = drawn(seed)
        kernel = _kernel(index, shape, size, dtype)
        safe = safe_indices(kernel, TARGETS[target])
        assert _wrong(safe, index, TARGETS[target]) == 0
        assert _wrong(safe_indices(kernel, tvm.target.Target("c")), index, PLAIN) == 0


def test_c_has_integers_where_llvm_has_floats() -> None:
    c, mended = tvm.target.Target("c"), 0
    for seed in range(8):
        index, shape, size = _masked(seed)
        kernel = _kernel(index, shape, size, "int8")
        mended += "float" in safe_indices(kernel, TARGETS["baseline"]).script()
        assert "float" not in safe_indices(kernel, c).script()
    assert mended > 3


def test_firmware_is_made_safe_for_its_compiler_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for LLVM before, whose floats a core without an FPU would compute."""
    seen = []

    def once(kernel: Any, target: Any) -> Any:
        seen.append("made_safe" in kernel.attrs)
        return safe_indices(kernel, target)

    marked = lambda kernel, target: kernel.with_attr("made_safe", 1)  # noqa: E731
    monkeypatch.setattr(lean_kernels, "safe_indices", marked)
    monkeypatch.setattr(flatten, "safe_indices", once)
    build(HELLO_FLOAT, "mps2-an386")  # the library has no kernels of floats
    assert seen
    assert not any(seen)


def test_they_are_compiled_wrongly_as_they_are() -> None:
    """Where this fails, TVM or LLVM was mended, and its half of the module may go."""

    def both(draw: Callable[[int], tuple[Index, tuple[int, int, int], int]]) -> Iterator[int]:
        for seed in range(8):
            index, shape, size = draw(seed)
            kernel = _kernel(index, shape, size, "int8")
            yield _wrong(kernel, index, TARGETS["baseline"])

    assert max(both(_falling)) > 0
    assert max(both(_masked)) > 0


def test_numbers_above_those_of_float32_are_exact() -> None:
    def index(a: Any, i: Any, j: Any) -> Any:
        return i % 5 * 8 + (a * ((1 << 23) + 1) + i + j) % 8

    kernel = _kernel(index, (4, 10, 33), 40, "int8")
    safe = safe_indices(kernel, TARGETS["baseline"])
    assert "float64" in safe.script()
    assert _wrong(safe, index, TARGETS["baseline"]) == 0


def test_other_kernels_stay_what_they_are() -> None:
    plain = _kernel(lambda a, i, j: a * 40 + i * 8 + j, (2, 5, 8), 80, "int8")
    rising = _kernel(lambda a, i, j: (a * 40 + i * 8 + j) // 8 * 3 + j % 3, (2, 5, 8), 80, "int8")
    for kernel in (plain, rising):
        assert safe_indices(kernel, TARGETS["baseline"]).same_as(kernel)


def _module(emit: Callable[[relax.BlockBuilder, Any], Any]) -> tvm.IRModule:
    builder, x = relax.BlockBuilder(), relax.Var("x", relax.TensorType((4, 2, 2, 4), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            out = builder.emit_output(emit(builder, x))
        builder.emit_func_output(out)
    made: tvm.IRModule = builder.get()
    return made


def _flipped(builder: relax.BlockBuilder, x: Any) -> Any:
    flat = builder.emit(relax.op.reshape(x, (1, 64)))
    flipped = builder.emit(relax.op.flip(flat, axis=1))
    builder.emit(relax.op.nn.log_softmax(flat, axis=-1))  # a second reader, so that it is fused
    return relax.op.add(flipped, flipped)


def _tiled(builder: relax.BlockBuilder, x: Any) -> Any:
    tiled = builder.emit(relax.op.tile(builder.emit(relax.op.nn.relu(x)), [1, 2, 3, 2]))
    return relax.op.concat([tiled, tiled], axis=3)


NETWORKS: dict[str, tuple[Callable[..., Any], Callable[[Any], Any]]] = {
    "flipped": (_flipped, lambda x: 2 * x.reshape(1, 64)[:, ::-1]),
    "tiled": (_tiled, lambda x: np.concatenate([np.tile(np.maximum(x, 0), [1, 2, 3, 2])] * 2, 3)),
}


@pytest.mark.parametrize("target", ["baseline", "native"])
@pytest.mark.parametrize("network", NETWORKS)
def test_through_the_pipeline(network: str, target: str) -> None:
    emit, expected = NETWORKS[network]
    pipeline = relax.get_pipeline("serenity")
    built = tvm.compile(_module(emit), target=TARGETS[target], relax_pipeline=pipeline)
    x = np.random.default_rng(0).uniform(-1, 1, (4, 2, 2, 4)).astype("float32")
    found = relax.VirtualMachine(built, tvm.cpu())["main"](tvm.runtime.tensor(x)).numpy()
    np.testing.assert_array_equal(found, expected(x))


@pytest.mark.parametrize("kind", ["llvm", "c"])
def test_a_loop_is_split_where_that_removes_a_remainder(kind: str) -> None:
    kernel = _kernel(lambda a, i, j: a * 64 + i * 8 + j % 8, (2, 8, 64), 256, "int8")
    loops = [
        len(parts(k.body, tirx.For))
        for k in (kernel, safe_indices(kernel, tvm.target.Target(kind)))
    ]
    assert loops == [3, 4]
