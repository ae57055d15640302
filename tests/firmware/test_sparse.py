"""Firmware of sparse networks: results, counted reads and writes, and seeded faults."""

import ctypes
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import scaled
from tests.cli.run import answer, serenity
from tests.firmware.projects import needs_board, needs_host, needs_riscv
from tests.sparse.nets import random_net, random_order
from tvm_serenity.errors import InputError, UnsupportedError, WrongResultError
from tvm_serenity.firmware.sparse import interpreter, reference, words
from tvm_serenity.firmware.sparse.building import SparseSettings, build
from tvm_serenity.firmware.sparse.words import Inference, inference
from tvm_serenity.sparse import FFNN, Policy, baseline_mlp, simulate
from tvm_serenity.sparse.edges import read_edges
from tvm_serenity.sparse.network import Floats, Ints

Ran = tuple[Floats, tuple[int, int]]


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """The counting kernel, compiled for this machine."""
    folder = tmp_path_factory.mktemp("kernel")
    text = (
        "#include <stdint.h>\nvoid infer(const float *input, float *output, int32_t *ios,\n"
        "    float *fast, float *spilled, const uint16_t *word, const float *weight,\n"
        f"    const float *bias)\n{{\n{interpreter.body(counted=True)}\n}}\n"
    )
    (folder / "kernel.c").write_text(text)
    command = ["cc", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "kernel.c", "-o", "kernel.so"]
    subprocess.run(command, cwd=folder, check=True)
    found: Callable[..., Any] = ctypes.CDLL(str(folder / "kernel.so")).infer
    return found


def ran(kernel: Callable[..., Any], net: FFNN, made: Inference, inputs: Floats) -> Ran:
    """Outputs and I/Os of an inference; memory that it does not own must stay as it was."""
    guard = np.float32(-7.5)
    fast = np.full(made.slots + 2, guard, np.float32)
    spilled = np.full(made.spilled + 2, guard, np.float32)
    output, ios = np.full(len(net.outputs) + 2, guard, np.float32), np.zeros(2, np.int32)
    given = [inputs, output[1:], ios, fast[1:], spilled[1:]]
    constants = [made.words, made.weights, made.biases]
    arrays = [np.ascontiguousarray(one) for one in (*given[:1], *constants)]
    pointers = [arrays[0], *given[1:], *arrays[1:]]
    kernel(*(ctypes.c_void_p(one.ctypes.data) for one in pointers))
    assert all(one[0] == guard == one[-1] for one in (fast, spilled, output))
    return output[1:-1], (int(ios[0]), int(ios[1]))


@needs_host
@pytest.mark.parametrize("policy", Policy)
def test_random_networks_compute_and_move_what_is_predicted(
    kernel: Callable[..., Any], policy: Policy
) -> None:
    spills = 0
    for seed in range(scaled(150, 4000)):
        rng = random.Random(seed)
        net = random_net(rng)
        order, memory = random_order(net, rng), rng.randint(3, 9)
        made = inference(net, order, memory, policy)
        assert made.slots <= memory - 1
        inputs = np.array([rng.gauss(0, 1) for _ in net.inputs], np.float32)
        outputs, ios = ran(kernel, net, made, inputs)
        assert outputs.tobytes() == reference.outputs(net, order.tolist(), inputs).tobytes(), seed
        assert np.allclose(outputs, net.forward(inputs), atol=1e-4), seed
        predicted = simulate(net, order, memory, policy)
        assert ios == (predicted.reads, predicted.writes), seed
        spills += made.spilled
    assert spills > 20


def test_constants_and_outputs_that_feed_others(kernel: Callable[..., Any]) -> None:
    """Neuron 1 is the constant relu(-2) = 0, 2 the constant 3; output 3 feeds output 4."""
    net = FFNN.from_edges(
        [(0, 3, 2.0), (1, 3, 5.0), (2, 3, 1.0), (3, 4, -1.0), (2, 4, 1.0)],
        [0.0, -2.0, 3.0, 0.5, 0.0],
        inputs=[0],
        outputs=[4, 3],
    )
    made = inference(net, np.arange(5, dtype=np.int32), 3, Policy.MIN)
    outputs, ios = ran(kernel, net, made, np.array([1.0], np.float32))
    assert outputs.tolist() == [-2.5, 5.5]
    predicted = simulate(net, np.arange(5), 3)
    assert ios == (predicted.reads, predicted.writes)


@needs_board
@needs_riscv
@pytest.mark.parametrize(
    ("board", "policy"), [("netduinoplus2", "min"), ("qemu-virt", "min-write-aware")]
)
def test_cores_move_what_is_predicted(tmp_path: Path, board: str, policy: str) -> None:
    out, edges = tmp_path / "mlp", tmp_path / "ordered.txt"
    network = ["--mlp", "30x3", "--density", "0.2", "--memory", "12", "--order", "greedy"]
    facts = answer(
        *["sparse", "build", *network, "--policy", policy, "--board", board, "-o", out],
        *["--count-ios"],
    )
    ordered = answer("sparse", "order", *network, "--policy", policy, "-o", edges)["result"]
    assert facts["network"]["total"] == ordered["total"]
    assert facts["sparse"]["writes"] > 20
    found = answer("verify", out)
    assert found["identical"]
    assert (found["host"]["tensors"], found["qemu"]["inputs"]) == (2, 8)
    counted = answer("run", out, "--qemu")["outputs"]["ios"]
    assert counted == [ordered["reads"], ordered["writes"]]
    net = read_edges(edges)
    x = np.random.default_rng(5).standard_normal(30).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    y = answer("run", out, "--host", "--input", tmp_path / "x.npy")["outputs"]["output"]
    assert np.allclose(y, net.forward(x), atol=1e-5)


def _dropped_spill(monkeypatch: pytest.MonkeyPatch) -> None:
    """A spilled sum stays in slow memory as it was."""
    writer = words._Writer
    held = writer._write

    def write(self: Any, neuron: int, slot: int) -> None:
        before = len(self.words)
        held(self, neuron, slot)
        if self.words[before] >> words.SLOT_BITS == words.Operation.SPILL:
            del self.words[before:]

    monkeypatch.setattr(writer, "_write", write)


def _read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """An input is read twice: outputs are right, and there is a read too many."""
    writer = words._Writer
    held = writer._read

    def read(self: Any, neuron: int) -> None:
        held(self, neuron)
        if neuron in self.input and not self.stored and self.words[-2:] != self.words[-4:-2]:
            self.words += self.words[-2:]

    monkeypatch.setattr(writer, "_read", read)


def _no_activation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hidden neurons are not clamped at 0."""
    held = words._Writer._word

    def word(self: Any, operation: words.Operation, slot: int, *operand: int) -> None:
        if operation is not words.Operation.RELU:
            held(self, operation, slot, *operand)

    monkeypatch.setattr(words._Writer, "_word", word)


def _shared_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two values are given one slot."""
    monkeypatch.setattr(words._Numbers, "take", lambda self: min(self.most, 1))


@needs_host
@pytest.mark.parametrize("fault", [_dropped_spill, _read_twice, _no_activation, _shared_slot])
def test_faults_are_found_before_anything_is_written(
    fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    net = baseline_mlp(20, 3, 0.3, 1)
    order = np.arange(net.connections)
    settings = SparseSettings(memory=6, output=tmp_path / "mlp")
    fault(monkeypatch)
    with pytest.raises(WrongResultError):
        build(net, order, "generic:64K:128K", settings)
    assert not (tmp_path / "mlp").exists()


def test_a_large_memory_is_refused() -> None:
    count = words.MOST_SLOTS + 1
    net = FFNN.from_edges([(i, count, 1.0) for i in range(count)])
    order = np.arange(count, dtype=np.int32)
    assert inference(net, order, words.MOST_SLOTS + 1, Policy.LRU).slots == words.MOST_SLOTS
    with pytest.raises(UnsupportedError, match="smaller --memory"):
        inference(net, order, words.MOST_SLOTS + 5, Policy.LRU)


def test_wrong_requests_name_the_reason(tmp_path: Path) -> None:
    network = ["sparse", "build", "--mlp", "20x2", "--density", "0.2", "--order", "tiles"]
    out = tmp_path / "mlp"
    refused = serenity(*network, "-o", out)
    assert refused.returncode == 2
    assert "no board: give --board NAME" in refused.stderr
    small = serenity(*network, "--cpu", "cortex-m4", "--ram", "1K", "--flash", "64K", "-o", out)
    assert small.returncode == 1
    assert "does not fit" in small.stdout
    out.mkdir()
    (out / "kept").write_text("")
    full = serenity(*network, "--board", "netduinoplus2", "-o", out)
    assert full.returncode == 2
    assert "is not empty" in full.stderr
    net = baseline_mlp(20, 2, 0.2)
    order: Ints = np.arange(net.connections, dtype=np.int32)[::-1].copy()
    with pytest.raises(InputError, match="not topological"):
        build(net, order, "generic:64K:128K", SparseSettings(memory=9))
