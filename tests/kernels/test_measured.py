"""Tiles change no result; what was measured is kept by kernel and class of target, and used."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.kernels.convolutions import arguments_of, computed, convolution_of
from tvm_serenity.errors import InputError

tvm = pytest.importorskip("tvm")

from tvm_serenity.kernels import measured  # noqa: E402
from tvm_serenity.kernels.dot_shapes import Tile  # noqa: E402
from tvm_serenity.kernels.lean import lean  # noqa: E402
from tvm_serenity.kernels.measured import Form, KnownForms, Measured, class_of, key_of  # noqa: E402
from tvm_serenity.kernels.tile import HOST, MCU, SCALAR, Tiling, tiling_for  # noqa: E402
from tvm_serenity.kernels.workspace import workspace_of  # noqa: E402

LLVM = tvm.target.Target("llvm")
KERNELS = {
    "pieces": convolution_of(pieces=(8, 4)),
    "NCHW": convolution_of(layout="NCHW"),
    "depthwise": convolution_of(depthwise=True),
}
TWO = Tiling(2, 1, vector=False)


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


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ({"kind": "llvm"}, "plain"),
        ({"kind": "llvm", "mcpu": "znver4"}, "avx512vnni"),
        ({"kind": "llvm", "mcpu": "skylake-avx512"}, "avx512f"),
        ({"kind": "llvm", "mcpu": "alderlake"}, "avxvnni"),
        ({"kind": "llvm", "mcpu": "haswell"}, "avx2"),
        ({"kind": "llvm", "mcpu": "x86-64"}, "plain"),
        ({"kind": "llvm", "mtriple": "thumbv7em-none-eabi", "mcpu": "cortex-m7"}, "plain"),
    ],
)
def test_targets_are_of_the_class_of_their_instructions(target: Any, name: str) -> None:
    assert class_of(tvm.target.Target(target)) == name


def test_a_file_gives_back_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "kernels.json"
    tiles = (Form(TWO, 1e-6), Form(Tile(5, 3), 2e-6), Form(None, 3e-6, 64))
    found = {"a": Measured(4e-6, tiles), "b": Measured(1e-6)}
    measured.write(found, "avx2", path)
    measured.write({"b": Measured(5e-6)}, "avx2", path)
    measured.write({"b": Measured(7e-6)}, "neon", path)
    assert measured.read(path) == {
        "avx2": {"a": found["a"], "b": Measured(5e-6)},
        "neon": {"b": Measured(7e-6)},
    }
    haswell = tvm.target.Target({"kind": "llvm", "mcpu": "haswell"})
    known = measured.known_for(path, haswell)
    assert known.kernels["b"].seconds == 5e-6
    assert not measured.known_for(path, LLVM).kernels
    assert not measured.known_for("none", haswell).kernels
    tiles_only = known.in_tiles().kernels["a"].forms
    assert tiles_only == tiles[:2]


def test_only_clearly_faster_forms_are_used() -> None:
    kernel = KERNELS["NCHW"]
    for seconds, wanted in ((0.94, TWO), (0.96, HOST)):
        known = KnownForms("test", "plain", {key_of(kernel): Measured(1.0, (Form(TWO, seconds),))})
        assert _same(known.leanest(HOST)(kernel), lean(kernel, wanted))
        other = KERNELS["depthwise"]
        assert _same(known.leanest(HOST)(other), lean(other, HOST))


def test_forms_of_scratch_are_left_to_who_knows_the_arena() -> None:
    kernel = KERNELS["NCHW"]
    assert workspace_of(kernel) > 0
    known = KnownForms("test", "plain", {key_of(kernel): Measured(1.0, (Form(None, 0.1, 9),))})
    assert _same(known.leanest(HOST)(kernel), lean(kernel, HOST))


@pytest.mark.parametrize("text", ["", "[]", '{"avx2": []}', '{"avx2": {"k": {"seconds": 1}}}'])
def test_a_file_that_holds_no_measured_kernels_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kernels.json"
    with pytest.raises(InputError, match="not a file of measured kernels"):
        measured.known_for(path, LLVM)
    path.write_text(text)
    with pytest.raises(InputError, match="not a file of measured kernels"):
        measured.known_for(path, LLVM)


def test_the_shipped_file_holds_clear_winners_alone() -> None:
    text = Path(measured.__file__).with_name(measured.TABLE).read_text(encoding="utf-8")
    assert len(text) < 64 * 1024
    assert set(json.loads(text)) <= set(measured.CLASSES)
    for kernels in measured._shipped().values():
        for one in kernels.values():
            assert one.forms
            assert one.better() == tuple(sorted(one.forms, key=lambda f: f.seconds))


def _same(one: Any, other: Any) -> bool:
    import tvm_ffi

    return bool(tvm_ffi.structural_equal(one, other))
