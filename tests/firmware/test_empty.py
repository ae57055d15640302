"""Tensors without elements: their loops run no times, and C has no variable for them."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")

from tvm import relax

from tests.firmware.projects import needs_host
from tvm_serenity import firmware
from tvm_serenity.errors import InputError


def rolled() -> Any:
    """A roll along rows by none, as exporters write windows that do not move: of two slices."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 4, 4, 2), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            empty = builder.emit(relax.op.strided_slice(x, [1], [4], [4]))
            rest = builder.emit(relax.op.strided_slice(x, [1], [0], [4]))
            both = builder.emit(relax.op.concat([empty, rest], axis=1))
            two = relax.const(np.float32(2))
            out = builder.emit_output(builder.emit(relax.op.multiply(both, two)))
        builder.emit_func_output(out)
    return builder.get()


@needs_host
def test_a_slice_without_elements_is_built() -> None:
    made = firmware.build(rolled(), "mps2-an386", firmware.Settings())
    given = made.reference["input0"]
    np.testing.assert_array_equal(made.reference["output0"], 2 * given)


def test_rows_of_one_are_refused_in_words() -> None:
    with pytest.raises(InputError, match=r"it is not a single loop over rows"):
        firmware.build(rolled(), "mps2-an386", firmware.Settings(rows=1))


def test_a_loop_over_no_rows_is_written_out_as_nothing() -> None:
    from tvm import tirx

    from tvm_serenity.kernels.row_loops import unrolled

    x, y = (tirx.decl_buffer((4,), "float32", name=name) for name in "xy")
    at = tirx.Var("i", "int64")
    store = tirx.BufferStore(y, x[at], [at])
    for count, kind in ((0, tirx.Evaluate), (1, tirx.BufferStore), (2, tirx.SeqStmt)):
        zero, extent = tirx.IntImm("int64", 0), tirx.IntImm("int64", count)
        loop = tirx.For(at, zero, extent, tirx.ForKind.SERIAL, store)
        assert isinstance(unrolled(loop, lambda load: load.indices[0]), kind)
