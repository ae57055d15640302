"""Constants in flash beside the weights that a file holds: at most a tenth more."""

from pathlib import Path

import numpy as np
import pytest

from tests.conformance.builder import Net, float_file
from tests.firmware.projects import HELLO, KWS, build, model
from tvm_serenity.boards import board
from tvm_serenity.firmware.compile.fallback import make
from tvm_serenity.firmware.compile.model import opened
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.quantize import tables


@pytest.mark.parametrize(
    ("name", "held", "most"),
    [(HELLO, 420, 1.1), ("tflm/mnist_lstm_int8.tflite", 9_808, 1.1), (KWS, 26_684, 1.2)],
)
def test_files_keep_their_size(name: str, held: int, most: float) -> None:
    """``held``: bytes of weights and biases in the file, and of the weights' scales.

    Depthwise layers that are read in place take 10 bytes a channel more than by planes.
    """
    assert model(name).stat().st_size > held
    built = build(name, "mps2-an386", format="zephyr")
    assert built.facts["constant_bytes"] <= most * held


def test_little_work_takes_no_library() -> None:
    kernels = build(HELLO, "mps2-an386", format="zephyr").files
    text = next(data.decode() for name, data in kernels.items() if name.endswith("kernels.c"))
    assert "convolve" not in text


@pytest.mark.parametrize("rows", ["off", 1])
def test_slopes_are_kept_as_they_are_stored(rows: int | str, tmp_path: Path) -> None:
    net = Net(3)
    x = net.conv(net.input(1, 12, 10, 3), 16, 3)
    x = net.op("PRELU", [x, net.drawn(1, 1, 16)], net.shape(x))
    net.output(net.conv(x, 8, 1))
    path = tmp_path / "slopes.tflite"
    path.write_bytes(float_file(net))
    settings = Settings(name="slopes", check=False, time_limit_s=1, rows=rows)
    program = make(opened(path, settings).module, "slopes", board("mps2-an386"), settings).program
    outside = 30 * 4 * (rows == 1)  # a row of zeros
    held = sum(v.data.nbytes for v in net.values if v.data is not None)
    assert program.constant_bytes == held + outside


@pytest.mark.parametrize("scale", [0.02, 0.05, 0.2, 1.0, 30.0])
def test_a_table_of_exponentials_ends_where_they_do(scale: float) -> None:
    whole = tables.softmax(scale).exponentials
    short = tables.without_tail(whole)
    at = np.minimum(np.arange(256), len(short) - 1)
    lost = whole - short[at]
    assert (
        (np.asarray(whole) + (1 << 11)) >> 12 == (short[at].astype(int) + (1 << 11)) >> 12
    ).all()
    assert ((lost == 0) | (2 * lost < 1 << 15)).all()  # what a result of 16 bits is made of
    assert len(short) == 256 or short[-2] >= 1 << 11
