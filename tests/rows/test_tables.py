"""The tables of row programs: types as wide as what they hold, rows that are not aligned."""

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.rows.nets import Host, build, needs_host, program, row_project, streaming
from tests.rows.test_property import differing
from tvm_serenity.firmware.board.toolchain import have
from tvm_serenity.firmware.check.calls import check
from tvm_serenity.firmware.emit.table import tables
from tvm_serenity.firmware.program import (
    Bands,
    Kernel,
    Param,
    Place,
    Program,
    Row,
    Step,
    Tensor,
)
from tvm_serenity.kernels.rows import MOST_VARIANTS
from tvm_serenity.rows import heights_of

FLAGS = ("-std=gnu11", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")


def positions(height: int) -> Any:
    """A network that adds an array of ``height`` rows that differ to its input.

    The row that is added depends on the row that is made: every row is another.
    """
    from tvm import relax

    added = np.random.default_rng(0).standard_normal((1, height, 1, 2)).astype(np.float32)
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, height, 1, 2), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            out = builder.emit_output(relax.op.add(x, relax.const(added)))
        builder.emit_func_output(out)
    return builder.get()


@needs_host
@pytest.mark.parametrize("height", [MOST_VARIANTS, MOST_VARIANTS + 1, 300])
def test_one_kernel_makes_many_rows_that_differ(height: int, tmp_path: Path) -> None:
    built = build(positions(height))
    rows = program(built, streaming(built, heights_of(built.kernels.network, 50)))
    kernels = max(len(step.kernels) for step in rows.steps)
    assert kernels == (height if height <= MOST_VARIANTS else 1)
    found = Host(tmp_path).run(rows, built.inputs)
    assert not differing(built, rows, found)
    files = row_project(rows)
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    subprocess.run(["cc", *FLAGS, "-c", "net_model.c", "-o", "m.o"], cwd=tmp_path, check=True)


def chain(length: int) -> Program:
    """``length`` steps on two rows of 3 bytes, each adds 1 to its row by one kernel.

    Tensors lie in turn in one of two places, row by row.
    """
    kernel = Kernel(
        "add",
        (Param("x", "uint8", True), Param("out", "uint8", False)),
        "    for (int32_t i = 0; i < 3; ++i) {\n        out[i] = (uint8_t)(x[i] + 1);\n    }\n",
    )
    tensors = tuple(Tensor(f"t{i}", (1, 2, 1, 3), "uint8") for i in range(length + 1))
    bands = tuple(
        Bands((Place("sram", 6 * (i % 2)), Place("sram", 6 * (i % 2) + 3)), 2, 1)
        for i in range(length + 1)
    )
    steps = tuple(Step(("add",), (Row(i), Row(i + 1)), (i + 1,), (0, 0)) for i in range(length))
    sequence = tuple((i, y) for i in range(length) for y in (0, 1))
    made = Program(
        "net", (kernel,), (), tensors, bands, steps, (0,), (length,), {"sram": 12}, 1,
        sequence=sequence,
    )  # fmt: skip
    check(made)
    return made


@needs_host
def test_more_features_than_a_byte_counts(tmp_path: Path) -> None:
    rows = chain(300)
    assert "uint16_t row_index" in tables(rows).types
    found = Host(tmp_path).run(rows, [np.arange(6, dtype=np.uint8)])
    last = [data for feature, data in found.trace if feature == 300]
    assert [list(row) for row in last] == [[44, 45, 46], [47, 48, 49]]


CALLER = """
#include "net_model.h"
#include <stdio.h>
int main(void)
{
    _Alignas(float) unsigned char bytes[64] = {0};
    printf("%d ", (int)net_feed_row((const float *)(const void *)(bytes + 1)));
    printf("%d ", (int)net_feed_row(0));
    printf("%d ", (int)net_feed_row((const float *)(const void *)bytes));
    printf("%d\\n", (int)net_feed_row((const float *)(const void *)(bytes + 8)));
    return 0;
}
"""


@needs_host
@pytest.mark.parametrize(
    ("compiler", "trap"),
    [("gcc", "-fsanitize-undefined-trap-on-error"), ("clang", "-fsanitize-trap=all")],
)
def test_a_row_that_is_not_aligned_is_refused(compiler: str, trap: str, tmp_path: Path) -> None:
    built = build(positions(5))
    heights = heights_of(built.kernels.network, 1)
    rows = program(built, streaming(built, heights, streamed=True))
    for name, data in row_project(rows).items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "caller.c").write_text(CALLER)
    sources = ("caller.c", "net_model.c", "net_kernels.c", "net_weights.c")
    if not have(compiler):
        pytest.skip(f"needs {compiler}")
    flags = ("-std=gnu11", "-O1", "-fsanitize=undefined", trap)
    subprocess.run([compiler, *flags, *sources, "-lm", "-o", "caller"], cwd=tmp_path, check=True)
    done = subprocess.run(["./caller"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["-1", "-1", "4", "3"]
    assert "aligned as float" in (tmp_path / "net_model.h").read_text()
