"""Attention by query rows: keys and values are complete, all other tensors are rows."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conformance.builder import Net
from tests.conformance.networks.sequences import attention
from tests.conformance.quantise import integer_file, ranges
from tests.llvm import TARGET
from tests.quantize.running import REFERENCE
from tests.rows.nets import Built, Host, build, needs_host, program, streaming, unchecked
from tests.rows.test_property import differing
from tvm_serenity.errors import CheckError
from tvm_serenity.firmware.check.calls import check
from tvm_serenity.firmware.program import Data
from tvm_serenity.frontends.relax import to_relax
from tvm_serenity.rows import Limits
from tvm_serenity.rows.bound import check_bound, rows_bound
from tvm_serenity.rows.split import heights_of

TOKENS, WIDE, HEADS = 11, 8, (2, 1)
SWAPPED = (0, 2, 1, 3)


def transformer(heads: tuple[int, ...]) -> Net:
    """Blocks of attention and a network of two layers, on images of one column."""
    net = Net(9)
    x = net.conv(net.input(1, TOKENS, 1, WIDE), WIDE, 1)
    for count in heads:
        q, k, v = (
            net.transpose(
                net.reshape(net.conv(x, WIDE, 1), 1, TOKENS, count, WIDE // count), *SWAPPED
            )
            for _ in range(3)
        )
        scores = net.mul(net.batch_matmul(q, k, transposed=True), net.constant(0.5))
        y = net.transpose(net.batch_matmul(net.softmax(scores), v), *SWAPPED)
        x = net.add(x, net.conv(net.reshape(y, 1, TOKENS, 1, WIDE), WIDE, 1))
        y = net.conv(net.conv(x, 3 * WIDE, 1, activation="RELU"), WIDE, 1)
        x = net.add(x, y)
    net.output(net.softmax(net.dense(net.mean(x, [1, 2]), 3)))
    return net


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    net = transformer(HEADS)
    path = tmp_path_factory.mktemp("model") / "net.tflite"
    path.write_bytes(integer_file(net, ranges(net, REFERENCE)))
    return path


@pytest.fixture(scope="module")
def built(model: Path) -> Built:
    return build(to_relax(model))


def expected(model: Path, inputs: list[Any]) -> tuple[bytes, ...]:
    REFERENCE.open("litert", model.read_bytes())
    return tuple(a.tobytes() for a in REFERENCE.run([np.asarray(x) for x in inputs]).outputs)


def products(built: Built) -> list[Any]:
    """The layers that read a complete tensor and rows of another one."""
    layers = built.kernels.network.layers
    return [one for one in layers if None in one.needs and one.splits]


@needs_host
def test_a_transformer_of_dense_layers_and_normalisations(tmp_path: Path) -> None:
    net = attention()
    path = tmp_path / "net.tflite"
    path.write_bytes(integer_file(net, ranges(net, REFERENCE)))
    built = build(to_relax(path))
    network = built.kernels.network
    assert [one for one in network.unsplit if "its result" not in one] == []
    assert network.rows(network.inputs[0]) == 8  # the tokens of a sequence [1, 8, 6]
    found = streaming(built, heights_of(network, 1))
    widest = max(f.row_bytes for f in network.features)
    assert found.arena_bytes <= 3 * 8 * 12 + 4 * widest  # unsplit: 512
    made = program(built, found)
    run = Host(tmp_path).run(made, built.inputs)
    assert not differing(built, made, run)
    assert run.outputs == expected(path, built.inputs)


@needs_host
@pytest.mark.parametrize("rows", [1, 4])
def test_every_row_is_that_of_unsplit_kernels(
    built: Built, model: Path, rows: int, tmp_path: Path
) -> None:
    network = built.kernels.network
    assert len(products(built)) == 2 * len(HEADS)
    assert not network.unsplit
    found = streaming(built, heights_of(network, rows))
    kept = 3 * TOKENS * WIDE  # the input of a block, keys and values
    widest = max(f.row_bytes for f in network.features)
    assert kept <= found.arena_bytes <= kept + 4 * rows * widest
    made = program(built, found)
    run = Host(tmp_path).run(made, built.inputs)
    assert not differing(built, made, run)
    assert run.outputs == expected(model, built.inputs)


def test_the_bound_covers_complete_tensors(built: Built) -> None:
    network = built.kernels.network
    bound = rows_bound(network, limits=Limits(0.2))
    assert bound.lower_bound_bytes >= 3 * TOKENS * WIDE
    assert check_bound(network, bound.certificate()).lower_bound_bytes == bound.lower_bound_bytes
    for rows in (1, 3):
        found = streaming(built, heights_of(network, rows))
        assert found.arena_bytes >= bound.lower_bound_bytes


def test_keys_under_other_tensors_are_found(built: Built) -> None:
    network = built.kernels.network
    found = streaming(built, heights_of(network, 1))
    good = program(built, found)
    steps = [
        s
        for s in good.steps
        if s.slots and not s.adds and any(isinstance(a, Data) for a in s.arguments)
    ]
    assert len(steps) == len(products(built))
    bands = found.banded.bands
    for layer in products(built):
        keys = next(f for f, need in zip(layer.inputs, layer.needs, strict=True) if need is None)
        of = [bands[r.tensors[0]].feature if r.tensors else -1 for r in found.ranges]
        mine = found.ranges[of.index(keys)]
        other = next(
            i
            for i, r in enumerate(found.ranges)
            if of[i] != keys and mine.start < r.start < mine.stop
        )
        offsets = list(found.plan.offsets)
        offsets[of.index(keys)] = offsets[other]
        moved = replace(found, plan=replace(found.plan, offsets=tuple(offsets)))
        with pytest.raises(CheckError, match=r"overwritten|outside of the arena|is not aligned"):
            check(unchecked(built, moved))


def test_on_the_relax_vm(model: Path) -> None:
    tvm = pytest.importorskip("tvm")
    from tvm_serenity.relax.pipeline import Steps, prepared
    from tvm_serenity.runtime.pipeline import serenity_pipeline
    from tvm_serenity.runtime.vm import run
    from tvm_serenity.validation.network_inputs import random_inputs

    module = to_relax(model)
    ready = prepared(module, Steps(rows=True, time_limit_s=1), "llvm")
    assert ready.rows is not None
    inputs = random_inputs(module)
    pipeline = serenity_pipeline("given", validate=False)
    made = run(tvm.compile(ready.changed, target=TARGET, relax_pipeline=pipeline), inputs)
    assert tuple(np.asarray(a).tobytes() for a in made.outputs) == expected(model, inputs)


def test_a_moving_window_computes_attention_anew(model: Path) -> None:
    from tvm_serenity.relax.pipeline import Steps, prepared
    from tvm_serenity.relax.rows_read import read_rows

    plain = prepared(to_relax(model), Steps(layout="last"), "llvm").plain
    rows = read_rows(plain, "net", complete=False)
    reasons = [one for one in rows.network.unsplit if "each of its rows reads" in one]
    assert len(reasons) == 2 * len(HEADS)
