"""Squeeze and excite by rows: means are summed as rows come, products made of the map's rows."""

from pathlib import Path

import numpy as np

from tests.conformance.builder import Net
from tests.conformance.networks.parts import classifier, squeezed
from tests.conformance.quantise import integer_file, ranges
from tests.llvm import TARGET
from tests.quantize.running import REFERENCE
from tvm_serenity.frontends import load
from tvm_serenity.frontends.relax import to_relax
from tvm_serenity.frontends.tflite_file import TfliteFile
from tvm_serenity.frontends.tflite_rows import network_of
from tvm_serenity.schedule import schedule


def squeezing() -> Net:
    """A block of MobileNetV3 within a shortcut: 16 times 16 pixels."""
    net = Net(2)
    x = net.conv(net.input(1, 32, 32, 3), 6, 3, 2, activation="RELU")
    y = net.unary("HARD_SWISH", net.depthwise(net.conv(x, 16, 1)))
    y = net.conv(squeezed(net, y, 4, gate="hard"), 6, 1)
    return classifier(net, net.add(x, y))


def test_a_network_with_squeeze_and_excite_is_exact_by_rows(tmp_path: Path) -> None:
    import tvm

    from tvm_serenity.relax.rows import by_rows
    from tvm_serenity.rows import Limits
    from tvm_serenity.runtime.pipeline import serenity_pipeline
    from tvm_serenity.runtime.vm import run
    from tvm_serenity.validation.network_inputs import random_inputs

    net = squeezing()
    data = integer_file(net, ranges(net, REFERENCE))
    path = tmp_path / "net.tflite"
    path.write_bytes(data)
    model = load(path)
    assert isinstance(model, TfliteFile)
    layers = network_of(model).layers
    assert sum(layer.sums for layer in layers) == 2
    assert all(layer.splits for layer in layers if layer.kind == "MUL")

    module = to_relax(path)
    with tvm.target.Target("llvm"):
        made, found = by_rows(module, limits=Limits(0.2))
    found.check()
    assert found.arena_bytes < schedule(model.graph).peak_bytes
    inputs = random_inputs(module)
    result = run(
        tvm.compile(made, target=TARGET, relax_pipeline=serenity_pipeline("given", validate=False)),
        inputs,
    )
    REFERENCE.open("litert", data)
    expected = REFERENCE.run([np.asarray(x) for x in inputs]).outputs
    assert [a.tobytes() for a in result.outputs] == [a.tobytes() for a in expected]
