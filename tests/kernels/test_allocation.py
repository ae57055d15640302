"""No kernel of a compiled module allocates: neither through the VM nor from TVM's backend."""

import re
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

tvm = pytest.importorskip("tvm")

from tvm.script.ir_builder import tirx as T  # noqa: E402, N812

from tests.cases import sampled  # noqa: E402
from tvm_serenity.frontends.relax import to_relax  # noqa: E402
from tvm_serenity.kernels.build import written  # noqa: E402
from tvm_serenity.passes import serenity_pipeline  # noqa: E402
from tvm_serenity.runtime.vm import run  # noqa: E402
from tvm_serenity.tvm_targets import native  # noqa: E402
from tvm_serenity.validation.network_inputs import random_inputs  # noqa: E402

BACKEND = "TVMBackendAllocWorkspace"
STACK_BYTES = 1024
"""What a kernel may keep on the stack: register tiles that are spilled."""


def machine_code(executable: Any) -> str:
    """The LLVM code of all kernels."""
    modules = [executable.mod]
    for module in modules:
        modules += list(module.imports)
    return "\n".join(m.inspect_source("ll") for m in modules if m.kind == "llvm")


def stack_bytes(code: str) -> int:
    """The largest array any kernel puts on its stack."""
    found = re.findall(r"alloca \[(\d+) x i8\]|alloca \[(\d+) x [if]32\]", code)
    return max((int(a or 0) + 4 * int(b or 0) for a, b in found), default=0)


MODELS = (
    "mlperf_tiny/kws_dscnn_int8.tflite",
    "mlperf_tiny/ic_resnet8_int8.tflite",
    "tflm/keyword_scrambled.tflite",
    "mlperf_tiny/kws_dscnn_fp32.tflite",
    "mlperf_tiny/ic_resnet8_fp32.onnx",
)
CPUS = ("x86-64-v3", "cascadelake")
"""Processors with vectors of 256 and of 512 bits."""


def compiled_for(module: Any, target: Any) -> Any:
    with target:
        return tvm.compile(module, target, relax_pipeline=serenity_pipeline(validate=False))


def assert_no_allocation(code: str) -> None:
    assert "define" in code
    assert BACKEND not in code
    assert stack_bytes(code) <= STACK_BYTES


@pytest.mark.parametrize(("name", "cpu"), sampled(product(MODELS, CPUS), 2))
def test_vector_kernels_allocate_nothing(name: str, cpu: str, shared: Path) -> None:
    module = to_relax(shared / "models" / name)
    target = tvm.target.Target({"kind": "llvm", "mcpu": cpu, "mtriple": "x86_64-linux-gnu"})
    assert_no_allocation(machine_code(compiled_for(module, target)))


def test_an_allocation_is_found() -> None:
    """Of a kernel whose sums are in memory of the scope that TVM takes from its backend."""
    held: dict[str, tuple[tuple[int, ...], str]] = dict.fromkeys(("x", "out"), ((64,), "float32"))

    def copy(x: Any, out: Any) -> None:
        made = T.alloc_buffer((64,), "float32", scope="local")
        with T.vectorized(64) as i:
            T.buffer_store(made, x[i], [i])
        with T.vectorized(64) as i:
            T.buffer_store(out, made[i], [i])

    kernel = written(held, copy).with_attr("global_symbol", "main")
    code = machine_code(tvm.compile(tvm.IRModule({"main": kernel}), target="llvm"))
    with pytest.raises(AssertionError):
        assert_no_allocation(code)


@pytest.mark.parametrize(
    ("name", "target"), sampled(product(MODELS, [tvm.target.Target("llvm"), native()]), 2)
)
def test_a_compiled_model_allocates_its_arena_and_its_results_alone(
    name: str, target: Any, shared: Path
) -> None:
    module = to_relax(shared / "models" / name)
    executable = compiled_for(module, target)
    assert_no_allocation(machine_code(executable))
    found = run(executable, random_inputs(module))
    results = [array.nbytes for array in found.outputs]
    assert len(found.storages) == 1 + len(results)
    assert Counter(results) <= Counter(found.storages)


def test_the_count_sees_allocations_of_stock_kernels(shared: Path) -> None:
    module = to_relax(shared / "models/mlperf_tiny/kws_dscnn_fp32.tflite")
    executable = tvm.compile(module, "llvm")
    assert BACKEND in machine_code(executable)
    found = run(executable, random_inputs(module))
    assert len(found.storages) > 2
    assert np.isfinite(found.outputs[0]).all()
