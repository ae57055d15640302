"""Small networks, and ``serenity build`` of them in this process."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.run import process_state
from tvm_serenity import cli


def windows() -> Any:
    """A quantised network: convolutions of several windows, a sum of two scales."""
    from tvm_serenity.zoo.net import module
    from tvm_serenity.zoo.quantised import QuantisedNet
    from tvm_serenity.zoo.window import same

    def write(net: Any) -> Any:
        x = net.input("x", 3, 8)
        y = net.relu6(net.conv(x, 6, same(3, 2)))
        z = net.add(net.relu6(net.depthwise(y, same(3))), net.conv(y, 6))
        return net.stored(net.conv(z, 4))

    return module(write, "NHWC", 1, QuantisedNet)


def apart() -> Any:
    """A float network that takes its second input from its first: no kernel of the library."""
    from tvm import relax

    builder = relax.BlockBuilder()
    x, y = (relax.Var(name, relax.TensorType((1, 4), "float32")) for name in "xy")
    with builder.function("main", [x, y]):
        with builder.dataflow():
            out = builder.emit_output(relax.op.subtract(x, y))
        builder.emit_func_output(out)
    return builder.get()


def positions() -> Any:
    """A float network whose rows differ: every row adds numbers of its own."""
    from tvm import relax

    added = np.random.default_rng(0).standard_normal((1, 4, 2, 2)).astype(np.float32)
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 4, 2, 2), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            out = builder.emit_output(relax.op.add(x, relax.const(added)))
        builder.emit_func_output(out)
    return builder.get()


def counting() -> Any:
    """A network with a state: what it was plus the input."""
    from tvm import relax

    from tvm_serenity.relax.attributes import STATES

    builder = relax.BlockBuilder()
    x, state = (relax.Var(n, relax.TensorType((1, 8), "int32")) for n in ("x", "state"))
    with builder.function("main", [x, state]):
        with builder.dataflow():
            total = builder.emit(relax.op.add(x, state))
            made = builder.emit_output(relax.op.multiply(total, relax.const(3, "int32")))
            kept = builder.emit_output(total)
        builder.emit_func_output(relax.Tuple([made, kept]))
    found = builder.get()
    found["main"] = found["main"].with_attr(STATES, [0])
    return found


def build(
    monkeypatch: pytest.MonkeyPatch,
    network: Any,
    where: Path,
    *options: str,
    linked: bool = False,
) -> int:
    """Return the exit status of ``serenity build`` for a module, into ``where / "made"``.

    A board in ``options`` comes after the default one, and wins.
    """
    from tvm_serenity.commands.models import ModelSource
    from tvm_serenity.firmware.board import image
    from tvm_serenity.firmware.compile import model

    monkeypatch.setattr(ModelSource, "check_operators", lambda *_: None)
    monkeypatch.setattr(ModelSource, "to_build", lambda opened: opened.spec)
    made = model.OpenedModel(network, "net", "net")
    monkeypatch.setattr(model, "opened", lambda _model, _settings: made)
    monkeypatch.setattr(image, "linkable", lambda _family: linked)  # else no image for the board
    arguments = [
        "build",
        "net",
        "--minimise",
        "off",
        "--board",
        "mps2-an386",
        "-o",
        str(where / "made"),
        *options,
    ]
    monkeypatch.setattr(sys, "argv", ["serenity", *arguments])
    try:
        with process_state():
            cli.main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0
