"""Networks of floats with 8-bit weights: as LiteRT computes them, whole, to the bit, in C too."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tests.cases import only_exhaustive, sampled
from tests.conformance.builder import Net
from tests.conformance.quantise import dynamic_file, half_file, integer_file, ranges
from tests.conformance.writer import Array
from tests.quantize.running import Machine, reference_of
from tvm_serenity.boards import board
from tvm_serenity.errors import InputError
from tvm_serenity.firmware.building import build
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.frontends.relax import to_relax
from tvm_serenity.relax.quantize import quantized_module
from tvm_serenity.validation.references import ReferenceRuntime


def network(seed: int = 1, depthwise: bool = True, spread: bool = True) -> Net:
    """Return a network of every operator that keeps its weights in 8 bits.

    ``spread``: with a transposed convolution, which LiteRT has not with weights of 4 bits.
    """
    net = Net(seed)
    x = net.input(1, 12, 10, 3)
    x = net.conv(x, 32, 3, stride=2, activation="RELU")
    y = net.depthwise(x, 3, activation="RELU6") if depthwise else x
    x = net.add(net.conv(y, 32, 1), x)
    x = net.transpose_conv(x, 8, 3) if spread else x
    x = net.dense(net.reshape(x, 1, -1), 30, activation="RELU")
    net.output(net.dense(x, 10))
    return net


def results(data: bytes, folder: Path, mode: str) -> tuple[list[Array], list[Array]]:
    """Return ours and LiteRT's."""
    path = folder / "model.tflite"
    path.write_bytes(data)
    reference = reference_of(data)
    machine = Machine(quantized_module(to_relax(path, dynamic_range=mode)))
    inputs = reference.inputs(3)
    return machine.run(inputs), list(reference.run(inputs).outputs)


@pytest.mark.parametrize("by_channel", [False, True])
def test_a_whole_network_is_litert_to_the_bit(tmp_path: Path, by_channel: bool) -> None:
    ours, theirs = results(dynamic_file(network(), by_channel), tmp_path, "litert")
    assert np.array_equal(ours[0], theirs[0])


def test_in_float_it_is_near(tmp_path: Path) -> None:
    ours, theirs = results(dynamic_file(network(), by_channel=False), tmp_path, "float")
    assert not np.array_equal(ours[0], theirs[0])
    np.testing.assert_allclose(ours[0], theirs[0], rtol=0.1, atol=0.1)


def file_bytes(net: Net, other: str, size: int) -> int:
    """Return the bytes of a network's constants where those that are not of ``other`` take 4."""
    held = [(v.data, v.role) for v in net.values if v.data is not None]
    return sum(data.size * (size if other in (role, "") else 4) for data, role in held)


@pytest.mark.parametrize(
    ("mode", "by_channel", "rows"),
    sampled(
        [("litert", True, "off"), ("litert", False, 1), ("litert", True, 1), ("float", True, 1)], 2
    ),
)
def test_weights_stay_8_bits_in_flash(
    tmp_path: Path, mode: str, by_channel: bool, rows: int | str
) -> None:
    net = network(2)
    path = tmp_path / "dynamic.tflite"
    path.write_bytes(dynamic_file(net, by_channel))
    settings = Settings(
        name="dynamic", output=tmp_path / "made", dynamic_range=mode, rows=rows, time_limit_s=1
    )
    made = build(path, board("netduinoplus2"), settings)
    assert made.facts["check"]["reference_runtime"]
    assert made.facts["constant_bytes"] <= 1.1 * file_bytes(net, "weight", 1)
    if rows == 1 and mode == "litert":  # activations are stored row by row, once all were seen
        assert not [
            text for text in made.facts["rows"]["left_unsplit"] if text.startswith("d_conv")
        ]


@pytest.mark.parametrize(("kind", "rows"), sampled(product(["int8", "dynamic"], ["off", 1]), 2))
def test_weights_stay_4_bits_in_flash(tmp_path: Path, kind: str, rows: int | str) -> None:
    net = network(4, depthwise=kind == "int8", spread=False)  # LiteRT has no such one of floats
    path = tmp_path / "four.tflite"
    if kind == "int8":
        with ReferenceRuntime() as reference:
            path.write_bytes(integer_file(net, ranges(net, reference), bits=4))
    else:
        path.write_bytes(dynamic_file(net, by_channel=True, bits=4))
    settings = Settings(name="four", output=tmp_path / "made", rows=rows, time_limit_s=1)
    made = build(path, board("netduinoplus2"), settings)
    assert made.facts["check"]["reference_runtime"]
    weights = sum(v.data.size for v in net.values if v.data is not None and v.role == "weight")
    others = sum(v.data.size for v in net.values if v.data is not None and v.role != "weight")
    assert made.facts["constant_bytes"] <= 1.1 * (weights / 2 + 9 * others)


@pytest.mark.parametrize("rows", [only_exhaustive("off"), 1])
def test_weights_stay_16_bits_in_flash(tmp_path: Path, rows: int | str) -> None:
    net = network(3)
    path = tmp_path / "half.tflite"
    path.write_bytes(half_file(net))
    settings = Settings(name="half", output=tmp_path / "made", rows=rows, time_limit_s=1)
    made = build(path, board("netduinoplus2"), settings)
    assert made.facts["check"]["reference_runtime"]
    assert made.facts["constant_bytes"] <= 1.1 * file_bytes(net, "", 2)


def test_there_are_two_modes(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--dynamic-range 'int8': there are litert, float"):
        Settings(dynamic_range="int8")
