"""Forms measured on this machine: which ones, in turns, and that they compute the same."""

import logging
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import sampled, some
from tests.kernels.convolutions import arguments_of, computed, convolution_of
from tests.kernels.test_packed import TARGETS, UNITS, WIDE, compiled, drawn, some_units
from tests.rows.nets import model
from tests.validation.test_compile import stores_changed
from tvm_serenity.errors import InputError, MissingPartError

tvm = pytest.importorskip("tvm")
import tvm_ffi  # noqa: E402
from tvm import tirx  # noqa: E402

from tvm_serenity.kernels import dot_tiles, packed  # noqa: E402
from tvm_serenity.kernels.dot_shapes import Tile  # noqa: E402
from tvm_serenity.kernels.lean import lean  # noqa: E402
from tvm_serenity.kernels.measured import (  # noqa: E402
    Form,
    Measured,
    class_of,
    in_tile,
    key_of,
    write,
)
from tvm_serenity.kernels.spec_read import spec_of  # noqa: E402
from tvm_serenity.kernels.tile import HOST, SCALAR, Tiling, tiling_for  # noqa: E402
from tvm_serenity.kernels.tile import WIDE as WIDE_TILES  # noqa: E402
from tvm_serenity.relax.pipeline import Steps, prepared  # noqa: E402
from tvm_serenity.tuning import search, tune  # noqa: E402
from tvm_serenity.tuning.alternation import FINALISTS, Turns, careful  # noqa: E402

LLVM = tvm.target.Target("llvm")
KWS = "mlperf_tiny/kws_dscnn_int8.tflite"


@pytest.fixture(scope="module")
def parts() -> None:
    """Skip by name where MetaSchedule cannot run."""
    pytest.importorskip("xgboost")
    try:
        search.check_parts()
    except MissingPartError as error:
        with pytest.raises(MissingPartError, match="apache-tvm-ffi below"):
            tune.tune(prepared(_network(), Steps(), LLVM), 2)
        pytest.skip(str(error))


def _network() -> Any:
    from tests.passes.nets import branches, module

    return module((1, 4, 8, 8), branches)


@some_units
@pytest.mark.parametrize("name", sampled(UNITS, 1))
def test_every_tile_of_a_packed_layer_computes_the_same_of_the_same_weights(name: str) -> None:
    unit, target = UNITS[name]
    spec = packed.packed_spec(WIDE, unit)
    inputs, weight, bias = drawn(WIDE, 0)
    constants = packed.packed_constants(spec, WIDE.requantise, weight, bias)
    tiles = dot_tiles.tiles_of(spec)
    assert len(set(tiles)) == len(tiles) > 5
    results = set()
    for tile in tiles:
        out = tvm.runtime.tensor(np.full(spec.output_shape, 77, spec.dtype))
        given = [tvm.runtime.tensor(array) for array in (*inputs, *constants)]
        compiled(in_tile(packed.packed(spec), tile), target)["main"](*given, out)
        results.add(out.numpy().tobytes())
    assert len(results) == 1


def test_tiles_are_searched(parts: None) -> None:
    logging.getLogger("tvm.s_tir.meta_schedule").addHandler(logging.NullHandler())
    kernel = convolution_of(layout="NCHW")
    found = search.searched(kernel, LLVM, 3)
    assert 1 <= len(found) <= 3
    assert list(found.values()) == sorted(found.values())
    given = arguments_of(kernel)
    wanted = computed(lean(kernel, SCALAR), given)
    for tile in some(found, 6):
        np.testing.assert_array_equal(computed(lean(kernel, tile), given), wanted)


@pytest.mark.skipif("cascadelake" not in TARGETS, reason="no such dot products here")
def test_a_quantised_network_is_tuned_in_packed_tiles(tmp_path: Path, parts: None) -> None:
    from tvm_serenity.frontends.relax import to_relax

    target = TARGETS["cascadelake"]
    made = prepared(to_relax(model(KWS)), Steps(measured="none"), target)
    cases = {case.kernel: case for case in tune.distinct(made)}
    name = next(name for name in cases if name.endswith("_packed"))
    usual, tried = dot_tiles.tiles_of(spec_of(cases[name].reference))[:2]
    measured = tune.raced(cases[name], [tried, Tile(1, 1)], target)
    assert 0 < measured.seconds < 1
    assert all(form.scratch_bytes == 0 for form in measured.forms)
    slow = Measured(1.0, (Form(tried, 0.1),))
    file = tmp_path / "kernels.json"
    write({key_of(cases[name].reference): slow}, class_of(target), file)
    found = prepared(to_relax(model(KWS)), Steps(measured=str(file)), target)
    assert [(one.kernel, one.form.tile, one.taken) for one in found.chosen] == [(name, tried, True)]
    kernel = next(f for v, f in found.kernels.functions.items() if v.name_hint == name)
    plain = next(f for v, f in found.plain.functions.items() if v.name_hint == name)
    assert tvm_ffi.structural_equal(kernel, in_tile(plain, tried))
    assert not tvm_ffi.structural_equal(kernel, in_tile(plain, usual))


def test_forms_that_compute_something_else_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    case = tune.distinct(prepared(_network(), Steps(measured="none"), LLVM))[0]
    monkeypatch.setattr(Turns, "seconds", lambda self: [1.0, *[0.1] * (len(self.kernels) - 1)])
    assert [form.tile for form in tune.raced(case, [None], LLVM).forms] == [None]

    def wrong(kernel: Any, _tile: Any) -> Any:
        return stores_changed(
            lean(kernel, SCALAR),
            lambda s: tirx.BufferStore(s.buffer, s.value + tirx.const(1, s.value.ty), s.indices),
        )

    monkeypatch.setattr("tvm_serenity.kernels.measured.in_tile", wrong)
    assert tune.raced(case, [SCALAR], LLVM).forms == ()


def test_forms_in_turns_are_measured_and_the_slow_ones_drop_out() -> None:
    case = tune.distinct(prepared(_network(), Steps(measured="none"), LLVM))[0]
    kernel = case.reference
    forms = [lean(kernel, tiling_for(LLVM)), *[lean(kernel, SCALAR)] * (FINALISTS + 1)]
    turns = Turns.of(case, forms, LLVM)
    usual, *scalar = turns.seconds(rounds=4)
    assert 0 < usual < min(scalar)
    assert sum(map(math.isinf, scalar)) == 1
    assert turns.same(1, 0)


def test_a_lucky_turn_is_no_win() -> None:
    assert careful([2.0, 2.0, 2.0], [1.0, 2.0, 2.2]) == 2.0
    assert careful([2.0, 4.0, 4.0], [1.0, 2.0, 2.0]) == 1.0
    assert careful([2.0, 4.0, 4.0], [1.9, 2.0, 2.0]) == 1.9
    assert careful([2.0, 1.0, 3.0], [2.0, 1.0, 3.0]) == 1.0


def test_faster_forms_are_kept_beside_those_of_less_scratch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = tune.distinct(prepared(_network(), Steps(measured="none"), LLVM))[0]
    monkeypatch.setattr(Turns, "seconds", lambda _self: [1.0, 0.5, 0.2, 0.96])
    monkeypatch.setattr(Turns, "same", lambda *_given: True)
    kept = tune.raced(case, [SCALAR, None, Tiling(2, 1, vector=False)], LLVM).forms
    assert [(form.tile, form.seconds) for form in kept] == [(None, 0.2), (SCALAR, 0.5)]
    assert kept[0].scratch_bytes > kept[1].scratch_bytes == 0
    monkeypatch.setattr(Turns, "seconds", lambda _self: [1.0, 0.2, 0.5, 0.96])
    (only,) = tune.raced(case, [SCALAR, None, Tiling(2, 1, vector=False)], LLVM).forms
    assert only.tile == SCALAR


def test_shapes_fit_into_the_registers_and_compute_the_same() -> None:
    for tiling, registers in ((HOST, 16), (WIDE_TILES, 32)):
        found = tune.shapes(tiling)
        assert len(set(found)) == len(found) > 7
        for tile in found:
            vectors = tile.channels // tile.lanes
            assert tile.columns * vectors + vectors + 1 <= registers
    kernel = convolution_of(layout="NCHW")
    given = arguments_of(kernel)
    wanted = computed(lean(kernel, SCALAR), given)
    for tile in found:
        np.testing.assert_array_equal(computed(lean(kernel, tile), given), wanted)


def test_no_trials_are_refused(parts: None) -> None:
    with pytest.raises(InputError, match="--trials 0: the number must be 1 or more"):
        tune.tune(prepared(_network(), Steps(measured="none"), LLVM), 0)
