"""Convolutions of phases as dilated ones: the same results, no element moved."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import cases
from tests.conformance.builder import Net, float_file
from tests.conformance.networks.parts import rows_back, rows_folded
from tests.conformance.quantise import dynamic_file, integer_file, ranges
from tests.quantize.running import REFERENCE, Machine

tvm = pytest.importorskip("tvm")

from tvm_serenity import compat  # noqa: E402
from tvm_serenity.frontends.relax import to_relax  # noqa: E402
from tvm_serenity.passes import SerenityDilations  # noqa: E402
from tvm_serenity.relax.bindings import bindings  # noqa: E402
from tvm_serenity.relax.dilations import dilations  # noqa: E402
from tvm_serenity.relax.pipeline import Steps, prepared  # noqa: E402

Sides = Sequence[tuple[int, int]]


def divided(net: Net, x: int, blocks: Sequence[int], sides: Sides) -> int:
    n, *extents, channels = net.shape(x)
    apart = [(e + sum(s)) // b for e, s, b in zip(extents, sides, blocks, strict=True)]
    shape = (n * int(np.prod(blocks)), *apart, channels)
    given = [x, net.index(list(blocks)), net.index([list(side) for side in sides])]
    return int(net.op("SPACE_TO_BATCH_ND", given, shape))


def interleaved(net: Net, x: int, blocks: Sequence[int], cuts: Sides) -> int:
    n, *extents, channels = net.shape(x)
    whole = [e * b - sum(c) for e, b, c in zip(extents, blocks, cuts, strict=True)]
    given = [x, net.index(list(blocks)), net.index([list(cut) for cut in cuts])]
    return int(net.op("BATCH_TO_SPACE_ND", given, (n // int(np.prod(blocks)), *whole, channels)))


def in_time(seed: int) -> Net:
    """Dilated convolutions of a sequence, causal, centred or without padding, in a chain."""
    net = Net(seed)
    rng = np.random.default_rng(seed)
    steps, channels = int(rng.integers(18, 31)), int(rng.integers(1, 6))
    x = net.input(1, steps, channels)
    for _ in range(2):
        dilation, taps = int(rng.integers(2, 5)), int(rng.integers(2, 4))
        ahead = int(rng.integers(3)) * (taps - 1) * dilation // 2
        if rng.integers(2):
            x, ahead = net.pad(x, (ahead, 0)), 0
        length = net.shape(x)[1]
        rest = -(length + ahead) % dilation
        y = rows_folded(net, divided(net, x, [dilation], [(ahead, rest)]))
        window = (1, taps)
        if rng.integers(2):
            y = net.conv(y, int(rng.integers(1, 6)), window, 1, "VALID", "RELU")
        else:
            y = net.depthwise(y, window, 1, "VALID")
        x = interleaved(net, rows_back(net, y), [dilation], [(0, rest)])
    net.output(x)
    return net


def of_images(seed: int) -> Net:
    """A dilated convolution of an image, its phases padded as well, and of two images."""
    net = Net(seed)
    rng = np.random.default_rng(seed)
    height, width = (int(e) for e in rng.integers(7, 12, 2))
    x = net.input(int(rng.integers(1, 3)), height, width, 2)
    blocks = [int(b) for b in rng.integers(1, 4, 2)]
    blocks[0] += blocks == [1, 1]
    ahead = [int(a) for a in rng.integers(0, 3, 2)]
    rest = [-(e + a) % b for e, a, b in zip((height, width), ahead, blocks, strict=True)]
    y = divided(net, x, blocks, list(zip(ahead, rest, strict=True)))
    y = net.conv(y, 3, (3, 2), 1, "SAME", "RELU6", int(rng.integers(1, 3)))
    net.output(interleaved(net, y, blocks, [(0, r) for r in rest]))
    return net


def stored(path: Path, net: Net, dtype: str) -> Path:
    known = ranges(net, REFERENCE)
    path.write_bytes(float_file(net) if dtype == "float32" else integer_file(net, known, dtype))
    return path


def drawn(net: Net, dtype: str, seed: int) -> list[Any]:
    """Inputs over the whole range of a type."""
    rng, shape = np.random.default_rng(seed), net.shape(net.inputs[0])
    if dtype == "float32":
        return [rng.normal(0, 1, shape).astype(dtype) for _ in range(3)]
    limits = np.iinfo(dtype)
    return [rng.integers(limits.min, limits.max + 1, shape).astype(dtype) for _ in range(3)]


def called(module: Any) -> list[str]:
    values = [value for _, value in bindings(module["main"]) if compat.is_call(value)]
    return [compat.op_name(value) for value in values]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "float32"])
@pytest.mark.parametrize("draw", [in_time, of_images])
def test_results_are_the_references(tmp_path: Path, draw: Any, dtype: str) -> None:
    for seed in cases(2, most=12):
        net = draw(seed)
        path = stored(tmp_path / "net.tflite", net, dtype)
        module = to_relax(path)
        made = SerenityDilations()(module)
        assert "relax.permute_dims" in called(module)
        assert not {"relax.permute_dims", "relax.strided_slice"} & set(called(made))
        assert [p.ty for p in made["main"].params] == [p.ty for p in module["main"].params]
        machine = Machine(made)
        REFERENCE.open("litert", path.read_bytes())
        for x in drawn(net, dtype, seed):
            (found,), (expected,) = machine.run([x]), REFERENCE.run([x]).outputs
            if dtype == "float32":
                np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
            else:
                assert found.tobytes() == expected.tobytes(), seed


def test_a_border_of_another_value_stays(tmp_path: Path) -> None:
    """The phases of PADV2 have a border that a convolution does not pad by."""
    net = Net(3)
    x = net.input(1, 12, 2)
    value = net.constant(np.float32(0.5))
    edges = net.index([[0, 0], [4, 0], [0, 0]])
    x = net.op("PADV2", [x, edges, value], (1, 16, 2))
    y = rows_folded(net, divided(net, x, [2], [(0, 0)]))
    y = net.conv(y, 2, (1, 3), 1, "VALID")
    net.output(interleaved(net, rows_back(net, y), [2], [(0, 0)]))
    made = SerenityDilations()(to_relax(stored(tmp_path / "net.tflite", net, "float32")))
    assert called(made).count("relax.nn.pad") == 1
    assert "relax.permute_dims" not in called(made)


@pytest.mark.parametrize("kind", ["strides", "scales of each image", "pool"])
def test_other_phases_stay(tmp_path: Path, kind: str) -> None:
    net = Net(4)
    x = divided(net, net.input(1, 12, 12, 2), [2, 2], [(0, 0), (0, 0)])
    if kind == "pool":
        y = net.pool("MAX", x, 2, 1)
    else:
        y = net.conv(x, 2, 3, 2 if kind == "strides" else 1)
    net.output(interleaved(net, y, [2, 2], [(0, 0), (0, 0)]))
    path = tmp_path / "net.tflite"
    if kind == "scales of each image":
        path.write_bytes(dynamic_file(net, by_channel=True))
    else:
        stored(path, net, "int8")
    module = to_relax(path)
    assert dilations(module) is module


def test_phases_that_others_read_stay_beside_the_image(tmp_path: Path) -> None:
    net = Net(5)
    x = divided(net, net.input(1, 12, 2), [3], [(0, 0)])
    y = rows_back(net, net.conv(rows_folded(net, x), 4, (1, 2), 1, "VALID"))
    net.output(interleaved(net, y, [3], [(0, 0)]), net.unary("TANH", y))
    path = stored(tmp_path / "net.tflite", net, "int8")
    made = SerenityDilations()(to_relax(path))
    assert called(made).count("relax.permute_dims") == 1
    machine = Machine(made)
    REFERENCE.open("litert", path.read_bytes())
    for x in drawn(net, "int8", 5):
        expected = [array.tobytes() for array in REFERENCE.run([x]).outputs]
        assert [array.tobytes() for array in machine.run([x])] == expected


def test_it_is_divided_into_rows(tmp_path: Path) -> None:
    module = to_relax(stored(tmp_path / "net.tflite", in_time(1), "int8"))
    rows = prepared(module, Steps(rows=True, time_limit_s=2), "llvm").rows
    assert rows is not None
    assert not rows.banded.network.unsplit
