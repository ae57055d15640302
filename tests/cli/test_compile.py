"""``serenity compile``: bytes measured on the VM, outputs compared."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cases import only_exhaustive
from tests.cli.run import answer, serenity


@pytest.mark.parametrize(
    "model", [only_exhaustive("zoo:swiftnet"), "zoo:randwire?n=12&channels=16"]
)
def test_compiled_networks_need_less_and_compute_the_same(model: str, tmp_path: Path) -> None:
    found = answer("compile", model, "--check", "--compare", "-o", tmp_path / "out")
    assert found["outputs"]["identical_to_given_order"]
    assert found["outputs"]["max_abs_error_to_stock"] < 1e-4
    assert found["order_executed"]
    assert found["schedule"]["outcome"] == "optimal"
    assert found["schedule"]["peak_bytes"] <= found["schedule"]["arena_bytes"]
    assert found["schedule"]["arena_bytes"] < found["stock"]["storage_bytes"]
    assert json.loads((tmp_path / "out" / "report.json").read_text()) == found
    written = {"lib.so", "bytecode.json", "constants.bin", "graph.txt", "report.json"}
    assert {p.name for p in (tmp_path / "out").iterdir()} == written


def test_the_exported_library_runs(tmp_path: Path) -> None:
    import tvm
    from tvm import relax

    out = tmp_path / "out"
    answer("compile", "zoo:swiftnet-cell-c", "--one-file", "-o", out)
    machine = relax.VirtualMachine(tvm.runtime.load_module(str(out / "lib.so")), tvm.cpu())
    from tvm_serenity import zoo
    from tvm_serenity.runtime.vm import run
    from tvm_serenity.validation.network_inputs import random_inputs

    inputs = random_inputs(zoo.build("swiftnet-cell-c"))
    found = machine["main"](*(tvm.runtime.tensor(array) for array in inputs))
    module = zoo.build("swiftnet-cell-c")
    stock = run(tvm.compile(module, "llvm"), inputs).outputs
    results = [found] if isinstance(found, tvm.runtime.Tensor) else list(found)
    for ours, theirs in zip(results, stock, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-4, atol=1e-4)
    again = serenity("compile", "zoo:swiftnet-cell-c", "-o", out)
    assert again.returncode == 2
    assert "the directory exists already" in again.stderr
