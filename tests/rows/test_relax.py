"""Networks by rows on the Relax VM: the same bits from an arena a fraction of the size."""

from typing import Any

import numpy as np
import pytest

from tests.llvm import TARGET
from tests.rows.nets import random_module


def run(module: Any, inputs: Any, pipeline: Any) -> Any:
    import tvm

    from tvm_serenity.runtime.vm import run as run_once

    return run_once(tvm.compile(module, target=TARGET, relax_pipeline=pipeline), inputs)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_vm_computes_the_same_by_rows(seed: int) -> None:
    import tvm

    from tvm_serenity.relax.quantize import quantized_module
    from tvm_serenity.relax.rows import by_rows
    from tvm_serenity.rows import Limits
    from tvm_serenity.runtime.pipeline import serenity_pipeline
    from tvm_serenity.validation.network_inputs import random_inputs

    module = random_module(seed, True)
    inputs = random_inputs(module)
    with tvm.target.Target("llvm"):
        made, found = by_rows(module, limits=Limits(0.5))
    found.check()
    rows = run(made, inputs, serenity_pipeline("given", validate=False))
    whole = run(quantized_module(module), inputs, "default")
    assert [a.tobytes() for a in rows.outputs] == [a.tobytes() for a in whole.outputs]


def test_the_rule_splits_and_leaves_the_rest_alone() -> None:
    import tvm

    from tvm_serenity.passes import SerenityRewrite

    def calls(module: Any) -> int:
        return sum(len(block.bindings) for block in module["main"].body.blocks)

    module = random_module(0, True)
    with tvm.target.Target("llvm"):
        split = SerenityRewrite(rules=["rows"], time_limit_s=0.5)(module)
        dense = _dense()
        tvm.ir.assert_structural_equal(SerenityRewrite(rules="rows")(dense), dense)
    assert calls(split) > 15


def _dense() -> Any:
    from tvm import relax

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([1, 8], "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            weight = relax.const(np.ones((8, 4), np.float32))
            made = builder.emit_output(relax.op.matmul(x, weight))
        builder.emit_func_output(made)
    return builder.get()
