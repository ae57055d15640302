"""Sequences of vectors as images of width one: the same bytes, the same results."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conformance.builder import Net
from tests.conformance.networks.parts import layer_norm
from tests.conformance.quantise import integer_file, ranges
from tests.quantize.running import REFERENCE

tvm = pytest.importorskip("tvm")

from tvm_serenity import compat  # noqa: E402
from tvm_serenity.frontends.relax import to_relax  # noqa: E402
from tvm_serenity.relax.bindings import bindings  # noqa: E402
from tvm_serenity.relax.token_images import token_images  # noqa: E402

TOKENS, WIDE = 6, 4


def mixer() -> Net:
    """Dense layers along channels and along tokens, a normalisation, two outputs."""
    net = Net(5)
    x = net.input(1, TOKENS, WIDE)
    y = layer_norm(net, net.add(x, net.dense(x, WIDE, "RELU", keep=True)))
    turned = net.dense(net.transpose(y, 0, 2, 1), TOKENS, keep=True)
    z = net.add(y, net.transpose(turned, 0, 2, 1))
    net.output(net.unary("TANH", z), net.dense(net.mean(z, [1]), 3))
    return net


def stored(tmp_path: Path, net: Net) -> Path:
    path = tmp_path / "net.tflite"
    path.write_bytes(integer_file(net, ranges(net, REFERENCE)))
    return path


def shapes(module: Any) -> list[tuple[int, ...]]:
    """The shapes that kernels make."""
    values = [value for _, value in bindings(module["main"]) if compat.is_call(value)]
    called = [value for value in values if compat.called_kernel(value) is not None]
    return [tuple(compat.static_shape(value.ty, "result")) for value in called]


def test_results_are_the_references(tmp_path: Path) -> None:
    path = stored(tmp_path, mixer())
    module = to_relax(path)
    made = token_images(module)
    assert (1, TOKENS, WIDE) in shapes(module)
    assert (1, TOKENS, WIDE) not in shapes(made)
    assert (1, TOKENS, 1, WIDE) in shapes(made)
    assert [p.ty for p in made["main"].params] == [p.ty for p in module["main"].params]
    machine = tvm.relax.VirtualMachine(tvm.compile(made, target="llvm"), tvm.cpu())
    REFERENCE.open("litert", path.read_bytes())
    rng = np.random.default_rng(6)
    for _ in range(4):
        x = rng.integers(-128, 128, (1, TOKENS, WIDE)).astype(np.int8)
        outputs = machine["main"](tvm.runtime.tensor(x))
        expected = [array.tobytes() for array in REFERENCE.run([x]).outputs]
        assert [outputs[i].numpy().tobytes() for i in range(2)] == expected


def test_layers_on_one_vector_stay(tmp_path: Path) -> None:
    net = Net(6)
    net.output(net.dense(net.dense(net.input(1, 8), 6, "RELU"), 3))
    module = to_relax(stored(tmp_path, net))
    assert token_images(module) is module
