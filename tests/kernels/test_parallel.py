"""Parallel loops of kernels: only where no step touches what another one writes."""

import itertools
from typing import Any

import numpy as np
import pytest

from tests.cli.run import serenity
from tests.kernels.test_packed import WIDE, compiled
from tests.kernels.test_tiles import kernel_of
from tests.rows.nets import model

tvm = pytest.importorskip("tvm")

from tvm import tirx  # noqa: E402
from tvm.script.ir_builder import tirx as T  # noqa: E402, N812

from tvm_serenity import compat  # noqa: E402
from tvm_serenity.errors import InputError  # noqa: E402
from tvm_serenity.kernels import dot_tiles, packed, tile  # noqa: E402
from tvm_serenity.kernels.build import written  # noqa: E402
from tvm_serenity.kernels.dot_units import BY_NAME, UNITS  # noqa: E402
from tvm_serenity.kernels.lean import lean  # noqa: E402
from tvm_serenity.kernels.nodes import parts  # noqa: E402
from tvm_serenity.kernels.parallel import in_parallel, work  # noqa: E402
from tvm_serenity.relax.pipeline import Steps  # noqa: E402

ROWS, COLUMNS = 5, 4


def parallel_loops(kernel: Any) -> list[Any]:
    return [f for f in parts(kernel.body, tirx.For) if f.kind == tirx.ForKind.PARALLEL]


def storing(place: Any, read: Any) -> Any:
    """A kernel: ``y[place(i, j)] = x[i * COLUMNS + j] + y[read(i, j)]`` (None: 0)."""

    def body(x: Any, y: Any) -> None:
        with T.serial(ROWS) as i, T.serial(COLUMNS) as j:
            before = tirx.const(0, "int32") if read is None else y[read(i, j)]
            T.buffer_store(y, x[i * COLUMNS + j] + before, [place(i, j)])

    shape = ((4 * ROWS * COLUMNS,), "int32")
    return written({"x": shape, "y": shape}, body)


def races(place: Any, read: Any) -> bool:
    """By definition: whether two rows touch an element that one of them writes."""
    rows = [
        (
            {place(i, j) for j in range(COLUMNS)},
            set() if read is None else {read(i, j) for j in range(COLUMNS)},
        )
        for i in range(ROWS)
    ]
    return any(a[0] & (b[0] | b[1]) for a, b in itertools.permutations(rows, 2))


def column_races(place: Any, read: Any, i: int) -> bool:
    """By definition: whether two columns of a row touch an element that one of them writes."""
    pairs = itertools.permutations(range(COLUMNS), 2)
    return any(place(i, a) in {place(i, b), read and read(i, b)} for a, b in pairs)


PLACES = {
    "rows": lambda i, j: i * COLUMNS + j,
    "apart": lambda i, j: i * (COLUMNS + 3) + j * 2,
    "shared": lambda i, j: i * (COLUMNS - 1) + j,
    "one": lambda i, j: j,
    "shifted": lambda i, j: i * COLUMNS + j + 1,
    "next": lambda i, j: i * COLUMNS + j + COLUMNS,
    "columns": lambda i, j: j * ROWS + i,
}


@pytest.mark.parametrize("read", [None, *PLACES])
@pytest.mark.parametrize("place", PLACES)
def test_no_loop_that_races_is_parallel(place: str, read: str | None) -> None:
    both = PLACES[place], None if read is None else PLACES[read]
    made = in_parallel(storing(*both), 1)
    found = parallel_loops(made)
    if found and int(found[0].extent) == ROWS:
        assert not races(*both)
    if found and int(found[0].extent) == COLUMNS:
        assert not any(column_races(*both, i) for i in range(ROWS))
    if place == "rows" and read in (None, "rows"):
        assert int(found[0].extent) == ROWS
    if place == "shared":
        assert not any(int(f.extent) == ROWS for f in found)


def test_small_loops_and_kernels_with_scratch_stay() -> None:
    kernel = storing(PLACES["rows"], None)
    assert work(kernel.body.block.body) == ROWS * COLUMNS
    assert in_parallel(kernel, ROWS * COLUMNS + 1) is kernel
    plain = kernel_of(14, 32)  # as TVM made it: its padding and its sums lie in memory
    assert in_parallel(plain, 1) is plain


def test_views_of_one_tensor_are_one() -> None:
    def body(x: Any, y: Any) -> None:
        rows = T.decl_buffer((ROWS, COLUMNS), "int32", data=y.data)
        with T.serial(ROWS) as i:
            T.buffer_store(rows, x[i] + y[tirx.const(0, "int32")], [i, 0])

    kernel = written({"x": ((ROWS,), "int32"), "y": ((ROWS * COLUMNS,), "int32")}, body)
    assert in_parallel(kernel, 1) is kernel


@pytest.mark.parametrize("unit", [unit.name for unit in UNITS])
def test_packed_layers_are_shared_out_by_rows(unit: str) -> None:
    made = packed.packed_spec(WIDE, BY_NAME[unit])
    (loop,) = parallel_loops(in_parallel(dot_tiles.dot_tiles(made), 1))
    assert int(loop.extent) == WIDE.output_shape[1]


def test_threads_compute_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TVM_NUM_THREADS", "2")
    rng = np.random.default_rng(0)
    for tiling in (tile.WIDE, tile.MCU):
        kernel = lean(kernel_of(13, 24, 2, prelu=True), tiling)
        shared = in_parallel(kernel, 1)
        assert len(parallel_loops(shared)) == (4 if tiling == tile.WIDE else 1)  # its parts
        shapes = [tuple(compat.buffer_shape(p)) for p in kernel.params]
        arguments = [rng.standard_normal(s).astype(np.float32) for s in shapes[:-1]]
        found = []
        for form in (kernel, shared):
            out = tvm.runtime.tensor(np.full(shapes[-1], np.nan, np.float32))
            compiled(form, "llvm")["main"](*map(tvm.runtime.tensor, arguments), out)
            found.append(out.numpy().tobytes())
        assert found[0] == found[1]


def test_a_network_is_compiled_and_checked_with_threads() -> None:
    network = str(model("mlperf_tiny/kws_dscnn_int8.tflite"))
    found = serenity("compile", network, "--threads", "2", "--json")
    assert found.returncode == 0, found.stderr
    assert '"threads": 2' in found.stdout
    assert serenity("compile", network, "--threads", "0").returncode == 2
    with pytest.raises(InputError, match="threads=2: only lean"):
        Steps(threads=2, lean=False)
