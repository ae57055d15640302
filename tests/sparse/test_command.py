"""``serenity sparse``: answers, files, errors, interruption."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.cli.run import answer, serenity
from tvm_serenity.cli import app
from tvm_serenity.cli.commands import register
from tvm_serenity.errors import SerenityError
from tvm_serenity.sparse import baseline_mlp, bounds, simulate
from tvm_serenity.sparse.edges import read_edges, write_edges

register()


def test_order_answers_with_the_keys_it_promises(tmp_path: Path) -> None:
    out = tmp_path / "ordered.txt"
    found = answer(
        *[
            "sparse",
            "order",
            "--mlp",
            "60x3",
            "--density",
            "0.1",
            "--seed",
            "4",
            "--memory",
            "20",
            "--order",
            "tiles",
        ],
        "-o",
        out,
    )
    net = baseline_mlp(60, 3, 0.1, 4)
    assert found["connections"] == net.connections
    assert (found["neurons"], found["inputs"], found["outputs"]) == (181, 60, 1)
    limits = bounds(net)
    assert found["bounds"] == {
        "reads": limits.reads,
        "writes": limits.writes,
        "total": limits.total,
    }
    result = found["result"]
    assert result["total"] == result["reads"] + result["writes"] <= found["start"]["total"]
    assert result["ratio"] == pytest.approx(result["total"] / limits.total, abs=1e-6)
    assert found["seconds"] >= 0
    read = read_edges(out)
    assert simulate(read, np.arange(read.connections), 20).total == result["total"]
    x = np.random.RandomState(0).randn(3, 60)
    assert np.allclose(read.forward(x), net.forward(x), atol=1e-4)


def test_grow_answers(tmp_path: Path) -> None:
    out = tmp_path / "grown.txt"
    found = answer(
        *["sparse", "grow", "--memory", "30", "--neurons", "100", "--in-degree", "4"], "-o", out
    )
    assert found["computable"] is True
    assert found["least_memory"] <= found["smallest_memory"] <= 30
    again = answer("sparse", "grow", "--edges", out, "--memory", found["smallest_memory"])
    assert again["computable"] is True
    refused = serenity("sparse", "grow", "--edges", out, "--memory", 3)
    assert refused.returncode == 1


def test_onnx_perceptrons_are_pruned(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    rng = np.random.RandomState(0)
    a, b = rng.randn(20, 8).astype(np.float32), rng.randn(3, 20).astype(np.float32)
    bias = rng.randn(20).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["x", "a", "c"], ["h"], transB=1),
            helper.make_node("Relu", ["h"], ["r"]),
            helper.make_node("MatMul", ["r", "bt"], ["y"]),
        ],
        "mlp",
        [helper.make_tensor_value_info("x", 1, ["n", 8])],
        [helper.make_tensor_value_info("y", 1, ["n", 3])],
        [
            numpy_helper.from_array(a, "a"),
            numpy_helper.from_array(bias, "c"),
            numpy_helper.from_array(b.T.copy(), "bt"),
        ],
    )
    path = tmp_path / "mlp.onnx"
    onnx.save(helper.make_model(graph), path)
    found = answer("sparse", "order", "--onnx", path, "--density", 0.5, "--memory", 12)
    last = np.abs(b) >= np.sort(np.abs(b).ravel())[30]
    threshold = np.sort(np.abs(a).ravel())[80]
    first = (np.abs(a) >= threshold) & last.any(axis=0)[:, None]  # the rest is computed in vain
    assert found["connections"] == first.sum() + last.sum()
    assert found["outputs"] == 3


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("0 1\n1 2\n2 0\n", [], "cycle: 0 -> 1 -> 2 -> 0"),
        ("0 1\n2 3\n", [], "not connected"),
        ("0 1 nan\n", [], "weight nan"),
        ("0 1 x\n", [], "line 1"),
        ("0 1 2 3\n", [], "line 1"),
        ("", [], "no connections"),
        ("0 1\n0 3\n", [], "neuron 2 has no connections"),
        ("0 1\n", ["--memory", "2"], "use 3 or more"),
        ("0 1\n", ["--policy", "fifo"], "min, min-write-aware, lru, rr"),
        ("0 1\n", ["--order", "best"], "two-optimal"),
        ("0 1\n", ["--time-limit", "0"], "must be above 0 s"),
        ("0 1\n", ["--density", "0.5"], "--density"),
    ],
)
def test_bad_input_names_what_is_wrong(
    tmp_path: Path, text: str, options: list[str], message: str
) -> None:
    path = tmp_path / "net.txt"
    path.write_text(text)
    with pytest.raises(SerenityError, match=re.escape(message)):
        app(["sparse", "order", "--edges", str(path), *options], standalone_mode=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--mlp 5 --density 0.5", "write WIDTHxDEPTH"),
        ("--mlp 5x2", "needs --density"),
        ("", "choose one network"),
        ("--mlp 5x2 --edges net.txt", "--mlp 5x2 does not take --edges net.txt"),
        ("--mlp 5x2 --density 2", "above 0 and at most 1"),
        ("--edges /nowhere/net.txt", "cannot be read"),
        ("--onnx /nowhere/net.onnx --density 0.5", "cannot be read"),
    ],
)
def test_bad_network_options(options: str, message: str) -> None:
    with pytest.raises(SerenityError, match=message):
        app(["sparse", "order", *options.split()], standalone_mode=False)


def test_an_error_is_one_line_and_status_2() -> None:
    found = serenity("sparse", "order", "--mlp", "5x2", "--density", 0.5, "--memory", 2)
    assert found.returncode == 2
    assert found.stderr == (
        "serenity: a fast memory of 2 values is too small; use 3 or more, for a connection and "
        "its two neurons\n"
    )


def test_interrupted_annealing_saves_its_best(tmp_path: Path) -> None:
    out, net = tmp_path / "best.txt", baseline_mlp(100, 3, 0.05)
    given = tmp_path / "net.txt"
    write_edges(net, np.arange(net.connections, dtype=np.int32), given)
    command: list[object] = [
        "sparse",
        "order",
        "--edges",
        given,
        "--memory",
        "20",
        "--order",
        "anneal",
    ]
    command += ["--iterations", "1000000000", "-o", out, "--json"]
    log = tmp_path / "stderr"
    with log.open("w") as told:
        process = subprocess.Popen(
            [sys.executable, "-c", _STARTED, *map(str, command)],
            stdout=subprocess.DEVNULL,
            stderr=told,
        )
        while "started" not in log.read_text() and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=120) == 130, log.read_text()
    assert "best order so far" in log.read_text()
    best = read_edges(out)
    found = simulate(best, np.arange(best.connections), 20).total
    assert found <= simulate(net, np.arange(net.connections), 20).total


_STARTED = """
import sys
from tvm_serenity.cli import main
from importlib import import_module
module = import_module("tvm_serenity.sparse.orders.anneal")
native = module.core()
def anneal(*given, report, **options):
    def told(iterations, best):
        print("started", file=sys.stderr, flush=True)
    return native.anneal(*given, report=told, **options)
class Core:
    def __getattr__(self, name):
        return anneal if name == "anneal" else getattr(native, name)
module.core = Core
main()
"""
