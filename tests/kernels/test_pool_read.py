"""Max pools read back from TVM's kernels: every geometry, and nothing that is another kernel."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")

from tvm import relax

from tests.firmware.drawn_kernels import max_pool
from tvm_serenity.kernels.lean import lean
from tvm_serenity.kernels.pool_read import max_pool_of
from tvm_serenity.kernels.records import MaxPool


def legalised(shape: tuple[int, ...], dtype: str, make: Any) -> Any:
    """The kernel that TVM makes of one operator."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(shape, dtype))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(make(x)))
    module = relax.transform.LegalizeOps()(builder.get())
    return next(f for g, f in module.functions.items() if g.name_hint != "main")


def pooled(spec: MaxPool, dtype: str = "") -> Any:
    """TVM's kernel of a pool."""
    behind = [
        (made - 1) * step + (window - 1) * apart + 1 - size - before
        for made, step, window, apart, size, before in zip(
            spec.output_shape[1:3],
            spec.strides,
            spec.window,
            spec.dilation,
            spec.shape[1:3],
            spec.before,
            strict=True,
        )
    ]
    padding = (*spec.before, *(max(n, 0) for n in behind))
    return legalised(
        spec.shape,
        dtype or spec.dtype,
        lambda x: relax.op.nn.max_pool2d(
            x, spec.window, spec.strides, padding, spec.dilation, layout="NHWC"
        ),
    )


@pytest.mark.parametrize("seed", range(24))
def test_pools_of_any_geometry_are_read(seed: int) -> None:
    spec, x, expected = max_pool(seed)
    found = max_pool_of(pooled(spec))
    assert found is not None
    assert (found.shape, found.dtype, found.window) == (spec.shape, spec.dtype, spec.window)
    assert found.before == spec.before
    lines, pixels = found.output_shape[1:3]
    assert lines >= spec.output_shape[1]
    assert pixels >= spec.output_shape[2]
    for found_step, step, made in zip(
        found.strides, spec.strides, found.output_shape[1:3], strict=True
    ):
        assert found_step == (step if made > 1 else 1)
    for apart, given, window in zip(found.dilation, spec.dilation, spec.window, strict=True):
        assert apart == (given if window > 1 else 1)
    assert x.dtype == expected.dtype


def test_what_is_no_max_pool_is_not_read_as_one() -> None:
    spec, _, _ = max_pool(2)
    assert max_pool_of(pooled(spec, "float32")) is None
    shape = spec.shape
    for make in (
        lambda x: relax.op.nn.avg_pool2d(x, (2, 2), layout="NHWC"),
        lambda x: relax.op.max(x, [1, 2], keepdims=True),
        lambda x: relax.op.min(x, [1, 2], keepdims=True),
        lambda x: relax.op.add(x, x),
        lambda x: relax.op.nn.max_pool2d(x, (2, 2), layout="NCHW"),
    ):
        found = max_pool_of(legalised(shape, spec.dtype, make))
        assert found is None or np.prod(found.window) == shape[1] * shape[2]


def test_another_value_outside_is_no_pool() -> None:
    """Where windows leave the image, what stands outside must be no more than any value."""
    spec, _, _ = max_pool(3)
    assert any(spec.before)
    kernel = lean(pooled(spec))
    text = kernel.script().replace("T.int8(-128)))", "T.int8(-127)))")
    text = text.replace("T.uint8(0)))", "T.uint8(1)))")
    assert text != kernel.script()
    from tvm.script import from_source

    assert max_pool_of(from_source(text)) is None
