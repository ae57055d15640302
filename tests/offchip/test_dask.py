"""A sweep on a local Dask cluster of two worker processes, one of which is killed under way."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.offchip.running import ROOT, SCRIPT, graph_files, offchip

pytest.importorskip("distributed", reason="Dask is not installed: pip install '.[dask]'")

Process = subprocess.Popen[str]


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, list[Process]]]:
    """Start a scheduler and two workers, each a process of its own."""
    started: list[Process] = []

    def start(name: str, *arguments: str) -> Process:
        command = [sys.executable, "-m", f"distributed.cli.dask_{name}", *arguments]
        with (folder / f"{name}{len(started)}.log").open("w") as log:
            process = subprocess.Popen(
                [*command, "--no-dashboard"], stdout=log, stderr=log, text=True, cwd=ROOT
            )
        started.append(process)
        return process

    try:
        start("scheduler", "--host", "127.0.0.1", "--port", "0")
        address = _wait_for(folder / "scheduler0.log", r"(tcp://127\.0\.0\.1:\d+)")
        one = ("--nworkers", "1", "--nthreads", "1", "--no-nanny", "--local-directory")
        workers = [start("worker", address, *one, str(folder)) for _ in range(2)]
        for number in (1, 2):
            _wait_for(folder / f"worker{number}.log", r"(Starting established connection)")
        yield address, workers
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


def _wait_for(log: Path, pattern: str) -> str:
    for _ in range(600):
        found = re.search(pattern, log.read_text()) if log.exists() else None
        if found:
            return found[1]
        time.sleep(0.05)
    pytest.fail(f"{log.name} says nothing like {pattern}: {log.read_text()[-800:]}")


def test_the_result_is_complete_when_a_worker_is_killed(tmp_path: Path) -> None:
    files = graph_files(tmp_path, 4, 200)
    asked = [*files, "--block", "1", "--capacities", "16,32,48", "--orders", "given,traffic"]
    asked += ["--json", "--effort", "4"]
    alone = offchip(*asked)
    assert len(json.loads(alone.stdout)) == 4 * 3 * 2
    kept = tmp_path / "sweep.points"
    with cluster(tmp_path) as (address, workers):
        sweep = subprocess.Popen(
            [sys.executable, str(SCRIPT), *asked, "--dask", address, "--resume", str(kept)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        until = time.monotonic() + 100
        while not kept.exists() and sweep.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        killed_under_way = kept.exists() and sweep.poll() is None
        workers[0].send_signal(signal.SIGKILL)
        output, error = sweep.communicate(timeout=100)
    assert killed_under_way
    assert (sweep.returncode, output) == (0, alone.stdout), error[-2000:]
