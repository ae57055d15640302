"""Images made larger, pools that count what is inside, and answers a pixel, row by row."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tests.cases import sampled
from tests.conformance.builder import Net, float_file
from tests.conformance.quantise import integer_file, ranges
from tests.quantize.running import REFERENCE
from tests.rows.nets import Built, Host, build, needs_host, program, streaming
from tests.rows.test_property import differing
from tvm_serenity.firmware.program import Program, Row
from tvm_serenity.frontends.relax import to_relax
from tvm_serenity.rows.split import heights_of

COORDINATES: tuple[dict[str, bool], ...] = (
    {"halfPixelCenters": True},
    {"alignCorners": True},
    {},
)
"""How LiteRT places the pixels of a larger image; one after the other in a network."""


def segmenting(seed: int) -> Net:
    """Three resizes up and down, each beside a map of its size, and a class a pixel."""
    rng = np.random.default_rng(seed)
    net = Net(seed)
    x = net.conv(net.input(1, *rng.integers(9, 16, 2), 3), 4, 3, 2, activation="RELU")
    for coordinates in COORDINATES:
        height, width = (int(extent) for extent in rng.integers(5, 19, 2))
        x = net.resize("BILINEAR", x, height, width, **coordinates)
        beside = net.conv(x, 2, activation="RELU")
        x = net.pool("AVERAGE", net.concat(x, beside), 3, 1, "SAME")
    net.output(net.softmax(net.conv(x, 3, 1)))
    return net


def built(seed: int, integers: bool, folder: Path) -> Built:
    net = segmenting(seed)
    path = folder / "net.tflite"
    path.write_bytes(integer_file(net, ranges(net, REFERENCE)) if integers else float_file(net))
    return build(to_relax(str(path)))


@needs_host
@pytest.mark.parametrize(("integers", "seed"), sampled(product([True, False], [1, 2]), 2))
def test_every_row_of_resized_maps_is_that_of_whole_ones(
    seed: int, integers: bool, tmp_path: Path
) -> None:
    made = built(seed, integers, tmp_path)
    assert made.kernels.network.unsplit == ()
    host = Host(tmp_path)
    for height in (1, 2, 5):
        rows = program(made, streaming(made, heights_of(made.kernels.network, height)))
        assert not differing(made, rows, host.run(rows, made.inputs)), height


@needs_host
def test_the_answer_is_that_of_the_files_runtime(tmp_path: Path) -> None:
    made = built(3, True, tmp_path)
    rows = program(made, streaming(made, heights_of(made.kernels.network, 1)))
    REFERENCE.open("litert", (tmp_path / "net.tflite").read_bytes())
    expected = REFERENCE.run([np.asarray(x) for x in made.inputs]).outputs
    run = Host(tmp_path).run(rows, made.inputs)
    assert run.outputs == tuple(np.asarray(a).tobytes() for a in expected)


@needs_host
def test_a_wrong_row_of_a_list_is_seen(tmp_path: Path) -> None:
    made = built(1, True, tmp_path)
    rows = program(made, streaming(made, heights_of(made.kernels.network, 1)))
    assert differing(
        made, _one_row_wrong(rows), Host(tmp_path).run(_one_row_wrong(rows), made.inputs)
    )


def _one_row_wrong(rows: Program) -> Program:
    """The program with the last row of the first list another one."""
    steps = list(rows.steps)
    for number, step in enumerate(steps):
        for at, argument in enumerate(step.arguments):
            if isinstance(argument, Row) and argument.listed:
                wrong = (*argument.listed[:-1], argument.listed[-1] - 1)
                given = list(step.arguments)
                given[at] = replace(argument, listed=wrong)
                steps[number] = replace(step, arguments=tuple(given))
                return replace(rows, steps=tuple(steps))
    raise AssertionError("no rows are listed")
