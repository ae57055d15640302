"""Constants that are folded while a model is read, so that TVM compiles no kernel for them."""

import numpy as np
import pytest

pytest.importorskip("tvm")

from tvm import relax

from tvm_serenity import compat
from tvm_serenity.frontends.relax._constants import with_moved_constants

HELD = np.array([[1, 2, 3], [4, 5.5, np.inf]], np.float16)


def left(array: np.ndarray, dtype: str) -> tuple[list[str], list[np.ndarray]]:
    """Return the operators of ``x + transposed(array in dtype)`` once read, and its constants."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((3, 2), dtype))
    with builder.function("main", [x]):
        with builder.dataflow():
            wide = builder.emit(relax.op.astype(relax.const(array, str(array.dtype)), dtype))
            turned = builder.emit(relax.op.permute_dims(wide))
            made = builder.emit_output(relax.op.add(x, turned))
        builder.emit_func_output(made)
    (block,) = with_moved_constants(builder.get())["main"].body.blocks
    calls = [b.value for b in block.bindings if compat.is_call(b.value)]
    held = [a.value.numpy() for c in calls for a in c.args if compat.is_constant(a)]
    return [compat.op_name(call) for call in calls], held


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_are_widened_and_then_moved(dtype: str) -> None:
    operators, (held,) = left(HELD, dtype)
    assert operators == ["relax.add"]
    assert held.dtype == dtype
    np.testing.assert_array_equal(held, HELD.T.astype(dtype))


@pytest.mark.parametrize(
    ("array", "dtype"),
    [(HELD.astype(np.float32), "float16"), (np.ones((2, 3), np.int8), "int32")],
)
def test_what_rounds_or_is_an_integer_stays(array: np.ndarray, dtype: str) -> None:
    operators, _ = left(array, dtype)
    assert operators == ["relax.astype", "relax.permute_dims", "relax.add"]
