"""Ahead-of-time C: planned by us, equal to the graph executor on the host and on Cortex-M."""

import shutil
from pathlib import Path
from typing import Any

import pytest

relay = pytest.importorskip("tvm.relay", reason="needs a TVM with Relay: make relay-test")

import numpy as np  # noqa: E402
import tvm  # noqa: E402

from tests.relay.nets import Layers, computed, context, dataflow, inputs, joined  # noqa: E402
from tvm_serenity import boards  # noqa: E402
from tvm_serenity.errors import InputError  # noqa: E402
from tvm_serenity.firmware.board import execute  # noqa: E402
from tvm_serenity.firmware.emit.project import Layout, write_project  # noqa: E402
from tvm_serenity.memory import peak_bytes  # noqa: E402
from tvm_serenity.relay import (  # noqa: E402
    build_aot,
    c_target,
    calls,
    export_library,
    library_project,
    workspace_bytes,
)
from tvm_serenity.relay.lower import fused  # noqa: E402
from tvm_serenity.relay.schedule import region_of, schedule_module  # noqa: E402
from tvm_serenity.relay.usmp import OWN  # noqa: E402


def deep(quantised: bool) -> Any:
    """A network of a few layers with a residual add or a concat."""
    to = Layers("NHWC", quantised)
    x = to.input(3, 8)
    a = to.conv(x, 6)
    whole = to.concat([to.conv(a, 8, 1), a])
    return to.module(x, to.conv(to.conv(whole, 14, 3, depth=14), 4, 1))


def run_host(built: Any, mod: Any, folder: Path) -> list[Any]:
    """What the exported C makes of the inputs, built by the host's compiler."""
    export_library(built, folder / "net.tar")
    board = boards.board("mps2-an500")
    write_project(library_project(folder / "net.tar", Layout(board)), folder / "project")
    values = [v.tobytes() for v in inputs(mod).values()]
    results = computed(mod, inputs(mod))
    found = execute.host(folder / "project", values, len(results))
    return [np.frombuffer(o, r.dtype) for o, r in zip(found.outputs, results, strict=True)]


def test_workspace_and_calls(tmp_path: Path) -> None:
    """Our order and plan against USMP's planners; the C makes the calls of the order found."""
    mod = joined("NCHW", False)
    totals: dict[str, int] = {}

    def every(infos: Any, pressure: int) -> Any:
        made = {}
        for name in (*OWN, "serenity"):
            made = tvm.get_global_func(f"tir.usmp.algo.{name}")(infos, pressure)
            placed = [(b, a) for b, a in made.items() if "const" not in a.pool_info.pool_name]
            totals[name] = max(int(a.byte_offset) + int(b.size_bytes) for b, a in placed)
        return made

    tvm.register_func("tir.usmp.algo.tests", every, override=True)
    with context():
        lowered = fused(mod, c_target())
        ordered, found = schedule_module(lowered, c_target(), executor="aot")
        default = workspace_bytes(build_aot(lowered, algorithm="greedy_by_size"))
        built = build_aot(ordered, algorithm="tests")
    assert totals["serenity"] <= min(default, *(totals[name] for name in OWN))
    assert totals["serenity"] <= workspace_bytes(built) <= totals["serenity"] + 16
    given = region_of(lowered, c_target(), "aot").graph
    assert found.peak_bytes == peak_bytes(given, found.order)
    made: dict[str, int] = {}
    flow = []
    for i, (_, arguments) in enumerate(calls(built)):
        *read, out = [a for a in arguments if not a.startswith("constant_")]
        flow.append([made.get(name, -1) for name in read])
        made[out] = i
    place = {op: i for i, op in enumerate(found.order)} | {-1: -1}
    assert flow == [[place[m] for m in dataflow(given)[op]] for op in found.order]
    expected = computed(mod, inputs(mod))
    for a, b in zip(expected, run_host(built, mod, tmp_path), strict=True):
        np.testing.assert_array_equal(a.ravel(), b)


@pytest.mark.skipif(shutil.which("qemu-system-arm") is None, reason="needs qemu-system-arm")
@pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="needs arm-none-eabi-gcc")
@pytest.mark.parametrize("quantised", [False, True])
def test_cortex_m(quantised: bool, tmp_path: Path) -> None:
    """The same archive under QEMU on a Cortex-M4 and a Cortex-M7, equal to the host."""
    mod = deep(quantised)
    with context():
        ordered, _ = schedule_module(mod, c_target(), executor="aot")
        built = build_aot(ordered, name="net")
    (expected,) = computed(mod, inputs(mod))
    (host,) = run_host(built, mod, tmp_path)
    np.testing.assert_array_equal(host, expected.ravel())
    for name in ("mps2-an386", "mps2-an500"):
        files = library_project(tmp_path / "net.tar", Layout(boards.board(name)))
        write_project(files, tmp_path / name)
        values = [v.tobytes() for v in inputs(mod).values()]
        found = execute.qemu(tmp_path / name, name, values, 1)
        np.testing.assert_array_equal(np.frombuffer(found.outputs[0], host.dtype), host)


def test_pools_of_a_given_size() -> None:
    """Two pools that hold the tensors only together; then two that do not."""
    mod = deep(False)
    with context():
        one = workspace_bytes(build_aot(mod))
        half = -(-one * 3 // 4 // 16) * 16
        built = build_aot(mod, pools={"fast": half, "slow": half})
        assert 0 < workspace_bytes(built) <= 2 * half
        with pytest.raises(InputError, match="fast, slow are too small"):
            build_aot(mod, pools={"fast": 64, "slow": 64})
    with pytest.raises(InputError, match="expected the result of build_aot"):
        workspace_bytes(mod)
