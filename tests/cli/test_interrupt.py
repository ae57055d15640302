"""Ctrl-C ends a long search with the best order so far, written and labelled."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import networkx as nx

from tvm_serenity.frontends import load
from tvm_serenity.memory import peak_bytes


def hard_network(nodes: int = 192) -> str:
    """A random wired network with random sizes that takes minutes to prove."""
    rng = random.Random(3)
    wired = nx.connected_watts_strogatz_graph(nodes, 4, 0.75, seed=3)
    reads: list[list[int]] = [[] for _ in range(nodes)]
    for a, b in wired.edges:
        reads[max(a, b)].append(min(a, b))
    lines = [
        f"o{i}: {' '.join(f't{r}' for r in sorted(reads[i]))} -> t{i}[{rng.randint(1, 1000)}]"
        for i in range(nodes)
    ]
    read = {r for found in reads for r in found}
    return "\n".join([*lines, "output " + " ".join(f"t{i}" for i in range(nodes) if i not in read)])


def test_ctrl_c_keeps_the_best_order(tmp_path: Path) -> None:
    net, out = tmp_path / "net.txt", tmp_path / "out.txt"
    net.write_text(hard_network())
    command = [sys.executable, "-m", "tvm_serenity.cli", "schedule", str(net), "-o", str(out)]
    process = subprocess.Popen(
        [*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    assert "best" in process.stderr.readline()  # the search has begun
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "interrupted; this is the best order so far" in stderr
    assert "Traceback" not in stderr
    found = json.loads(stdout)["schedule"]
    assert found["outcome"] == "timeout"
    assert found["lower_bound_bytes"] < found["peak_bytes"]
    assert peak_bytes(load(out).graph) == found["peak_bytes"] < peak_bytes(load(net).graph)


def test_ctrl_c_while_the_program_is_imported_is_one_line() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "tvm_serenity.cli", "boards"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if line.rstrip().endswith("| tvm_serenity.cli"):  # the package; what it needs comes next
            break
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert "serenity: interrupted" in said
