"""Lean kernels make what TVM's own make, in poisoned memory, with no or little scratch."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

tvm = pytest.importorskip("tvm")

from tvm import relax, s_tir  # noqa: E402

from tests.conformance.relax_forms import (  # noqa: E402
    TARGET,
    kernels_differ,
    pipeline_differs,
    reference,
)
from tests.conformance.relax_rows import rows_differ  # noqa: E402
from tvm_serenity import compat  # noqa: E402
from tvm_serenity.kernels.lean import _form, lean  # noqa: E402
from tvm_serenity.kernels.nodes import parts  # noqa: E402
from tvm_serenity.kernels.tile import HOST, MCU, SCALAR  # noqa: E402
from tvm_serenity.kernels.workspace import workspace_of  # noqa: E402
from tvm_serenity.relax.lower import lowered  # noqa: E402

op = relax.op
nn = relax.op.nn


def module(make: Callable[[Any], Any], shape: tuple[int, ...], dtype: str = "float32") -> Any:
    """A function of one input."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(shape, dtype))
    with builder.function("main", [x]):
        with builder.dataflow():
            out = builder.emit_output(builder.normalize(make(x)))
        builder.emit_func_output(out)
    return builder.finalize()


def weights(*shape: int) -> Any:
    """Random weights."""
    return relax.const(np.random.default_rng(1).standard_normal(shape).astype("float32"))


def convolved(x: Any) -> Any:
    """4 channels to 8."""
    return nn.conv2d(x, weights(3, 3, 4, 8), data_layout="NHWC", kernel_layout="HWIO")


def pooled(x: Any) -> Any:
    """The largest of 2x2."""
    return nn.max_pool2d(x, (2, 2), (2, 2), layout="NHWC")


IMAGE = (1, 6, 6, 4)
PADDED = {
    "channels after a convolution": (lambda x: nn.pad(convolved(x), [0] * 7 + [4]), "float32"),
    "after an activation": (lambda x: nn.pad(nn.relu(convolved(x)), [0, 0, 0, 1, 0, 1, 0, 4]),
                            "float32"),
    "channels after a pool": (lambda x: nn.pad(pooled(x), [0] * 7 + [4]), "float32"),
    "one side after a pool of int8": (lambda x: nn.pad(pooled(x), [0, 0, 0, 1, 0, 1, 0, 0],
                                                       pad_value=-3), "int8"),
    "a batch after a pool": (lambda x: nn.pad(pooled(x), [0, 2, 0, 0, 0, 0, 0, 0]), "int8"),
}  # fmt: skip
REDUCED = {
    "sum of all": lambda x: op.sum(x),
    "mean of all, and further": lambda x: op.multiply(x, op.mean(x)),
    "largest of all, kept axes": lambda x: op.add(x, op.max(x, keepdims=True)),
    "place of the largest": lambda x: op.argmax(x, 3),
    "place of the smallest of all": lambda x: op.astype(op.argmin(op.reshape(x, [144])), "float32"),
    "variance of all": lambda x: op.variance(x),
    "normalised by layers": lambda x: nn.layer_norm(x, weights(4), weights(4), [3]),
    "normalised by all": lambda x: op.divide(op.subtract(x, op.mean(x)), op.std(x)),
    "sorted, which no schedule knows": lambda x: op.sort(nn.relu(x)),
    "softmax": lambda x: nn.softmax(nn.relu(x)),
}


def kernels_of(mod: Any) -> list[Any]:
    """The fused kernels of a module."""
    return [f for f in lowered(mod, TARGET).functions.values() if compat.is_prim_func(f)]


def differences(mod: Any) -> Any:
    """What lean forms make differently on one seeded input."""
    ty = mod["main"].params[0].ty
    shape = [int(e) for e in ty.shape.values]
    given = np.random.default_rng(2).integers(-90, 90, shape).astype(str(ty.dtype.dtype))
    found = reference(mod, [given])
    return [*kernels_differ(found), *rows_differ(found)]


@pytest.mark.parametrize("name", PADDED)
def test_padding_after_a_sum_is_written_and_needs_no_scratch(name: str) -> None:
    make, dtype = PADDED[name]
    mod = module(make, IMAGE, dtype)
    (kernel,) = kernels_of(mod)  # TVM fuses them
    assert differences(mod) == []
    assert [workspace_of(lean(kernel, t)) for t in (SCALAR, MCU, HOST)] == [0, 0, 0]


@pytest.mark.parametrize("name", REDUCED)
def test_reductions(name: str) -> None:
    mod = module(REDUCED[name], IMAGE)
    assert differences(mod) == []


@pytest.mark.parametrize("shape", [(), (1,), (0, 3)])
def test_tensors_of_one_element_and_of_none(shape: tuple[int, ...]) -> None:
    mod = module(lambda x: op.exp(op.add(op.add(x, x), relax.const(1.0))), shape)
    assert differences(mod) == []


def loops_around(kernel: Any) -> dict[str, int]:
    """How many loops stand around each block of a kernel."""
    schedule = s_tir.Schedule(kernel)
    blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    return {schedule.get(b).name_hint: len(schedule.get_loops(b)) for b in blocks}


def test_a_sum_begins_before_its_first_step() -> None:
    (kernel,) = kernels_of(module(lambda x: nn.relu(convolved(x)), IMAGE))
    names = {block.name_hint for block in parts(lean(kernel).body, s_tir.SBlock)}
    assert names >= {"conv2d_nhwc_init", "conv2d_nhwc_update", "compute"}


def test_a_sum_that_all_elements_read_is_made_once() -> None:
    (kernel,) = kernels_of(module(lambda x: op.multiply(x, op.mean(x)), IMAGE))
    assert loops_around(lean(kernel)) == {"x_red_init": 0, "x_red_update": 4, "T_multiply": 4}


@pytest.mark.parametrize(("given", "narrow"), [("uint32", "int16"), ("uint8", "int8")])
def test_a_number_that_wraps_keeps_its_bounds(
    given: str, narrow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(x: Any) -> Any:
        low, high = relax.const(-8, "int32"), relax.const(7, "int32")
        wide = op.astype(op.astype(x, narrow), "int32")
        return op.astype(op.maximum(op.minimum(wide, high), low), "int8")

    mod = module(make, (4,), given)
    values = [np.array([1, np.iinfo(narrow).max + 1, np.iinfo(given).max, 5], given)]
    found = reference(mod, values)
    assert pipeline_differs(mod, values, found) == []
    monkeypatch.setattr("tvm_serenity.kernels.lean.casts_keep_bounds", lambda _body: True)
    _form.cache_clear()
    assert pipeline_differs(mod, values, found) != []
    _form.cache_clear()


def test_kernels_that_state_an_offset_of_their_own_work_in_an_arena() -> None:
    mod = module(lambda x: nn.relu(op.cumsum(nn.relu(x), 3)), IMAGE)
    given = [np.random.default_rng(3).standard_normal(IMAGE).astype("float32")]
    assert pipeline_differs(mod, given, reference(mod, given)) == []
