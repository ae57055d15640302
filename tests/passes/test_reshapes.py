"""Chains of reshapes: one view of the first tensor, no kernel that copies."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

tvm = pytest.importorskip("tvm")

from tvm import relax  # noqa: E402

from tvm_serenity import compat  # noqa: E402
from tvm_serenity.relax.bindings import bindings  # noqa: E402
from tvm_serenity.relax.lower import lowered  # noqa: E402
from tvm_serenity.relax.reshapes import joined_reshapes  # noqa: E402

Array = npt.NDArray[Any]


def chain(*shapes: tuple[int, ...]) -> Any:
    """A softmax, reshapes, and a softmax of the last one."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((6, 4), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(relax.op.nn.softmax(x))
            for shape in shapes:
                y = builder.emit(relax.op.reshape(y, shape))
            result = builder.emit_output(relax.op.nn.softmax(y))
        builder.emit_func_output(result)
    return builder.finalize()


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def reshapes(module: Any) -> int:
    values = [value for _, value in bindings(module["main"]) if compat.is_call(value)]
    return sum(compat.op_name(value) == "relax.reshape" for value in values)


def kernels(module: Any) -> int:
    values = [value for _, value in bindings(module["main"]) if compat.is_call(value)]
    return sum(compat.called_kernel(value) is not None for value in values)


@pytest.mark.parametrize(
    ("shapes", "left"),
    [
        (((4, 6), (2, 12), (3, 8)), 1),
        (((4, 6), (6, 4)), 0),
        (((6, 4),), 0),
        (((4, 6), (6, 4), (2, 12)), 1),
    ],
)
def test_chains_are_one_reshape(shapes: tuple[tuple[int, ...], ...], left: int) -> None:
    module = chain(*shapes)
    joined = joined_reshapes(module)
    assert reshapes(joined) == left
    assert joined["main"].ret_ty == module["main"].ret_ty
    views = lowered(module, "llvm")
    assert reshapes(views) == left
    assert kernels(views) == 2
    x = np.random.default_rng(1).normal(size=(6, 4)).astype(np.float32)
    machine = relax.VirtualMachine(tvm.compile(views, target="llvm"), tvm.cpu())
    expected = softmax(softmax(x).reshape(shapes[-1]))
    np.testing.assert_allclose(machine["main"](tvm.runtime.tensor(x)).numpy(), expected, rtol=1e-5)


def test_a_reshape_that_is_returned_stays() -> None:
    module = chain((4, 6))
    assert joined_reshapes(module) is module
