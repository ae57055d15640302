"""Fresh inputs hold what kernels and networks may hold, and the edges of it."""

import numpy as np
import pytest

tvm = pytest.importorskip("tvm")
from tvm import relax, te, tirx  # noqa: E402

from tvm_serenity.kernels import sixteen  # noqa: E402
from tvm_serenity.validation.inputs import FILLS, Parameter, Range, input_sets  # noqa: E402
from tvm_serenity.validation.ranges import (  # noqa: E402
    _Kernel,
    input_ranges,
    parameter_ranges,
)

TABLE, IDS = te.placeholder((10, 4), "float32", "t"), te.placeholder((3,), "int64", "i")


@pytest.mark.parametrize(
    ("index", "allowed"),
    [
        (lambda i: i, Range(0, 9)),
        (lambda i: tirx.if_then_else(i < 0, i + 10, i), Range(0, 9)),
        (lambda i: i * 2 + 1, Range(0, 4)),
        (lambda i: i - 2, Range(2, 11)),
        (lambda i: tirx.const(9, "int64") - i, Range(0, 9)),
    ],
)
def test_indices_lie_within_what_they_index(index: object, allowed: Range) -> None:
    out = te.compute((3, 4), lambda y, x: TABLE[index(IDS[y]), x])  # type: ignore[operator]
    assert parameter_ranges(te.create_prim_func([TABLE, IDS, out]))[1] == allowed


def test_stages_divisors_and_running_sums() -> None:
    cast = te.compute((3,), lambda y: IDS[y].astype("int32") + 2)
    out = te.compute((3, 4), lambda y, x: TABLE[cast[y], x])
    assert parameter_ranges(te.create_prim_func([TABLE, IDS, out])) == {1: Range(0, 7)}
    a, b = te.placeholder((4,), "int32", "a"), te.placeholder((4,), "int32", "b")
    quotient = te.compute((4,), lambda y: tirx.floordiv(a[y], b[y]))
    assert parameter_ranges(te.create_prim_func([a, b, quotient])) == {1: Range(1, 2**31 - 1)}
    k = te.reduce_axis((0, 4), "k")
    total = te.compute((1,), lambda _: te.sum(a[k], axis=k))
    found = parameter_ranges(te.create_prim_func([a, total]), {1: Range(0, 9)})
    assert found == {0: Range(0, 2)}


def test_divisors_that_are_no_whole_numbers_are_free() -> None:
    """Also where they are computed from whole ones: what they may be is not a range of integers."""
    x, y = (te.placeholder((4,), "int16", name) for name in "xy")
    real = te.compute((4,), lambda i: y[i].astype("float32") * tirx.const(1e-4, "float32"))
    out = te.compute((4,), lambda i: x[i].astype("float32") / real[i])
    assert parameter_ranges(te.create_prim_func([x, y, out])) == {}


def test_a_range_is_halved_where_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a step, or it would take as many as there are numbers."""
    a, b = te.placeholder((4,), "int32", "a"), te.placeholder((4,), "int32", "b")
    divisor = te.compute((4,), lambda i: b[i] * b[(i + 1) % 4])
    out = te.compute((4,), lambda i: tirx.floordiv(a[i], divisor[i]))
    tried: list[Range] = []
    bounds = _Kernel._bounds

    def counted(self: _Kernel, value: object, variables: list[object], given: Range) -> Range:
        tried.append(given)
        bounds(self, value, variables, given)
        return Range(-(2**62), 2**62)

    monkeypatch.setattr(_Kernel, "_bounds", counted)
    parameter_ranges(te.create_prim_func([a, b, out]))
    assert 30 < len(tried) < 80


def test_tables_of_all_bytes_leave_their_index_free() -> None:
    table, x = te.placeholder((256,), "int8", "t"), te.placeholder((3,), "int8", "x")
    out = te.compute((3,), lambda y: table[x[y].astype("int32") + 128])
    assert parameter_ranges(te.create_prim_func([table, x, out])) == {}
    clipped = te.compute(
        (3, 4), lambda y, x: TABLE[te.max(0, te.min(IDS[y], tirx.const(9, "int64"))), x]
    )
    kernel = te.create_prim_func([TABLE, IDS, clipped])
    assert parameter_ranges(kernel) == {}
    assert parameter_ranges(kernel, clips=False) == {1: Range(0, 9)}
    half = te.placeholder((128,), "int8", "t")
    out = te.compute((3,), lambda y: half[x[y].astype("int32")])
    assert parameter_ranges(te.create_prim_func([half, x, out])) == {1: Range(0, 127)}


def test_tokens_of_a_network_are_in_its_vocabulary() -> None:
    ids = relax.Var("ids", relax.TensorType((2, 3), "int64"))
    mask = relax.Var("mask", relax.TensorType((2, 3), "int64"))
    words = relax.const(np.zeros((50, 8), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [ids, mask]):
        with builder.dataflow():
            flat = builder.emit(relax.op.reshape(relax.op.astype(ids, "int32"), (6,)))
            rows = builder.emit(relax.op.take(words, flat, axis=0))
            kept = builder.emit(relax.op.reshape(relax.op.astype(mask, "float32"), (6, 1)))
            out = builder.emit_output(builder.emit(relax.op.multiply(rows, kept)))
        builder.emit_func_output(out)
    module = builder.finalize()
    assert input_ranges(module) == {0: Range(0, 49)}
    from tvm_serenity.runtime.vm import run
    from tvm_serenity.validation.network_inputs import random_inputs

    tokens, free = random_inputs(module)
    assert 0 <= tokens.min() <= tokens.max() <= 49
    assert abs(free).max() > 2**40
    assert np.isfinite(run(tvm.compile(module, "llvm"), [tokens, free]).outputs[0]).all()


def test_sets_are_the_same_by_seed_and_reach_the_edges() -> None:
    parameters = [
        Parameter((40, 30), "int8", zero=-3),
        Parameter((40,), "int64", Range(0, 6)),
        Parameter((40, 30), "float32"),
        Parameter((9,), "bool"),
        Parameter((), "uint8"),
        Parameter((20,), "float32", Range(0, 3)),
    ]
    sets = list(input_sets(parameters, 7))
    assert len(sets) == len(FILLS)
    for one, two in zip(sets, input_sets(parameters, 7), strict=True):
        for parameter, a, b in zip(parameters, one, two, strict=True):
            assert a.tobytes() == b.tobytes()
            assert (a.shape, a.dtype) == (parameter.shape, np.dtype(parameter.dtype))
    assert next(input_sets(parameters, 8))[0].tobytes() != sets[0][0].tobytes()
    mixed = sets[0]
    assert {-128, 127, -3} <= set(mixed[0].reshape(-1).tolist())
    assert (mixed[0] == -128).mean() > 0.05
    assert set(mixed[1].tolist()) <= set(range(7))
    assert set(mixed[5].tolist()) <= {0.0, 1.0, 2.0, 3.0}
    assert (mixed[2] == 0).any()
    assert abs(mixed[2]).max() > 500
    assert np.isfinite(mixed[2]).all()
    by_name = dict(zip(FILLS, sets, strict=True))
    assert set(by_name["min"][0].reshape(-1).tolist()) == {-128}
    assert by_name["alternating"][0][0, :3].tolist() == [-128, 127, -128]
    assert by_name["alternating"][0][1, :3].tolist() == [127, -128, 127]


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_an_index_that_its_type_cannot_reach_is_no_error(dtype: str) -> None:
    x, t = te.placeholder((4,), dtype, "x"), te.placeholder((9,), "int8", "t")
    far = int(np.iinfo(dtype).max) + 233
    out = te.compute((4,), lambda i: t[x[i].astype("int32") - far])
    found = parameter_ranges(te.create_prim_func([x, t, out]))
    assert set(found) <= {0}


def test_functions_of_16_bits_are_tried_on_more_than_zero() -> None:
    """Their tables have an element for every value; each sign's branch asks for the other half."""
    shape, factor, shift = (4,), 24894, 15
    kernels = [
        sixteen.logistic(shape, factor, shift),
        sixteen.tanh(shape, factor, shift),
        sixteen.interpolated(shape),
    ]
    assert [parameter_ranges(kernel, {2: Range(0, 9)}) for kernel in kernels] == [{}] * 3


def test_a_shift_of_too_many_bits_is_no_failure() -> None:
    """Of a range that is tried: bits to shift by come from a tensor."""
    x, bits = te.placeholder((4,), "int64", "x"), te.placeholder((4,), "int8", "bits")
    one = tirx.const(1, "int64")
    rounded = te.compute(
        (4,), lambda i: x[i] + (one << (tirx.const(14, "int64") - bits[i].astype("int64")))
    )
    out = te.compute((4, 4), lambda y, z: TABLE[rounded[y] - 40, z])
    found = parameter_ranges(te.create_prim_func([TABLE, x, bits, out]))
    assert set(found) <= {1, 2}
