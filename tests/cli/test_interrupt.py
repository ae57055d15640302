"""Ctrl-C ends a long search with the best order so far, written and labelled."""

import json
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import product
from pathlib import Path

import networkx as nx
import pytest

from tests.cases import only_exhaustive, sampled
from tests.large_graphs import layered, steady_trace
from tvm_serenity.frontends import load
from tvm_serenity.graph.text import dump
from tvm_serenity.memory import peak_bytes
from tvm_serenity.plan import check_plan, read_csv


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
    assert any("best" in line for line in process.stderr)  # the search has begun
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "interrupted; this is the best order so far" in stderr
    assert "Traceback" not in stderr
    found = json.loads(stdout)["schedule"]
    assert found["outcome"] == "timeout"
    assert found["lower_bound_bytes"] < found["peak_bytes"]
    assert peak_bytes(load(out).graph) == found["peak_bytes"] < peak_bytes(load(net).graph)


def test_ctrl_c_keeps_the_best_placement(tmp_path: Path) -> None:
    file, out = tmp_path / "buffers.csv", tmp_path / "placed.csv"
    rng = random.Random(5)
    rows = [(i, s := rng.randrange(400), s + rng.randint(1, 60)) for i in range(5_000)]
    lines = [f"b{i},{lower},{upper},{rng.randint(1, 9999)}" for i, lower, upper in rows]
    file.write_text("\n".join(["id,lower,upper,size", *lines]))
    command = [sys.executable, "-c", PRESSED_WHILE_PLACING, "plan", str(file), "-o", str(out)]
    command += ["--json", "--time-limit", "120"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert process.returncode == 130, process.stderr
    assert "interrupted; this is the best placement so far" in process.stderr
    found = json.loads(process.stdout)
    assert found["outcome"] == "timeout"
    assert found["statistics"]["limit"] == "interrupt"
    placed = read_csv(out)
    offsets = [buffer.offset or 0 for buffer in placed]
    check_plan([replace(buffer, offset=None) for buffer in placed], offsets, found["arena_bytes"])


PRESSED_WHILE_PLACING = """
import os, signal, threading
from tvm_serenity.cli import main, plan as command

def pressed(*arguments, found=command.plan, **options):
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    return found(*arguments, **options)

command.plan = pressed
main()
"""


@pytest.mark.parametrize(
    ("command", "later"),
    [
        *product(["schedule", "rewrite"], [1.0]),
        *map(only_exhaustive, product(["schedule", "rewrite"], [4.0])),
    ],
)
def test_ctrl_c_ends_large_graphs_within_half_a_second(
    command: str, later: float, tmp_path: Path
) -> None:
    file = tmp_path / "layered.txt"
    file.write_text(dump(layered(100_000)))
    found = json.loads(
        pressed_after_reading(later, "graph.text.parse", command, str(file), "--json")
    )
    assert found["schedule"]["outcome"] == "timeout"
    assert found["schedule"]["lower_bound_bytes"] < found["schedule"]["peak_bytes"]
    assert found["schedule"]["peak_bytes"] <= found["given"]["peak_bytes"]
    assert len(found["schedule"]["order"]) == 100_000


def test_ctrl_c_ends_a_large_placement_within_half_a_second(tmp_path: Path) -> None:
    file = tmp_path / "steady.csv"
    rows = (f"{b.name},{b.lower},{b.upper},{b.size_bytes}" for b in steady_trace(100_000))
    file.write_text("\n".join(["id,lower,upper,size", *rows]))
    found = json.loads(pressed_after_reading(3.0, "plan.read_csv", "plan", str(file), "--json"))
    assert found["outcome"] == "timeout"
    assert found["statistics"]["limit"] == "interrupt"
    assert found["lower_bound_bytes"] < found["arena_bytes"] < 1.5 * found["lower_bound_bytes"]


@pytest.mark.parametrize("later", [0.3, only_exhaustive(1.2)])
def test_ctrl_c_ends_the_traffic_of_large_graphs_within_half_a_second(
    later: float, tmp_path: Path
) -> None:
    file = tmp_path / "layered.txt"
    file.write_text(dump(layered(100_000)))
    asked = ["--order-for", "traffic", "--capacity", "4K", "--block", "64", "--json"]
    pressed_after_reading(later, "graph.text.parse", "offchip", str(file), *asked)


def pressed_after_reading(later: float, reads: str, *words: str) -> str:
    """Return what a command prints that gets Ctrl-C so many seconds after it has read its file."""
    run = [sys.executable, "-c", PRESSED_AFTER_READING, str(later), reads, *words]
    process = subprocess.run(run, capture_output=True, text=True, timeout=120)
    assert process.returncode == 130, process.stderr
    assert "serenity: interrupted" in process.stderr
    assert float(process.stderr.splitlines()[-1].removeprefix("CPU seconds ")) < 0.5
    return process.stdout


IMPORTED = ("typer.colors", "tvm_serenity.cli._app", "tvm_serenity.boards")
PRESSED_AFTER_READING = """
import atexit, os, signal, sys, threading, time
from importlib import import_module
from tvm_serenity.cli import run

later, (home, _, name), pressed = float(sys.argv.pop(1)), sys.argv.pop(1).rpartition("."), []
home = import_module(f"tvm_serenity.{home}")

def press():
    pressed.append(time.process_time())
    os.kill(os.getpid(), signal.SIGINT)

def noted(*arguments, read=getattr(home, name), **options):
    found = read(*arguments, **options)
    threading.Timer(later, press).start()
    return found

def said():
    print("CPU seconds", time.process_time() - pressed[0], file=sys.stderr)

setattr(home, name, noted)
atexit.register(said)
run()
"""


@pytest.mark.parametrize(("module", "later"), sampled(product(IMPORTED, [0.0, 0.02, 0.05, 0.1]), 4))
def test_ctrl_c_at_any_moment_is_one_line(module: str, later: float) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "tvm_serenity.cli", "boards"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for line in process.stderr:
            if line.split("|")[-1].strip() == module:  # its import has ended
                break
        else:
            pytest.fail(f"{module} was not imported")
        time.sleep(later)
        process.send_signal(signal.SIGINT)
        said = [line.rstrip() for line in process.stderr if not line.startswith("import time")]
        printed = process.stdout.read()
    if process.returncode == 0:  # it was done by then
        assert "cortex-m4" in printed
        assert said == []
    else:
        assert process.returncode == 130
        assert said == ["serenity: interrupted"]
