"""Tiles: results stay bit for bit, whatever the tile; measured ones are found and used."""

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.kernels.convolutions import arguments_of, computed, convolution_of
from tvm_serenity.errors import InputError, MissingPartError

tvm = pytest.importorskip("tvm")

from tvm_serenity.kernels import tune  # noqa: E402
from tvm_serenity.kernels.lean import lean  # noqa: E402
from tvm_serenity.kernels.tile import HOST, MCU, SCALAR, Tiling, tiling_for  # noqa: E402
from tvm_serenity.kernels.workspace import workspace_of  # noqa: E402

LLVM = tvm.target.Target("llvm")
KERNELS = {
    "pieces": convolution_of(pieces=(8, 4)),
    "NCHW": convolution_of(layout="NCHW"),
    "depthwise": convolution_of(depthwise=True),
}


@pytest.mark.parametrize("name", KERNELS)
def test_a_tile_changes_no_result(name: str) -> None:
    kernel = KERNELS[name]
    given = arguments_of(kernel)
    wanted = computed(lean(kernel, SCALAR), given)
    assert len(np.unique(wanted)) > 20
    for tiling in (HOST, MCU, Tiling(3, 2, vector=False), Tiling(32, 8, vector=True)):
        made = lean(kernel, tiling)
        assert workspace_of(made) == 0
        np.testing.assert_array_equal(computed(made, given), wanted)


def test_a_microcontroller_gets_no_vectors() -> None:
    thumb = {"kind": "llvm", "mtriple": "thumbv7em-unknown-none-eabihf"}
    assert tiling_for(tvm.target.Target(thumb)) == MCU
    assert tiling_for(tvm.target.Target("c")) == MCU
    assert tiling_for(LLVM) == HOST


def test_measured_tiles_are_used(tmp_path: Path) -> None:
    kernel, path = KERNELS["NCHW"], tmp_path / "tiles.json"
    found = tune.Measured("conv", tune._key(kernel), Tiling(2, 1, vector=False), 1e-5, 3)
    tune.write([found], path)
    tune.write([], path)
    assert json.loads(path.read_text())[found.key]["channels"] == 2
    best = tune.tuned(path, LLVM)
    assert _same(best(kernel), lean(kernel, found.tiling))
    other = KERNELS["depthwise"]
    assert _same(best(other), lean(other, HOST))


def test_a_file_that_holds_no_tiles_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tiles.json"
    with pytest.raises(InputError, match="holds no tiles"):
        tune.tuned(path, LLVM)
    path.write_text("[]")
    with pytest.raises(InputError, match="holds no tiles"):
        tune.tuned(path, LLVM)


def test_tiles_are_measured(tmp_path: Path) -> None:
    pytest.importorskip("xgboost")
    try:
        tune.check_serialisation()
    except MissingPartError as error:
        with pytest.raises(MissingPartError, match="apache-tvm-ffi below"):
            tune.tune(KERNELS, LLVM, 2)
        pytest.skip(str(error))
    logging.getLogger("tvm.s_tir.meta_schedule").addHandler(logging.NullHandler())
    (found,) = tune.tune({"conv": KERNELS["NCHW"]}, LLVM, 2)
    assert found.trials == 2
    assert found.seconds > 0
    tune.write([found], tmp_path / "tiles.json")
    made = tune.tuned(tmp_path / "tiles.json", LLVM)(KERNELS["NCHW"])
    given = arguments_of(made)
    wanted = computed(lean(KERNELS["NCHW"], SCALAR), given)
    np.testing.assert_array_equal(computed(made, given), wanted)


def _same(one: Any, other: Any) -> bool:
    import tvm_ffi

    return bool(tvm_ffi.structural_equal(one, other))
