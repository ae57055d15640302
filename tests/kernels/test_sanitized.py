"""Parallel loops under ThreadSanitizer: no race is found, and one that is put in is."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conformance.relax_forms import evaluated
from tests.kernels.test_packed import compiled
from tests.kernels.test_parallel import COLUMNS, PLACES, ROWS, parallel_loops, storing
from tests.kernels.test_tiles import kernel_of
from tests.quantize.running import integer_module, reference_of
from tests.rows.nets import model

tvm = pytest.importorskip("tvm")

from tvm import tirx  # noqa: E402

from tests.kernels.programs import Sanitized, sanitizer_missing  # noqa: E402
from tvm_serenity import compat  # noqa: E402
from tvm_serenity.kernels import tile  # noqa: E402
from tvm_serenity.kernels.lean import lean  # noqa: E402
from tvm_serenity.kernels.nodes import mapped, parts  # noqa: E402
from tvm_serenity.kernels.parallel import in_parallel  # noqa: E402
from tvm_serenity.relax.pipeline import Steps, prepared  # noqa: E402

pytestmark = pytest.mark.skipif(bool(sanitizer_missing()), reason=sanitizer_missing())


def all_parallel(kernel: Any) -> Any:
    """A kernel whose outermost loops are parallel, whether they race or not."""
    extents = [int(f.extent) for f in parts(kernel.body, tirx.For)]

    def change(loop: Any) -> Any:
        if int(loop.extent) != max(extents):
            return loop
        return tirx.For(loop.loop_var, loop.min, loop.extent, tirx.ForKind.PARALLEL, loop.body)

    return kernel.with_body(mapped(kernel.body, tirx.For, change))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("read", [None, "next"])
def test_a_race_is_found(place: str, read: str | None, tmp_path: Path) -> None:
    """Of rows that are halved: the last of one half meets the first of the other."""
    put: Any = PLACES[place]
    got: Any = None if read is None else PLACES[read]
    kernel = all_parallel(storing(put, got))
    program = Sanitized({"racing": kernel}, "c", tmp_path)
    assert program.loops == 1
    touched = [
        ({put(i, j)}, set() if got is None else {got(i, j)})
        for i in range(ROWS)
        for j in range(COLUMNS)
    ]
    middle = (ROWS + 1) // 2 * COLUMNS
    halves = touched[:middle], touched[middle:]
    writes = [set().union(*(w for w, _ in half)) for half in halves]
    reads = [set().union(*(r for _, r in half)) for half in halves]
    races = any(writes[a] & (writes[1 - a] | reads[1 - a]) for a in (0, 1))
    x = np.zeros(4 * ROWS * COLUMNS, np.int32)
    if races:
        with pytest.raises(AssertionError, match="data race"):
            program.run("racing", [x], [(x.shape, "int32")])
    else:
        program.run("racing", [x], [(x.shape, "int32")])


@pytest.mark.parametrize("tiling", [tile.WIDE, tile.MCU], ids=["wide", "small"])
def test_a_convolution_does_not_race(tiling: Any, tmp_path: Path) -> None:
    kernel = in_parallel(lean(kernel_of(13, 24, 2, prelu=True), tiling), 1)
    program = Sanitized({"convolution": kernel}, "c", tmp_path)
    assert program.loops == (4 if tiling == tile.WIDE else 1)
    rng = np.random.default_rng(0)
    shapes = [tuple(compat.buffer_shape(p)) for p in kernel.params]
    arguments = [rng.standard_normal(s).astype(np.float32) for s in shapes[:-1]]
    program.run("convolution", arguments, [(shapes[-1], "float32")])


def test_a_network_does_not_race(tmp_path: Path) -> None:
    data = model("mlperf_tiny/ic_resnet8_int8.tflite").read_bytes()
    steps = Steps(threads=2, tiling=tile.WIDE)
    made = prepared(integer_module(data, tmp_path), steps, "c").kernels
    kernels = {g.name_hint: f for g, f in made.functions.items() if compat.is_prim_func(f)}
    shared = {name: f for name, f in kernels.items() if parallel_loops(f)}
    program = Sanitized(shared, "c", tmp_path)
    assert len(shared) >= 6
    assert program.loops == sum(len(parallel_loops(f)) for f in shared.values())
    reference = reference_of(data)
    inputs = reference.inputs(0)

    def run(kernel: Any, _given: Any, arguments: Sequence[Any], types: Any) -> Any:
        name = kernel.name_hint
        if name in shared:
            return program.run(name, arguments, types)
        made = [tvm.runtime.tensor(np.zeros(shape, dtype)) for shape, dtype in types]
        compiled(kernels[name], "llvm")["main"](*map(tvm.runtime.tensor, arguments), *made)
        return [one.numpy() for one in made]

    found = evaluated(made, inputs, run)
    for mine, theirs in zip(found, reference.run(inputs).outputs, strict=True):
        np.testing.assert_array_equal(mine, theirs)
