"""Regions whose backend emits C, linked with TVM's kernels: ordered, planned, run from the file.

All numbers are small integers in float32, so that sums are exact in any order and what TVM makes
of the module that was never partitioned is the same bit by bit.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax import op

from tests.cases import sampled
from tests.llvm import TARGET
from tests.passes import c_backend
from tvm_serenity.memory import peak_bytes
from tvm_serenity.passes import LeanKernels, SerenityPlanMemory, SerenitySchedule
from tvm_serenity.relax.plan_memory import APART
from tvm_serenity.relax.read import WORKSPACES, read_function
from tvm_serenity.relax.schedule import ARENA
from tvm_serenity.runtime.vm import compare, run

SHAPE = (1, 4, 12, 10)


def network(seed: int, nodes: int = 7) -> Any:
    """Convolutions wired at random, 1 x 1 and 3 x 3, half of them with ``relu``."""
    rng = np.random.default_rng(seed)
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(SHAPE, "float32"))

    def layer(y: Any, channels: int, to: int, relu: bool) -> Any:
        size = int(rng.choice([1, 3]))
        weight = rng.integers(-1, 2, (to, channels, size, size)).astype("float32")
        made = builder.emit(op.nn.conv2d(y, relax.const(weight), padding=size // 2))
        return builder.emit(op.nn.relu(made)) if relu else made

    with builder.function("main", [x]):
        with builder.dataflow():
            maps = [x]
            for node in range(nodes):
                y = maps[int(rng.integers(len(maps)))]
                wide = layer(y, 4, int(rng.integers(8, 24)), True)
                maps.append(layer(wide, int(wide.ty.shape[1]), 4, node % 2 == 0))
            capped = [builder.emit(op.clip(y, -9, 9)) for y in maps]
            result = builder.emit_output(op.concat(capped, 1))
        builder.emit_func_output(result)
    return builder.get()


@pytest.fixture(scope="module", params=sampled([0, 1, 2], 2))
def modules(request: pytest.FixtureRequest) -> tuple[Any, Any, dict[str, int]]:
    plain = network(request.param)
    return plain, *c_backend.partitioned(plain)


def test_c_regions_run_in_order_and_in_shared_memory(
    modules: tuple[Any, Any, dict[str, int]], tmp_path: Path
) -> None:
    plain, parts, scratch = modules
    assert len(scratch) >= 6
    x = np.random.default_rng(9).integers(-2, 3, SHAPE).astype("float32")
    expected = run(tvm.compile(plain, TARGET), [x])
    stock = run(tvm.compile(parts, TARGET), [x])
    assert compare(expected.outputs, stock.outputs)["identical"]

    stated = parts.with_attr(WORKSPACES, scratch)
    ordered = SerenitySchedule()(LeanKernels()(stated))
    planned = SerenityPlanMemory()(ordered)
    path = tmp_path / "network.so"
    tvm.compile(planned, TARGET).export_library(str(path))
    ours = run(tvm.runtime.load_module(str(path)), [x], poison=0xA5)
    assert compare(expected.outputs, ours.outputs)["identical"]
    assert {name for name in ours.kernels if name in scratch} == set(scratch)

    attrs = planned["main"].attrs
    total = int(attrs.get(ARENA, 0)) + int(attrs[APART])
    results = sum(array.nbytes for array in ours.outputs)
    assert sum(ours.storages) == total + results < sum(stock.storages)
    assert peak_bytes(read_function(ordered).graph) < peak_bytes(read_function(stated).graph)
    assert max(scratch.values()) < peak_bytes(read_function(ordered).graph)


def test_what_a_region_writes_too_little_is_seen(
    modules: tuple[Any, Any, dict[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check is checked itself: a backend that leaves the last row out changes the outputs."""
    plain, *_ = modules
    short = c_backend.TEMPLATE.replace("ROWS = H ", "ROWS = H - 1 ")
    assert short != c_backend.TEMPLATE
    monkeypatch.setattr(c_backend, "TEMPLATE", short)
    parts, _ = c_backend.partitioned(plain)
    planned = SerenityPlanMemory()(SerenitySchedule()(parts))
    x = np.random.default_rng(9).integers(-2, 3, SHAPE).astype("float32")
    expected = run(tvm.compile(plain, TARGET), [x])
    ours = run(tvm.compile(planned, TARGET), [x], poison=0xA5)
    assert not compare(expected.outputs, ours.outputs)["identical"]
