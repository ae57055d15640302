"""The axis of rows: time and tokens as rows, with the bytes of the tensors as they are."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import cases, scaled
from tests.conformance.builder import Net
from tests.conformance.networks.parts import rows_back, rows_folded
from tests.conformance.quantise import integer_file, ranges
from tests.quantize.running import REFERENCE
from tests.rows.nets import needs_host
from tvm_serenity import firmware
from tvm_serenity.frontends import load, tflite_phases
from tvm_serenity.frontends.tflite_file import TfliteFile
from tvm_serenity.frontends.tflite_rows import network_of
from tvm_serenity.graph import Graph, Op, Tensor
from tvm_serenity.graph.row_axes import row_axes, upright
from tvm_serenity.rows.network import Network
from tvm_serenity.schedule import schedule


@pytest.mark.parametrize(
    ("shape", "axis", "stands"),
    [
        ((1, 9, 4, 2), 1, (1, 9, 4, 2)),
        ((1, 1, 9, 2), 2, (1, 9, 1, 2)),
        ((1, 9, 2), 1, (1, 9, 1, 2)),
        ((9, 2), 0, (1, 9, 1, 2)),
        ((1, 9, 3, 4, 2), 1, (1, 9, 12, 2)),
        ((4, 5, 6, 2), 0, (1, 4, 30, 2)),  # of a batch, images
        ((1, 7), None, (1, 7)),
    ],
)
def test_the_rows_of_an_input(
    shape: tuple[int, ...], axis: int | None, stands: tuple[int, ...]
) -> None:
    graph = _chain([shape, shape])
    assert row_axes(graph) == (axis, axis)
    assert upright(shape, axis) == stands
    assert np.prod(stands) == np.prod(shape)


@pytest.mark.parametrize(
    ("shapes", "view", "axis"),
    [
        ([(1, 9, 2), (1, 1, 9, 2)], True, 2),  # a sequence becomes an image of one row
        ([(1, 1, 9, 2), (1, 9, 2)], True, 1),
        ([(1, 9, 2), (9, 2)], True, 0),
        ([(1, 9, 2), (1, 1, 11, 2)], False, 2),  # padding and a change of axes in one kernel
        ([(1, 9, 9, 2), (1, 81, 2)], True, None),  # a box for each pixel: rows end
        ([(1, 9, 9, 2), (1, 81, 2), (1, 90, 2)], True, None),  # and do not begin again
        ([(1, 9, 4, 2), (1, 1, 4, 2)], False, 1),  # one row of an image, not rows of pixels
        ([(1, 9, 2), (1, 2)], False, None),  # a mean over time
        ([(1, 18), (1, 9, 2)], True, 1),  # rows begin behind a vector
    ],
)
def test_an_operator_keeps_the_rows_or_ends_them(
    shapes: list[tuple[int, ...]], view: bool, axis: int | None
) -> None:
    assert row_axes(_chain(shapes, view))[-1] == axis


def test_a_row_is_one_block() -> None:
    with pytest.raises(ValueError, match="before axis 2"):
        upright((1, 3, 9, 2), 2)


def _chain(shapes: list[tuple[int, ...]], view: bool = False) -> Graph:
    tensors = tuple(
        Tensor(f"t{i}", int(np.prod(shape)), shape, "int8") for i, shape in enumerate(shapes)
    )
    sizes = [tensor.size_bytes for tensor in tensors]
    ops = tuple(
        Op(f"o{i}", "OP", (i,), (i + 1,), view_of=i if view and sizes[i] == sizes[i + 1] else None)
        for i in range(len(shapes) - 1)
    )
    return Graph("chain", tensors, ops, (0,), (len(shapes) - 1,))


def _beats(net: Net) -> int:
    """An electrocardiogram: convolutions and pools over time."""
    x = rows_folded(net, net.input(1, 24, 2))
    x = net.pool("MAX", net.conv(x, 8, (1, 5), activation="RELU"), (1, 2), (1, 2))
    x = rows_back(net, net.conv(x, 12, (1, 3), (1, 2), activation="RELU"))
    return int(net.dense(net.mean(x, [1]), 4))


def _steps(net: Net) -> int:
    """Depthwise convolutions, and a dense layer of each step of time."""
    x = rows_folded(net, net.input(1, 20, 6))
    x = net.dense(net.depthwise(x, (1, 5), activation="RELU"), 10, keep=True)
    x = net.pool("AVERAGE", net.depthwise(x, (1, 3), (1, 2)), (1, 3), (1, 1))
    return int(net.softmax(rows_back(net, x)))


def _dilated(net: Net) -> int:
    """Causal convolutions with dilations, and sums of both."""
    x = net.input(1, 18, 4)
    for dilation in (1, 4):
        padded = rows_folded(net, net.pad(x, (2 * dilation, 0)))
        y = net.conv(padded, 4, (1, 3), 1, "VALID", "RELU", (1, dilation))
        x = net.add(x, rows_back(net, y))
    return x


def _long_window(net: Net) -> int:
    """A window of many steps, as vibration networks begin."""
    x = rows_folded(net, net.input(1, 64, 1))
    x = net.conv(x, 4, (1, scaled(16, 32)), (1, 8), activation="RELU")
    return int(net.dense(net.reshape(x, 1, 32), 3))


def _batch(net: Net) -> int:
    """Four images: each is a row, so that one image after the other is computed."""
    x = net.conv(net.input(4, 8, 8, 3), 6, 3, activation="RELU")
    x = net.pool("MAX", net.conv(x, 8, 3, 2, activation="RELU"))
    return int(net.dense(net.mean(x), 4))


NETWORKS = (_beats, _steps, _dilated, _long_window, _batch)


def _file(write: Callable[[Net], int], folder: Path) -> tuple[Path, bytes]:
    net = Net(54)
    net.output(write(net))
    data = integer_file(net, ranges(net, REFERENCE))
    path = folder / f"{write.__name__}.tflite"
    path.write_bytes(data)
    return path, data


@pytest.mark.parametrize("write", NETWORKS)
def test_a_network_over_time_is_exact_by_rows(write: Callable[[Net], int], tmp_path: Path) -> None:
    import tvm

    from tvm_serenity.frontends.relax import to_relax
    from tvm_serenity.relax.rows import by_rows
    from tvm_serenity.rows import Limits
    from tvm_serenity.runtime.pipeline import serenity_pipeline
    from tvm_serenity.runtime.vm import run
    from tvm_serenity.validation.network_inputs import random_inputs

    path, data = _file(write, tmp_path)
    model = load(path)
    assert isinstance(model, TfliteFile)
    module = to_relax(path)
    with tvm.target.Target("llvm"):
        made, found = by_rows(module, limits=Limits(0.1))
    found.check()
    assert found.arena_bytes < schedule(model.graph).peak_bytes
    inputs = random_inputs(module)
    pipeline = serenity_pipeline("given", validate=False)
    result = run(tvm.compile(made, target="llvm", relax_pipeline=pipeline), inputs)
    REFERENCE.open("litert", data)
    expected = REFERENCE.run([np.asarray(x) for x in inputs]).outputs
    assert [a.tobytes() for a in result.outputs] == [a.tobytes() for a in expected]
    assert [a.shape for a in result.outputs] == [a.shape for a in expected]


@pytest.mark.parametrize("write", [_beats, _steps, _long_window])
def test_the_file_and_the_kernels_read_the_same_rows(
    write: Callable[[Net], int], tmp_path: Path
) -> None:
    path, _ = _file(write, tmp_path)
    model = load(path)
    assert isinstance(model, TfliteFile)
    assert _windows(network_of(model)) == _windows(_of_kernels(path))


def _of_phases(folder: Path, draw: str, seed: int) -> tuple[Any, Any]:
    """The needs of dilated convolutions that are written as phases: of the file, of kernels."""
    from tests.passes import test_dilations as drawn

    path = drawn.stored(folder / "phases.tflite", getattr(drawn, draw)(seed), "int8")
    model = load(path)
    assert isinstance(model, TfliteFile)
    network = network_of(model)
    assert not any(layer.whole for layer in network.layers)
    return _windows(network), _windows(_of_kernels(path))


def test_convolutions_of_phases_are_dilated_ones(tmp_path: Path) -> None:
    """Near a border the file's rows may begin with rows that the kernels leave out."""
    for seed in cases(3, most=40):
        pairs = [_of_phases(tmp_path, "in_time", seed)]
        pairs += [_of_phases(tmp_path, "of_images", 2 + 3 * seed)] if seed < 2 else []
        for found, known in pairs:
            assert len(found) == len(known) > 0
            for need, expected in zip(found, known, strict=True):
                assert len(need) == len(expected)
                for (first, end), (least, last) in zip(need, expected, strict=True):
                    assert first in (0, least), seed
                    assert first <= least, seed
                    assert end == last, seed


def test_a_border_of_phases_that_is_left_out_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A seeded fault: the rows begin without the border of the division."""
    right, _ = _of_phases(tmp_path, "in_time", 1)
    read = tflite_phases._found

    def broken(*given: Any) -> Any:
        found = read(*given)
        return found and replace(found, before=(0,) * len(found.before))

    monkeypatch.setattr(tflite_phases, "_found", broken)
    wrong, known = _of_phases(tmp_path, "in_time", 1)
    assert wrong != right == known


def test_a_row_of_another_axis_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A seeded fault: strides are read along the height, which all kernels over time have as 1."""
    from tvm_serenity.operators import needs

    path, _ = _file(_beats, tmp_path)
    model = load(path)
    assert isinstance(model, TfliteFile)
    with monkeypatch.context() as patch:
        patch.setattr(needs.Seen, "along", lambda _self, height, _width: height)
        wrong = _windows(network_of(model))
    assert wrong != _windows(_of_kernels(path))


@needs_host
@pytest.mark.parametrize("how", [{"rows": 1, "stream_input": True}, {"sliding": 2}])
def test_firmware_takes_steps_of_time_one_by_one(how: dict[str, Any], tmp_path: Path) -> None:
    path, _ = _file(_beats, tmp_path)
    built = firmware.build(path, "mps2-an386", firmware.Settings(name="net", time_limit_s=1, **how))
    assert built.facts["check"]["tensors"] > 20
    assert re.search(rb"_ROWS +24\b", built.files["net_model.h"])


def _of_kernels(path: Path) -> Network:
    from tvm_serenity.frontends.relax import to_relax
    from tvm_serenity.relax.pipeline import Steps, prepared
    from tvm_serenity.relax.rows_read import read_rows

    return read_rows(prepared(to_relax(path), Steps(layout="last"), "llvm").plain, "net").network


def _windows(network: Network) -> list[Any]:
    """The needs of all layers that read several rows for a row."""
    split = [layer.needs for layer in network.layers if layer.splits and not layer.sums]
    return [need for needs in split for need in needs if need and max(b - a for a, b in need) > 1]


def test_only_layers_joined_along_the_rows_stack_them(tmp_path: Path) -> None:
    net = Net(5)
    pieces = [rows_folded(net, net.input(1, size, 4)) for size in (6, 9)]
    net.output(net.concat(*pieces, axis=2))
    path = tmp_path / "joined.tflite"
    path.write_bytes(integer_file(net, ranges(net, REFERENCE)))
    model = load(path)
    assert isinstance(model, TfliteFile)
    (join,) = [layer for layer in network_of(model).layers if layer.kind == "CONCATENATION"]
    first, second = join.needs
    assert first is not None
    assert second is not None
    assert [first[0], first[5], first[6]] == [(0, 1), (5, 6), (0, 0)]
    assert [second[5], second[6], second[14]] == [(0, 0), (0, 1), (8, 9)]
