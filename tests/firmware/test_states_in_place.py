"""Networks that write a row of a state: nothing is copied, and nothing else lies in its memory."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tvm.script.ir_builder import tirx

from tests.cases import sampled
from tests.conformance.operators.variables import Parts
from tests.conformance.writer import Subgraph, T, tflite
from tests.firmware.projects import needs_board, needs_host
from tvm_serenity import firmware
from tvm_serenity.boards import board
from tvm_serenity.errors import CheckError, InputError, WrongResultError
from tvm_serenity.firmware.check.calls import check
from tvm_serenity.firmware.check.verify_report import report
from tvm_serenity.firmware.compile import sliding
from tvm_serenity.firmware.compile.driver import NetworkCompiler
from tvm_serenity.firmware.program import Bands
from tvm_serenity.frontends.relax import to_relax

BOARD = "mps2-an500"
ROWS, WIDTH = 64, 24
CACHE = ROWS * WIDTH


def cached(path: Path, use: str = "", dtype: str = "float32") -> Path:
    """Write a network that keeps each input as a row of a cache, and answers with column maxima.

    ``use``: what it also does with the cache: "before" reads what was there before the row is
    written, "after" reads that once the row is written, "two" writes two rows, "inputs" has an
    input that is not kept.
    """
    net = Parts()
    cache, one = T((ROWS, WIDTH), dtype, 0.1, 3), T((1,), "int32")
    if dtype == "float32":
        cache = T((ROWS, WIDTH), dtype)
    row, column = (T(shape, dtype, cache.scale, cache.zero) for shape in ((1, WIDTH), (WIDTH,)))
    x = net.tensor(row)
    net.node("CALL_ONCE", [], initSubgraphIndex=1)
    kept, position = net.handle("cache"), net.handle("position")
    (old,) = net.node("READ_VARIABLE", [kept], cache)
    (at,) = net.node("READ_VARIABLE", [position], one)
    zero = net.tensor(T((1,), "int32", data=np.zeros(1, np.int32)))
    step = net.tensor(T((1,), "int32", data=np.ones(1, np.int32)))
    first = net.tensor(T((1,), "int32", data=np.zeros(1, np.int32)))
    inputs, outputs = [x], []

    def largest(value: int) -> None:
        outputs.extend(net.node("REDUCE_MAX", [value, first], column, keepDims=False))

    if use == "before":
        largest(old)
    (begin,) = net.node("CONCATENATION", [at, zero], T((2,), "int32"), axis=0)
    (new,) = net.node("DYNAMIC_UPDATE_SLICE", [old, x, begin], cache)
    if use == "two":
        (next_row,) = net.node("ADD", [at, step], one)
        (begin,) = net.node("CONCATENATION", [next_row, zero], T((2,), "int32"), axis=0)
        (new,) = net.node("DYNAMIC_UPDATE_SLICE", [new, x, begin], cache)
    if use == "after":
        largest(old)
    if use == "inputs":
        inputs.append(net.tensor(row))
        outputs.append(inputs[-1])
    net.node("ASSIGN_VARIABLE", [kept, new])
    (further,) = net.node("ADD", [at, step], one)
    net.node("ASSIGN_VARIABLE", [position, further])
    largest(new)
    begins = Parts()
    for name, of in (("cache", cache), ("position", one)):
        held = np.full(of.shape, of.zero, of.dtype)
        value = begins.tensor(T(of.shape, of.dtype, of.scale, of.zero, held))
        begins.node("ASSIGN_VARIABLE", [begins.handle(name), value])
    further_graphs = [Subgraph(begins.tensors, begins.nodes)]
    path.write_bytes(tflite(net.tensors, net.nodes, inputs, outputs, further_graphs))
    return path


def compiled(path: Path, step: int = 1) -> Any:
    settings = firmware.Settings(sliding=step, check=False)
    return sliding.in_steps(NetworkCompiler(to_relax(path), "net", board(BOARD), settings))


@needs_board
@pytest.mark.parametrize("dtype", sampled(["int8", "float32"], 1))
def test_a_row_is_written_and_nothing_is_copied(dtype: str, tmp_path: Path) -> None:
    path = cached(tmp_path / "net.tflite", dtype=dtype)
    settings = firmware.Settings(name="net", sliding=1, output=tmp_path / "net")
    project = firmware.build(str(path), BOARD, settings)
    found = report(project)
    assert found["host"]["accepted"]
    assert found["qemu"]["accepted"]
    assert found["qemu"]["litert_max_abs_error"] == 0
    size = CACHE * np.dtype(dtype).itemsize
    assert project.facts["sliding"]["kept_bytes"] == size + 4
    arena = sum(project.facts["arena_bytes"].values())
    assert size < arena < size + 5 * WIDTH * np.dtype(dtype).itemsize
    model = (tmp_path / "net" / "net_model.c").read_text()
    assert f"{size}u)" not in model  # no copy of the cache
    assert project.facts["lower_bound_bytes"] <= arena


@pytest.mark.parametrize(
    ("use", "in_place"),
    [("", True), ("before", True), ("two", True), ("after", False)],
)
def test_a_state_that_is_read_late_is_copied(use: str, in_place: bool, tmp_path: Path) -> None:
    program = compiled(cached(tmp_path / "net.tflite", use)).program
    check(program)
    states = [s for s in program.moving.states if program.tensors[s.tensor].shape[0] == ROWS]
    (cache,) = states
    assert (program.place(cache.tensor) == program.place(cache.made)) == in_place


@needs_host
@pytest.mark.parametrize("use", sampled(["before", "two", "after"], 1))
def test_old_rows_are_those_of_the_model(use: str, tmp_path: Path) -> None:
    path = cached(tmp_path / "net.tflite", use)
    made = firmware.build(str(path), BOARD, firmware.Settings(sliding=1))
    assert made.facts["check"]["reference_runtime"]


def test_what_does_not_fit_a_step_is_refused(tmp_path: Path) -> None:
    path = cached(tmp_path / "net.tflite")
    with pytest.raises(InputError, match=r"keeps 2 states itself, .* use --sliding 1"):
        compiled(path, step=2)
    with pytest.raises(InputError, match=r"it has 2 inputs .* needs a network with one input"):
        compiled(cached(tmp_path / "more.tflite", "inputs"))


def test_a_plan_over_the_cache_is_found(tmp_path: Path) -> None:
    """Seeded faults in a program: another tensor over the cache, in a step and between two."""
    program = compiled(cached(tmp_path / "net.tflite", "before")).program
    (cache,) = (s for s in program.moving.states if program.tensors[s.tensor].shape[0] == ROWS)
    at = program.bands[cache.tensor]
    for tensor in (program.fed.tensor, program.outputs[0]):
        bands = list(program.bands)
        bands[tensor] = Bands(at.places)
        with pytest.raises(CheckError, match="is overwritten by"):
            check(replace(program, bands=tuple(bands)))


FAULTS = ["a stale row", "a wrong position", "a state not reset"]


@needs_host
@pytest.mark.parametrize("fault", sampled(FAULTS, 2))
def test_wrong_caches_are_found(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seeded faults: the row is not written, is written elsewhere, or the first step finds rows."""
    from tvm_serenity.firmware.emit import table, walker
    from tvm_serenity.kernels import update_slice
    from tvm_serenity.relax import states_in_place

    states, written, first = table.states, update_slice.part_written, update_slice._first
    store = tirx.buffer_store

    def broken(spec: Any) -> Any:
        with monkeypatch.context() as patch:
            if fault == "a stale row":
                patch.setattr(tirx, "buffer_store", lambda x, _, at: store(x, x[tuple(at)], at))
            else:
                patch.setattr(
                    update_slice, "_first", lambda s, b, axis: first(s, b + (axis == 0), axis)
                )
            return written(spec)

    if fault == "a state not reset":
        monkeypatch.setattr(walker, "states", lambda program: ("", states(program)[1]))
    else:
        monkeypatch.setattr(states_in_place, "part_written", broken)
    with pytest.raises(WrongResultError):
        firmware.build(
            str(cached(tmp_path / "net.tflite")), BOARD, firmware.Settings(name="net", sliding=1)
        )
