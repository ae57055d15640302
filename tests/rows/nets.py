"""Random networks of operators that keep rows apart, in NHWC, and their host programs by rows."""

import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from tvm_serenity.boards import board
from tvm_serenity.firmware.board.execute import Execution, run_here
from tvm_serenity.firmware.board.toolchain import compiler, environment, have
from tvm_serenity.firmware.check.calls import check
from tvm_serenity.firmware.emit.project import Files, Layout, project
from tvm_serenity.firmware.program import Program
from tvm_serenity.rows import Limits, stream
from tvm_serenity.rows.stream import Streaming
from tvm_serenity.zoo.window import Window

MODELS = Path(__file__).resolve().parents[3] / "shared" / "data" / "models"
BOARD = "mps2-an386"
FLAGS = ("-std=gnu11", "-O1", "-ffp-contract=off", "-w", "-DSERENITY_TRACE")

needs_host = pytest.mark.skipif(not have("make", "cc"), reason="needs make and a C compiler")
needs_board = pytest.mark.skipif(
    not have("make", "arm-none-eabi-gcc", "qemu-system-arm"),
    reason="apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm",
)


def model(name: str) -> Path:
    path = MODELS / name
    if not path.is_file():
        pytest.skip(f"the shared data is not at {path}")
    return path


def random_module(seed: int, quantised: bool) -> Any:
    """A network of 4 to 7 operators: windows of 1 to 7, strides 1 to 3, any padding."""
    from tvm_serenity.zoo.net import NetBuilder
    from tvm_serenity.zoo.net import module as written
    from tvm_serenity.zoo.quantised import QuantisedNet

    rng = Random(seed)
    size = rng.randint(5, 9)

    def write(net: Any) -> Any:
        made = [net.input("x", rng.choice((1, 3, 4)), size)]
        made.append(net.conv(made[0], rng.choice((4, 6, 8)), _window(rng, size)))
        for _ in range(rng.randint(3, 6)):
            made.append(_operator(net, rng, made))
        return net.stored(made[-1]) if quantised else made[-1]

    return written(write, "NHWC", seed, QuantisedNet if quantised else NetBuilder)


def _operator(net: Any, rng: Random, made: list[Any]) -> Any:
    x = made[-1]
    window = _window(rng, min(x.height, x.width))
    alike = [y for y in made[:-1] if (y.height, y.width) == (x.height, x.width)]
    same = [y for y in alike if y.channels == x.channels]
    kind = rng.choice(("conv", "relu", "depthwise", "depthwise", "max", "mean", "add", "cat"))
    if kind == "add" and same:
        return net.add(x, rng.choice(same))
    if kind == "cat" and alike:
        return net.concat([x, rng.choice(alike)])
    if kind == "relu":
        return net.relu6(net.conv(x, rng.choice((3, 4, 8)), window))
    if kind == "depthwise":
        return net.depthwise(x, window)
    top, left, bottom, right = (p // 2 for p in window.padding)
    pooling = replace(window, dilation=1, padding=(top, left, bottom, right))
    if kind == "max":
        return net.max_pool(x, pooling)
    if kind == "mean":
        return net.avg_pool(x, pooling)
    return net.conv(x, rng.choice((4, 8)), window)


def _window(rng: Random, extent: int) -> Window:
    """A window that fits: padded as SAME, not at all, or by amounts of its own."""
    kernel = rng.randint(1, min(7, extent))
    stride = rng.randint(1, 3) if extent > 4 else 1
    dilation = 2 if kernel * 2 <= extent and rng.random() < 0.2 else 1
    reach = (kernel - 1) * dilation + 1
    how = rng.choice(("same", "valid", "explicit"))
    if how == "valid":
        padding = (0, 0, 0, 0)
    elif how == "same":
        total = max(0, (-(-extent // stride) - 1) * stride + reach - extent)
        padding = (total // 2, total // 2, total - total // 2, total - total // 2)
    else:
        top, left, bottom, right = (rng.randint(0, kernel // 2) for _ in range(4))
        padding = (top, left, bottom, right)
    return Window((kernel, kernel), (stride, stride), padding, dilation)


@dataclass
class Built:
    """A network read by rows, its kernels in C, and every feature by unsplit kernels."""

    rows: Any
    kernels: Any
    inputs: list[Any]
    arrays: dict[int, Any]
    outputs: list[Any]

    @property
    def height(self) -> int:
        return max(int(f.height) for f in self.kernels.network.features)


def build(module: Any, name: str = "net", *, tuned: bool = True) -> Built:

    from tvm_serenity.firmware.select.rows import row_kernels
    from tvm_serenity.firmware.validate.reference import made_by_tvm
    from tvm_serenity.relax.pipeline import Steps, prepared
    from tvm_serenity.relax.rows_read import read_rows
    from tvm_serenity.validation.network_inputs import random_inputs

    ready = prepared(module, Steps(layout="last"), "llvm")
    rows = read_rows(ready.plain, name)
    inputs = random_inputs(rows.lowered, 1)
    made, outputs = made_by_tvm(rows.library, rows.lowered, rows.region, inputs)
    arrays = {f: made[t] for f, t in enumerate(rows.tensor_of) if t in made}
    arrays |= dict(zip(rows.network.inputs, inputs, strict=True))
    return Built(rows, row_kernels(rows, tuned=tuned), inputs, arrays, outputs)


def program(built: Built, streaming: Streaming) -> Program:
    """The program of a split network, its calls replayed."""
    made = unchecked(built, streaming)
    check(made)
    return made


def unchecked(built: Built, streaming: Streaming) -> Program:
    from tvm_serenity.firmware.compile.banded_program import banded_program
    from tvm_serenity.firmware.place.bands import in_region

    lying = in_region(streaming, "sram")
    return banded_program(built.kernels, streaming, "net", lying)


def streaming(built: Built, heights: Any, *, streamed: bool = False) -> Streaming:
    found = stream(built.kernels.network, heights, streamed=streamed, limits=Limits(0.1))
    found.check()
    return found


def row_project(rows: Program, external: bool = False) -> Files:
    """The files of a project for ``BOARD``."""
    return project(rows, Layout(board(BOARD), external_arena=external))


class Host:
    """Row programs of one network on this machine: kernels are compiled once."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.objects: dict[bytes, Path] = {}

    def run(self, rows: Program, inputs: list[Any]) -> Execution:
        files = row_project(rows)
        for name, data in files.items():
            (self.directory / name).write_bytes(data)
        sources = ["net_model.c", "harness.c", "port_host.c"]
        objects = [self._object(name, files[name]) for name in ("net_kernels.c", "net_weights.c")]
        binary = self.directory / "host"
        command = ["cc", *FLAGS, *sources, *map(str, objects), "-lm", "-o", str(binary)]
        subprocess.run(command, cwd=self.directory, check=True, capture_output=True)
        given = [np.ascontiguousarray(a).tobytes() for a in inputs]
        return run_here(binary, given, len(rows.outputs))

    def _object(self, name: str, text: bytes) -> Path:
        if text not in self.objects:
            made = self.directory / f"{len(self.objects)}.o"
            command = [*compiler("cc"), *FLAGS, "-c", name, "-o", str(made)]
            subprocess.run(
                command, cwd=self.directory, check=True, capture_output=True, env=environment()
            )
            self.objects[text] = made
        return self.objects[text]
