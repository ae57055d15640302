"""16-bit fixed point: kernels compute what the specification does, of every value there is."""

from typing import Any

import numpy as np
import pytest
import tvm
from tvm.script.ir_builder import tirx as T  # noqa: N812

from tvm_serenity.kernels import fixed16
from tvm_serenity.kernels.build import written
from tvm_serenity.quantize import fixed16 as specified

VALUES = np.arange(-(1 << 15), 1 << 15, dtype=np.int32)


def computed(kind: str, bits: int) -> Any:
    """Return what a kernel makes of every value."""

    def body(x: Any, result: Any) -> None:
        with T.serial(1 << 16) as i:
            T.buffer_store(result, getattr(fixed16, kind)(x[i], bits), [i])

    whole = ((1 << 16,), "int32")
    main = written({"x": whole, "result": whole}, body).with_attr("global_symbol", "main")
    built = tvm.compile(tvm.IRModule({"main": main}), target="llvm")
    made = tvm.runtime.tensor(np.zeros(1 << 16, np.int32))
    built["main"](tvm.runtime.tensor(VALUES), made)
    return made.numpy()


@pytest.mark.parametrize(
    ("kind", "bits"), [("logistic", 3), *(("tanh", bits) for bits in range(12))]
)
def test_every_value_is_as_specified(kind: str, bits: int) -> None:
    assert np.array_equal(computed(kind, bits), getattr(specified, kind)(VALUES, bits))


@pytest.mark.parametrize("bits", range(12))
def test_the_specification_is_close_to_tanh(bits: int) -> None:
    real = np.tanh(VALUES * 2.0 ** (bits - 15))
    assert np.abs(specified.tanh(VALUES, bits) / 2**15 - real).max() < 5e-4


def test_the_specification_is_close_to_the_logistic_function() -> None:
    real = 1 / (1 + np.exp(-VALUES * 2.0**-12))
    assert np.abs(specified.logistic(VALUES) / 2**15 - real).max() < 3e-4
