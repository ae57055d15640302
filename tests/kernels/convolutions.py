"""Convolution kernels and arguments for them."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tvm_serenity.quantize.fixed import multiplier

tvm = pytest.importorskip("tvm")

from tvm_serenity import compat  # noqa: E402
from tvm_serenity.kernels.convolution import Convolution, convolution  # noqa: E402
from tvm_serenity.kernels.records import Requantise  # noqa: E402

Array = npt.NDArray[Any]
CHANNELS = 12


def convolution_of(
    pieces: tuple[int, ...] = (12,), layout: str = "NHWC", depthwise: bool = False
) -> Any:
    """A 3x3 convolution of a padded 7x10 image, 12 channels to 12, a multiplier a channel."""
    inputs = sum(pieces)
    sizes = [(1, 7, 10, c) if layout == "NHWC" else (1, c, 7, 10) for c in pieces]
    finish = Requantise(multiplier(np.linspace(4e-4, 9e-4, CHANNELS)), 3, -128, 127, "int8")
    return convolution(
        Convolution(
            layout=layout,
            pieces=tuple(sizes),
            dtype="int8",
            weight_shape=(3, 3, CHANNELS) if depthwise else (3, 3, inputs, CHANNELS),
            weight_dtype="int8",
            strides=(1, 1),
            padding=(1, 1, 1, 1),
            dilation=(1, 1),
            groups=inputs if depthwise else 1,
            input_zero=-5,
            weight_zero=0,
            requantise=finish,
        )
    )


def arguments_of(kernel: Any) -> list[Array]:
    """Random arguments; multipliers and shifts as a requantisation has them."""
    rng = np.random.default_rng(0)
    made = []
    for param in kernel.params:
        shape, dtype = compat.buffer_shape(param), compat.buffer_dtype(param)
        low, high = {"m0": (1 << 30, (1 << 31) - 1), "m1": (-9, -7), "b": (-999, 999)}.get(
            str(param.name), (-128, 127)
        )
        made.append(rng.integers(low, high, shape).astype(dtype))
    return made


def computed(kernel: Any, arguments: list[Array]) -> Array:
    """The result of a kernel."""
    run = tvm.compile(kernel.with_attr("global_symbol", "main"), "llvm")["main"]
    tensors = [tvm.runtime.tensor(array) for array in arguments]
    run(*tensors)
    return np.asarray(tensors[-1].numpy())
