"""Concats that convolutions alone read are not made: their pieces are read, bit by bit the same."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conformance.writer import Node, T, tflite
from tests.quantize.running import Machine, assert_exact, integer_module
from tests.quantize.test_operators import bias, scales, weights
from tvm_serenity import compat
from tvm_serenity.relax.quantize import quantized_module

STEPS = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}


def network(multiplier: int, read_elsewhere: bool = False) -> bytes:
    """A concat, a depthwise convolution of it, a pointwise one of that."""
    wide = 7 * multiplier
    tensors = [
        T((1, 6, 5, 4), "int8", 0.06, 5),
        T((1, 6, 5, 3), "int8", 0.06, 5),
        T((1, 6, 5, 7), "int8", 0.06, 5),
        T((1, 3, 3, wide), "int8", scales(wide), data=weights(1, 3, 3, wide), axis=3),
        T((wide,), "int32", [0.06 * s for s in scales(wide)], data=bias(wide)),
        T((1, 6, 5, wide), "int8", 0.08, -12),
        T((8, 1, 1, wide), "int8", scales(8), data=weights(8, 1, 1, wide, seed=1)),
        T((8,), "int32", [0.08 * s for s in scales(8)], data=bias(8)),
        T((1, 6, 5, 8), "int8", 0.1, 2),
    ]
    nodes = [
        Node("CONCATENATION", [0, 1], [2], {"axis": 3}),
        Node("DEPTHWISE_CONV_2D", [2, 3, 4], [5], {**STEPS, "depthMultiplier": multiplier}),
        Node("CONV_2D", [5, 6, 7], [8], STEPS),
    ]
    return tflite(tensors, nodes, [0, 1], [8, 2] if read_elsewhere else [8])


def joined(module: Any) -> int:
    """How many concats a module makes."""
    bindings = [b for block in module["main"].body.blocks for b in block.bindings]
    calls = [b.value for b in bindings if compat.is_call(b.value)]
    return sum(compat.op_name(call) == "relax.concat" for call in calls)


@pytest.mark.parametrize("multiplier", [1, 2])
def test_convolutions_read_the_pieces_of_a_concat(multiplier: int, tmp_path: Path) -> None:
    data = network(multiplier)
    module = integer_module(data, tmp_path)
    assert joined(module) == 0
    assert sum("q_depthwise" in f.name_hint for f in module.functions) == 2
    assert_exact(data, module)


def test_a_concat_that_others_read_is_made(tmp_path: Path) -> None:
    data = network(1, read_elsewhere=True)
    module = integer_module(data, tmp_path)
    assert joined(module) == 1
    assert_exact(data, module)


def test_folding_can_be_left_out(tmp_path: Path) -> None:
    from tvm_serenity.frontends.relax import to_relax

    path = tmp_path / "model.tflite"
    path.write_bytes(network(1))
    whole = quantized_module(to_relax(path, fold_concat=False))
    assert joined(whole) == 1
    pieces = quantized_module(to_relax(path))
    rng = np.random.default_rng(0)
    inputs = [rng.integers(-128, 128, (1, 6, 5, c)).astype(np.int8) for c in (4, 3)]
    wanted, found = (Machine(module).run(inputs)[0] for module in (whole, pieces))
    np.testing.assert_array_equal(found, wanted)
