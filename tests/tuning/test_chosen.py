"""Faster forms with scratch: taken where no arena grows by a byte, and computing the same."""

from pathlib import Path
from typing import Any

import pytest

tvm = pytest.importorskip("tvm")
from tvm.relax import op  # noqa: E402

from tests.passes.nets import conv, module  # noqa: E402
from tvm_serenity.errors import InputError  # noqa: E402
from tvm_serenity.kernels.measured import Form, Measured, class_of, key_of, write  # noqa: E402
from tvm_serenity.kernels.tile import SCALAR  # noqa: E402
from tvm_serenity.kernels.workspace import workspace_of  # noqa: E402
from tvm_serenity.relax import chosen_kernels  # noqa: E402
from tvm_serenity.relax.pipeline import Planning, Prepared, Steps, planned, prepared  # noqa: E402
from tvm_serenity.relax.schedule import ARENA  # noqa: E402
from tvm_serenity.runtime.build import compile_and_compare  # noqa: E402

LLVM = tvm.target.Target("llvm")
WIDE, NARROW = 48, 4
"""Channels of the layer that makes the peak, and of one after it."""


def network() -> Any:
    """Two wide convolutions, which make the peak, and two narrow ones with room beside them."""

    def body(builder: Any, x: Any) -> Any:
        y = conv(builder, conv(builder, x, WIDE, 3), WIDE, 3, seed=2)
        y = builder.emit(op.nn.max_pool2d(conv(builder, y, NARROW, 1, seed=4), (2, 2), (2, 2)))
        return conv(builder, conv(builder, y, NARROW, 3, seed=6), NARROW, 1, seed=8)

    return module((1, 4, 16, 16), body)


def seeded(made: Prepared, file: Path) -> dict[str, int]:
    """Write that TVM's own schedule is ten times as fast; return the scratch of each kernel."""
    kernels = {
        v.name_hint: f
        for v, f in made.plain.functions.items()
        if isinstance(f, tvm.tirx.PrimFunc) and workspace_of(f)
    }
    found = {
        key_of(f): Measured(1.0, (Form(None, 0.1, workspace_of(f)),)) for f in kernels.values()
    }
    write(found, class_of(made.target), file)
    return {name: workspace_of(f) for name, f in kernels.items()}


def arenas(made: Any) -> list[int]:
    methods = (None, "given")
    return [int(planned(made, Planning(method=m), LLVM)["main"].attrs[ARENA]) for m in methods]


def test_scratch_is_taken_where_there_is_room_and_nowhere_else(tmp_path: Path) -> None:
    file = tmp_path / "kernels.json"
    usual = prepared(network(), Steps(measured="none"), LLVM)
    scratch = seeded(usual, file)
    found = prepared(network(), Steps(measured=str(file)), LLVM)
    taken = {one.kernel for one in found.chosen if one.taken}
    left = {one.kernel for one in found.chosen if not one.taken}
    assert taken
    assert left
    assert taken | left == set(scratch)
    assert arenas(found.kernels) == arenas(usual.kernels)
    needs = {v.name_hint: workspace_of(f) for v, f in _kernels(found.kernels)}
    assert {name for name, size in needs.items() if size} == taken
    assert {needs[name] for name in taken} == {scratch[name] for name in taken}
    report = compile_and_compare(network(), found)
    assert report.ours.storage_bytes == arenas(usual.kernels)[0]
    assert report.validated is not None


def test_with_no_bound_the_arena_would_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = prepared(network(), Steps(measured="none"), LLVM)
    scratch = seeded(usual, tmp_path / "kernels.json")
    monkeypatch.setattr(chosen_kernels, "_all_within", lambda *_given: True)
    found = prepared(network(), Steps(measured=str(tmp_path / "kernels.json")), LLVM)
    assert {one.kernel for one in found.chosen if one.taken} == set(scratch)
    assert arenas(found.kernels)[0] > arenas(usual.kernels)[0]


def test_a_form_with_scratch_must_be_clearly_faster_than_the_tile_that_is_taken(
    tmp_path: Path,
) -> None:
    usual = prepared(network(), Steps(measured="none"), LLVM)
    kernels = {v.name_hint: f for v, f in _kernels(usual.plain) if workspace_of(f)}
    for number, (seconds, wanted) in enumerate(((0.46, 1), (0.49, 0))):
        file = tmp_path / f"{number}.json"
        forms = (Form(SCALAR, 0.5), Form(None, seconds, 64))
        found = {key_of(f): Measured(1.0, forms) for f in kernels.values()}
        write(found, class_of(LLVM), file)
        chosen = prepared(network(), Steps(measured=str(file)), LLVM).chosen
        assert {one.kernel for one in chosen if one.form.tile == SCALAR} == set(kernels)
        stock = {one.kernel for one in chosen if one.form.tile is None}
        assert stock == (set(kernels) if wanted else set())


def test_threads_keep_kernels_that_they_share(tmp_path: Path) -> None:
    file = tmp_path / "kernels.json"
    seeded(prepared(network(), Steps(measured="none"), LLVM), file)
    assert not prepared(network(), Steps(measured=str(file), threads=2), LLVM).chosen


def test_other_tiles_than_the_targets_are_refused(tmp_path: Path) -> None:
    for other in ({"lean": False}, {"tiling": SCALAR}, {"tuned": lambda kernel: kernel}):
        with pytest.raises(InputError, match="only the target's own lean kernels"):
            Steps(measured=str(tmp_path / "kernels.json"), **other)
        assert Steps(**other).measured == "shipped"


def _kernels(made: Any) -> list[tuple[Any, Any]]:
    return [(v, f) for v, f in made.functions.items() if isinstance(f, tvm.tirx.PrimFunc)]
