"""The kernel library on layers of any shape, whole and line by line, against sums in numpy."""

import ctypes
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.firmware.library_form import library_forms
from tests.firmware.projects import needs_host
from tvm_serenity.firmware.emit.sources import kernels_header, kernels_source
from tvm_serenity.firmware.kernels import pack
from tvm_serenity.firmware.kernels.parts.calls import COUNT
from tvm_serenity.firmware.kernels.record import LibraryCall
from tvm_serenity.firmware.program import Kernel, Program
from tvm_serenity.firmware.select import library
from tvm_serenity.kernels.convolution import Convolution
from tvm_serenity.kernels.records import Requantise
from tvm_serenity.kernels.rows import RowKernel, RowParam
from tvm_serenity.quantize.fixed import multiplier, scaled

LAYERS = 60
FLAGS = "-std=gnu11 -O1 -Wall -Wextra -Werror -shared -fPIC -fsanitize=undefined"
TRAP = "-fsanitize-undefined-trap-on-error"


@dataclass(frozen=True)
class Drawn:
    """A layer with what it is called with, and what it must make."""

    spec: Convolution
    weights: Any
    bias: Any
    inputs: tuple[Any, ...]
    expected: Any


def drawn(seed: int, bits: int = 8) -> Drawn:
    """A convolution, depthwise in one case of three, of any window that fits into its image.

    ``bits``: of its weights.
    """
    rng = np.random.default_rng(seed)

    def one(*choices: int) -> int:
        return int(rng.choice(choices))

    depthwise = seed % 3 == 0
    kh, kw = one(1, 1, 2, 3), one(1, 1, 2, 3)
    dilation = (one(1, 1, 2), one(1, 1, 2))
    high, wide = (kh - 1) * dilation[0] + 1 + one(0, 2, 5), (kw - 1) * dilation[1] + 1
    wide += one(0, 0, 3, 6)
    padding = (one(0, 1, kh - 1), one(0, 1, kw - 1), one(0, 1), one(0, 1))
    channels = [one(4, 5, 8, 9) if depthwise else one(1, 3, 4, 8, 12)]
    if seed % 4 == 1:
        channels.append(one(4, 8, 3))
    made = channels[0] if depthwise else one(1, 2, 3, 4, 5, 6, 8, 9)
    dtype, out = ("int8", "uint8")[one(0, 1)], ("int8", "uint8")[one(0, 0, 1)]
    taps = kh * kw * (1 if depthwise else sum(channels))
    reals = rng.uniform(0.2, 1, made if seed % 2 else 1) / (taps * 40 * 10.0 ** one(0, 0, 5))
    reals = np.broadcast_to(reals * (300 if seed % 11 == 5 else 1), made)
    low, top = int(np.iinfo(out).min), int(np.iinfo(out).max)
    zero = int(rng.integers(low, top, endpoint=True))
    clamp = (low, top) if one(0, 0, 1) == 0 else (low + 30, top - 20)
    finish = Requantise(multiplier(reals), zero, *clamp, out, ("tflite", "single")[one(0, 0, 1)])
    limits = np.iinfo(dtype)
    spec = Convolution(
        "NHWC",
        tuple((1, high, wide, n) for n in channels[: 1 if depthwise else 2]),
        dtype,
        (kh, kw, made) if depthwise else (kh, kw, sum(channels), made),
        "int8",
        (one(1, 1, 2, 3), one(1, 1, 2)),
        padding,
        dilation,
        made if depthwise else 1,
        int(rng.integers(limits.min, limits.max, endpoint=True)),
        0,
        finish,
    )
    ends = (-127, 127) if bits == 8 else (-8, 7)
    weights = rng.integers(*ends, spec.weight_shape, endpoint=True).astype(np.int8)
    bias = rng.integers(-5000, 5000, made).astype(np.int32)
    inputs = tuple(
        rng.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)
        for shape in spec.pieces
    )
    return Drawn(spec, weights, bias, inputs, computed(spec, weights, bias, inputs))


def computed(spec: Convolution, weights: Any, bias: Any, inputs: tuple[Any, ...]) -> Any:
    """The result, summed window by window."""
    top, left, bottom, right = spec.padding
    whole = np.concatenate(inputs, axis=3)[0].astype(np.int64)
    border = ((top, bottom), (left, right), (0, 0))
    image = np.pad(whole, border, constant_values=spec.input_zero)
    _, height, width, channels = spec.output_shape
    (kh, kw), (dy, dx) = spec.weight_shape[:2], spec.dilation
    sums = np.zeros((height, width, channels), np.int64)
    for y in range(height):
        for x in range(width):
            y0, x0 = y * spec.strides[0], x * spec.strides[1]
            window = image[y0 : y0 + kh * dy : dy, x0 : x0 + kw * dx : dx][:kh, :kw]
            products = window * weights if spec.depthwise else window[..., None] * weights
            sums[y, x] = bias + products.reshape(-1, channels).sum(axis=0)
    finish = spec.requantise
    m = finish.multiplier
    made = scaled(sums, m.value, m.shift, finish.rounding) + finish.zero_point
    return np.clip(made, finish.low, finish.high).astype(finish.dtype)


def rows_under(spec: Convolution, y: int, inputs: tuple[Any, ...]) -> list[Any]:
    """The row of each source for row ``y``; one of zero points where it is outside."""
    found = []
    for x in inputs:
        for ky in range(spec.weight_shape[0]):
            row = y * spec.strides[0] - spec.padding[0] + ky * spec.dilation[0]
            outside = np.full(x.shape[2:], spec.input_zero, x.dtype)
            found.append(x[0, row] if 0 <= row < x.shape[1] else outside)
    return found


class Caller:
    """The kernels of layers, compiled for this machine."""

    def __init__(self, kernels: dict[str, Kernel], folder: Path) -> None:
        program = Program("net", tuple(kernels.values()), (), (), (), (), (), (), {})
        (folder / "net_kernels.h").write_text(kernels_header(program))
        (folder / "net_kernels.c").write_text(kernels_source(program))
        command = ["cc", *FLAGS.split(), TRAP, str(folder / "net_kernels.c"), "-o"]
        done = subprocess.run([*command, str(folder / "k.so"), "-lm"], capture_output=True)
        assert done.returncode == 0, done.stderr.decode()
        self.library = ctypes.CDLL(str(folder / "k.so"))

    def __call__(self, name: str, *arrays: Any) -> None:
        given = [np.ascontiguousarray(a) for a in arrays]
        getattr(self.library, f"net_{name}")(*(ctypes.c_void_p(a.ctypes.data) for a in given))


@needs_host
@pytest.mark.parametrize(
    ("vectors", "seed", "bits"), [(False, 0, 8), (True, LAYERS, 8), (False, 2 * LAYERS, 4)]
)
def test_layers_of_any_shape(
    vectors: bool, seed: int, bits: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pack, "LEAST_NARROW", 1 if bits == 4 else 256)
    layers = {f"layer{i}": drawn(seed + i, bits) for i in range(LAYERS)}
    kernels: dict[str, Kernel] = {}
    calls: dict[str, tuple[Drawn, LibraryCall, bool]] = {}
    for name, layer in layers.items():
        monkeypatch.setattr(library, "spec_of", lambda _function, _given, spec=layer.spec: spec)
        arguments = [*(None for _ in layer.inputs), layer.weights, layer.bias]
        slot = RowParam(0, ())
        slots = (slot,) * (len(layer.inputs) * layer.spec.weight_shape[0])
        for form, rows in (("whole", None), ("row", RowKernel((None,), (), slots, {}))):
            made = library_forms(f"{name}_{form}", arguments, rows, vectors=vectors)
            for number, found in enumerate(made):
                kernel = replace(found.kernel, name=f"{found.kernel.name}_{number}")
                kernels[kernel.name] = kernel
                calls[kernel.name] = (layer, found, rows is not None)
    assert sum(not by_rows for *_, by_rows in calls.values()) >= LAYERS
    assert sum(by_rows for *_, by_rows in calls.values()) > LAYERS * 3 // 4
    packed = [found for _, found, _ in calls.values() if "w4" in found.kernel.body]
    assert (len(packed) > LAYERS) == (bits == 4)
    call = Caller(kernels, tmp_path)
    for name, (layer, found, by_rows) in calls.items():
        made = np.zeros_like(layer.expected)
        if by_rows:
            merges = [np.array([1], np.uint32)] * (found.kernel.params[-1].name == COUNT)
            for y, row in enumerate(made):
                given = rows_under(layer.spec, y, layer.inputs)
                call(name, *given, *found.constants, row, *merges)
        else:
            scratch = [np.full(found.workspace_bytes, 0xA5, np.uint8)] * (found.workspace_bytes > 0)
            call(name, *layer.inputs, *found.constants, made, *scratch)
        assert (made == layer.expected).all(), (name, layer.spec)


def test_why_a_kernel_was_taken() -> None:
    from tests.firmware.small import apart, windows
    from tvm_serenity import firmware

    def choices(network: Any, **options: Any) -> Any:
        settings = firmware.Settings(check=False, **options)
        return firmware.build(network, "mps2-an386", settings).facts["choices"]

    for rows in ("off", 1):
        found = choices(windows(), rows=rows)
        assert {c["made_by"] for c in found} == {"library"}
        plain = choices(windows(), rows=rows, tuned=False)
        assert {c["made_by"] for c in plain} == {"TIR"}
        assert {tuple(c["others"]) for c in plain} == {("library: off",)}
    (one,) = choices(apart())
    assert one["made_by"] == "TIR"
    (other,) = one["others"]
    assert other.startswith("library: supports convolutions, dense layers")
