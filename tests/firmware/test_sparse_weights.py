"""Weights without their zeros: the packed form, the choice of it, and a fault in it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.pruning import pruned
from tests.cases import only_exhaustive
from tests.firmware.drawn_kernels import CORES, whole
from tests.firmware.drawn_kernels import pruned as drawn
from tests.firmware.projects import KWS, model, needs_board, needs_host, needs_riscv
from tests.firmware.test_kernel_records import wrong_on_board
from tests.firmware.test_library import Drawn, computed
from tvm_serenity.errors import WrongResultError
from tvm_serenity.firmware import Settings, build
from tvm_serenity.firmware.check.verify_report import report
from tvm_serenity.firmware.kernels.candidates import candidates, smallest
from tvm_serenity.firmware.kernels.parts import sparse
from tvm_serenity.firmware.kernels.parts.packing import by_sources
from tvm_serenity.firmware.kernels.record import KernelOptions
from tvm_serenity.firmware.kernels.sparse_any import kernel as sparse_any
from tvm_serenity.firmware.kernels.sparse_dsp import kernel as sparse_dsp
from tvm_serenity.firmware.result import Project
from tvm_serenity.firmware.select import library
from tvm_serenity.fitting.goal import FitGoal
from tvm_serenity.fitting.search import fitted
from tvm_serenity.quantize.fixed import multiplier

FORMS = {"cortex-m4": sparse_dsp.KERNEL.name, "rv32imc": sparse_any.KERNEL.name}
DENSE_BYTES = 31_832
"""Constants of the network with all weights on a Cortex-M4."""


def unpacked(code: Any, inputs: int, outputs: int, narrow: bool) -> Any:
    """The weights ``[inputs, outputs]`` of a code, read as ``common/sparse.h`` says."""
    weights, at = np.zeros((inputs, outputs), int), 0
    for o in range(outputs):
        pairs, at, i = code[at] | code[at + 1] << 8, at + 2, 0
        for _ in range(pairs):
            if narrow:
                gaps, both = int(code[at]), int(code[at + 1])
                first, second = (value - 16 * (value > 7) for value in (both & 15, both >> 4))
            else:
                first, gaps, second = code[at : at + 3].tolist()
            for gap, weight in ((gaps & 15, first), (gaps >> 4, second)):
                i += gap
                weights[i, o] += weight - 256 * (weight > 127)
            at += 2 if narrow else 3
    assert at == len(code)
    return weights


@pytest.mark.parametrize("seed", range(30))
def test_the_code_is_the_weights_in_fewer_bytes(seed: int) -> None:
    one = drawn(seed)
    layer = library._layer(library._joined_lines(one.spec), one.weights, one.bias)
    if sparse.refusal(layer):
        return
    code = sparse.pack(layer)
    read = unpacked(code, layer.inputs, layer.spec.channels, layer.narrow)
    assert (read == by_sources(layer)).all()
    assert code.nbytes < layer.weights.size // (2 if layer.narrow else 1)
    pairs = (code.nbytes - 2 * layer.spec.channels) // (2 if layer.narrow else 3)
    assert sparse_any.counts(layer, KernelOptions())[5:7].count(0) <= 1
    assert 2 * pairs >= np.count_nonzero(layer.weights)


def test_dense_weights_are_refused() -> None:
    one = drawn(3)
    layer = library._layer(one.spec, one.weights, one.bias)
    dense = replace(layer, weights=np.ones_like(layer.weights))
    assert sparse.refusal(dense) == sparse.DENSE
    assert candidates("k", dense, CORES["cortex-m4"])
    strided = replace(layer, spec=replace(layer.spec, padding=(1, 1, 1, 1)))
    assert "1x1" in sparse.refusal(strided)


@needs_board
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_two_sums_share_a_register_pair_up_to_their_limit(dtype: str, tmp_path: Path) -> None:
    """Inputs of one sign and weights of both make the largest sums, next to sums of 0."""
    limits, outputs = np.iinfo(dtype), 3
    most = sparse_dsp.PACKED_SUM // max(-limits.min, limits.max)
    inputs = 8 * (most // 127)
    weights = np.zeros((1, 1, inputs, outputs), np.int8)
    left = most - 127 * (most // 127) - 1
    weights[0, 0, : 8 * (most // 127) : 8, 0] = 127
    weights[0, 0, 1, 0] = left
    weights[..., 1] = -weights[..., 0]
    weights[0, 0, 5, 2] = 1
    plain = drawn(4)
    finish = replace(
        plain.spec.requantise,
        multiplier=multiplier(np.full(outputs, 2.0**-15)),
        zero_point=limits.min + 128,
        low=int(limits.min),
        high=int(limits.max),
        dtype=dtype,
    )
    pieces = ((1, 1, 12, inputs),)
    spec = replace(
        plain.spec, dtype=dtype, pieces=pieces, weight_shape=weights.shape, requantise=finish
    )
    x = np.full(pieces[0], limits.min, dtype)
    x[0, 0, ::2] = limits.max
    bias = np.array([1000, -1000, 7], np.int32)
    one = Drawn(spec, weights, bias, (x,), computed(spec, weights, bias, (x,)))
    layer = library._layer(library._joined_lines(spec), weights, bias)
    assert sparse_dsp.refuses(layer) == ""
    more = weights.copy()
    more[0, 0, 1] += np.sign(more[0, 0, 1])
    more[0, 0, 2, 0] = 2
    assert "2^22" in sparse_dsp.refuses(library._layer(spec, more, bias))
    found = [k for k in whole(one, CORES["cortex-m4"]) if k.row[0] == FORMS["cortex-m4"]]
    assert len(found) == 1
    lying = [(found[0], 0, one.expected.nbytes)]
    assert wrong_on_board(lying, "cortex-m4", tmp_path) == []


@pytest.mark.parametrize("core", CORES)
def test_the_smallest_calls_are_packed_where_that_is_smaller(core: str) -> None:
    counts = {True: 0, False: 0}
    for seed in range(12):
        one = drawn(seed)
        layer = library._layer(library._joined_lines(one.spec), one.weights, one.bias)
        layer = replace(layer, vectors=CORES[core].vectors)
        found = candidates("k", layer, CORES[core])
        held = smallest(found)
        packed = {call.form.kernel.driven for call in held}
        counts[packed == {True}] += 1
        if packed != {True}:
            assert held == found
    assert counts[True] > 3


@pytest.fixture(scope="module")
def pruned_kws(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pruned") / "kws.tflite"
    path.write_bytes(pruned(model(KWS).read_bytes(), 0.9))
    return path


def forms(found: Project) -> set[str]:
    """The kernels of the library in a build."""
    chosen = (c for one in found.facts["choices"] for c in one["candidates"] if not c["reason"])
    return {one["form"] for one in chosen}


@needs_board
@needs_riscv
@pytest.mark.parametrize("board", [only_exhaustive("rv32imc:64K:256K"), "cortex-m4:64K:256K"])
def test_a_pruned_network_is_exact_and_smaller(
    pruned_kws: Path, board: str, tmp_path: Path
) -> None:
    settings = Settings(name="net", output=tmp_path / "net", check=False, weights="small")
    found = build(str(pruned_kws), board, settings)
    assert FORMS[board.partition(":")[0]] in forms(found)
    assert found.facts["constant_bytes"] < 0.55 * DENSE_BYTES
    said = report(found, on_host=False, inputs=1)
    assert said["identical"]
    assert said["litert_tensors"] > 5


def test_the_search_takes_smaller_weights_where_flash_is_short(pruned_kws: Path) -> None:
    """On a Cortex-M4 half of the weights, packed, are slower and smaller than all of them."""
    half = pruned_kws.with_name("half.tflite")
    half.write_bytes(pruned(model(KWS).read_bytes(), 0.5))
    settings = Settings(name="net", check=False)
    free = fitted(str(half), "cortex-m4:64K:256K", FitGoal(), settings, every=False)
    assert free.chosen is not None
    assert free.chosen.candidate.settings.weights == "fast"
    limit = free.chosen.flash_bytes - 3000
    short = FitGoal(flash_bytes=limit)
    found = fitted(str(half), "cortex-m4:64K:256K", short, settings, every=False)
    assert found.chosen is not None
    weights = found.chosen.candidate.settings.weights
    assert weights in ("small", "coded"), "whichever is faster of those that fit"
    assert found.chosen.flash_bytes <= limit
    assert f"{weights} weights" in found.chosen.strategy
    assert any(one.candidate.settings.weights == "small" for one in found.points)


@needs_host
def test_a_wrong_code_is_found(
    pruned_kws: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pack = sparse.pack

    def wrong(layer: Any) -> Any:
        code = pack(layer).copy()
        code[2] += 1  # the first weight of the first output
        return code

    monkeypatch.setattr(sparse_any, "pack", wrong)
    settings = Settings(name="net", output=tmp_path / "net", weights="small")
    with pytest.raises(WrongResultError):
        build(str(pruned_kws), "generic:64K:256K", settings)
    assert not (tmp_path / "net").exists()
