"""TFLM's signal library: from samples to the levels of channels. TFLM is the reference."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.conformance.case import Case
from tests.conformance.operators.draws import Draw, case
from tests.conformance.writer import TYPES, Array, Node, T

STEPS = 4
"""Runs of a model, each with the states that the one before left."""


def _loud(d: Draw, shape: tuple[int, ...], dtype: str) -> Array:
    """Values of any magnitude: all bits, few bits, or the ends of the type."""
    if dtype == "float32":
        return d.values(shape, dtype)
    info, rng = np.iinfo(dtype), d.rng()
    values = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    kind = d.number(0, 3)
    if kind == 0:
        return np.asarray(rng.choice(np.array([info.min, 0, info.max], dtype), shape))
    if kind == 1:
        return np.asarray(values >> np.asarray(d.number(0, info.bits - 1), dtype))
    if kind == 2:
        return np.asarray(values >> rng.integers(0, info.bits, shape).astype(dtype))
    return np.asarray(values)


def _feeds(d: Draw, *given: T) -> tuple[tuple[Array, ...], ...]:
    return tuple(tuple(_loud(d, t.shape, t.dtype) for t in given) for _ in range(STEPS))


@st.composite
def _window(draw: Any) -> Case:
    d = Draw(draw)
    size = d.number(1, 40)
    x = T((*d.shape(d.number(0, 2), 3), size), "int16")
    tensors = [x, T((size,), "int16", data=_loud(d, (size,), "int16")), T(x.shape, "int16")]
    node = Node("SignalWindow", [0, 1], [2], {"shift": d.number(0, 20)})
    return case("SignalWindow", tensors, node, feeds=_feeds(d, x))


@st.composite
def _auto_scale(draw: Any) -> Case:
    d = Draw(draw)
    x = T((d.number(1, 40),), "int16")
    tensors = [x, T(x.shape, "int16"), T((), "int32")]
    node = Node("SignalFftAutoScale", [0], [1, 2])
    return case("SignalFftAutoScale", tensors, node, feeds=_feeds(d, x))


@st.composite
def _transform(draw: Any, inverse: bool) -> Case:
    d = Draw(draw)
    size, dtype = 2 ** d.number(2, 10), d.one(("int16", "int16", "int32", "float32"))
    lead = d.shape(d.number(0, 1), 3)
    length = size + 2 if inverse else d.number(1, size)
    x, made = T((*lead, length), dtype), T((*lead, size if inverse else size + 2), dtype)
    kind = "SignalIrfft" if inverse else "SignalRfft"
    node = Node(kind, [0], [1], {"T": TYPES[dtype], "fft_length": size})
    feeds = _feeds(d, x)
    return case(kind, [x, made], node, feeds=feeds)


@st.composite
def _energy(draw: Any) -> Case:
    d = Draw(draw)
    size = d.number(1, 40)
    x = T((2 * size,), "int16")
    options = {"start_index": 0, "end_index": size}  # TFLM leaves the rest as it lies in memory
    node = Node("SignalEnergy", [0], [1], options)
    return case("SignalEnergy", [x, T((size,), "uint32")], node, feeds=_feeds(d, x))


@st.composite
def _filter_bank(draw: Any) -> Case:
    d = Draw(draw)
    size, channels = d.number(1, 30), d.number(1, 8)
    widths = [d.number(0, min(size, 6)) for _ in range(channels + 1)]
    starts = [d.number(0, size - width) for width in widths]
    places = [sum(widths[:i]) for i in range(channels + 1)]
    count = max(sum(widths), 1)
    x = T((size,), "uint32")
    tables = [np.array(t, np.int16) for t in (starts, places, widths)]
    weights = [_loud(d, (count,), "int16") for _ in range(2)]
    tensors = [x, *(T(a.shape, "int16", data=a) for a in (*weights, *tables))]
    tensors.append(T((channels,), "uint64"))
    node = Node("SignalFilterBank", [0, 1, 2, 3, 4, 5], [6], {"num_channels": channels})
    return case("SignalFilterBank", tensors, node, feeds=_feeds(d, x))


@st.composite
def _square_root(draw: Any) -> Case:
    d = Draw(draw)
    x, bits = T((d.number(1, 30),), "uint64"), T((), "int32")
    node = Node("SignalFilterBankSquareRoot", [0, 1], [2])
    feeds = []
    for _ in range(STEPS):
        given = _loud(d, x.shape, "uint64")
        roots = np.sqrt(given.astype(np.float64)).astype(np.uint64) & np.uint64(0xFFFFFFFF)
        if d.chance():  # about squares, where a root is rounded the other way
            given = roots * roots + roots + np.uint64(d.number(0, 1))
        feeds.append((given, np.array(d.number(0, 16), np.int32)))
    made = T(x.shape, "uint32")
    return case("SignalFilterBankSquareRoot", [x, bits, made], node, feeds=tuple(feeds))


@st.composite
def _subtraction(draw: Any) -> Case:
    d = Draw(draw)
    x = T((d.number(1, 12),), "uint32")
    bits = d.number(4, 16)
    smooth, other = d.number(0, 1 << bits), d.number(0, 1 << bits)
    options = {
        "num_channels": x.shape[0],
        "smoothing": smooth,
        "one_minus_smoothing": (1 << bits) - smooth,
        "alternate_smoothing": other,
        "alternate_one_minus_smoothing": (1 << bits) - other,
        "min_signal_remaining": d.number(0, 1 << bits),
        "smoothing_bits": d.number(0, 12),
        "spectral_subtraction_bits": bits,
        "clamping": d.chance(),
    }
    kind = "SignalFilterBankSpectralSubtraction"
    tensors = [x, T(x.shape, "uint32"), T(x.shape, "uint32")]
    return case(kind, tensors, Node(kind, [0], [1, 2], options), feeds=_feeds(d, x))


@st.composite
def _pcan(draw: Any) -> Case:
    d = Draw(draw)
    x = T((d.number(1, 30),), "uint32")
    table = T((125,), "int16", data=_loud(d, (125,), "int16"))
    tensors = [x, T(x.shape, "uint32"), table, T(x.shape, "uint32")]
    node = Node("SignalPCAN", [0, 1, 2], [3], {"snr_shift": d.number(0, 30)})
    return case("SignalPCAN", tensors, node, feeds=_feeds(d, x, x))


@st.composite
def _log(draw: Any) -> Case:
    d = Draw(draw)
    x = T((d.number(1, 40),), "uint32")
    scale = d.one((64, 1, 65536, d.number(0, 2**20)))
    options = {"input_correction_bits": d.number(0, 8), "output_scale": scale}
    node = Node("SignalFilterBankLog", [0], [1], options)
    return case("SignalFilterBankLog", [x, T(x.shape, "int16")], node, feeds=_feeds(d, x))


@st.composite
def _delay(draw: Any) -> Case:
    d = Draw(draw)
    x = T((*d.shape(d.number(0, 2), 3), d.number(1, 12)), "int16")
    node = Node("SignalDelay", [0], [1], {"delay_length": d.number(0, 30)})
    return case("SignalDelay", [x, T(x.shape, "int16")], node, feeds=_feeds(d, x))


@st.composite
def _framer(draw: Any) -> Case:
    """Frames that are full from the first run on: TFLM leaves others as they lie in memory."""
    d = Draw(draw)
    step, frames = d.number(1, 6), d.number(1, 3)
    prefill = d.chance()
    size = d.number(step, 20) if prefill else step
    x = T((*d.shape(d.number(0, 1), 3), step * frames), "int16")
    made = T((*x.shape[:-1], frames, size), "int16")
    options = {"frame_size": size, "frame_step": step, "prefill": prefill}
    node = Node("SignalFramer", [0], [1, 2], options)
    return case("SignalFramer", [x, made, T((), "bool")], node, feeds=_feeds(d, x))


@st.composite
def _stacker(draw: Any) -> Case:
    """The same, with nothing to the right."""
    d = Draw(draw)
    channels, left = d.number(1, 6), d.number(0, 4)
    x, made = T((channels,), "int16"), T((channels * (left + 1),), "int16")
    options = {
        "num_channels": channels,
        "stacker_left_context": left,
        "stacker_right_context": 0,
        "stacker_step": 1,
    }
    node = Node("SignalStacker", [0], [1, 2], options)
    return case("SignalStacker", [x, made, T((), "bool")], node, feeds=_feeds(d, x))


@st.composite
def _overlap_add(draw: Any) -> Case:
    d = Draw(draw)
    size, frames, dtype = d.number(1, 12), d.number(1, 4), d.one(("int16", "int16", "float32"))
    step, lead = d.number(1, size), d.shape(d.number(0, 1), 3)
    x, made = T((*lead, frames, size), dtype), T((*lead, frames * step), dtype)
    node = Node("SignalOverlapAdd", [0], [1], {"T": TYPES[dtype], "frame_step": step})
    return case("SignalOverlapAdd", [x, made], node, feeds=_feeds(d, x))


STRATEGIES: dict[str, SearchStrategy[Case]] = {
    "SignalWindow": _window(),
    "SignalFftAutoScale": _auto_scale(),
    "SignalRfft": _transform(False),
    "SignalIrfft": _transform(True),
    "SignalEnergy": _energy(),
    "SignalFilterBank": _filter_bank(),
    "SignalFilterBankSquareRoot": _square_root(),
    "SignalFilterBankSpectralSubtraction": _subtraction(),
    "SignalPCAN": _pcan(),
    "SignalFilterBankLog": _log(),
    "SignalDelay": _delay(),
    "SignalFramer": _framer(),
    "SignalStacker": _stacker(),
    "SignalOverlapAdd": _overlap_add(),
}
