"""The table of docs/how-to/onnxruntime.md: resident memory by default, in our order, predicted.

    python benchmarks/onnx_sessions.py [MODEL.onnx ...]

Without models: five networks written here. Each is measured at both levels of optimisation.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.onnx_session.nets import branches, wired
from tvm_serenity.onnx_session import LEVELS
from tvm_serenity.onnx_session.process import run_bytes

NETWORKS = {
    "random wiring, Watts-Strogatz, 32 nodes": partial(wired, size=384, n=32, seed=1),
    "random wiring, Watts-Strogatz, 64 nodes": partial(wired, size=256, n=64, seed=2),
    "random wiring, Erdos-Renyi, 32 nodes": partial(wired, size=384, n=32, model="er", seed=3),
    "random wiring, Barabasi-Albert, 32 nodes": partial(wired, size=384, n=32, model="ba", seed=4),
    "three cells of four wide branches": partial(branches, channels=32, size=256),
}


def row(name: str, path: Path, runs_on: str, folder: Path) -> str:
    command = ["schedule", str(path), "-o", str(folder / "out.onnx"), "--for", runs_on, "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "tvm_serenity.cli", *command, "--time-limit", "60"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return f"| {name} | {runs_on} | {done.stderr.strip().splitlines()[-1]} |"
    found = json.loads(done.stdout)
    grown = found["measured"]
    alone = run_bytes(path, {"enable_mem_pattern": False})
    counts = (grown["default_bytes"], alone, grown["ordered_bytes"], found["peak_bytes"])
    default, plain, ordered, predicted = (count / 1e6 for count in counts)
    return (
        f"| {name} | {runs_on} | {default:.1f} | {plain:.1f} | {ordered:.1f} | {predicted:.1f} "
        f"| {ordered / predicted - 1:+.1%} | {1 - ordered / default:.0%} less "
        f"| {1000 * grown['default_seconds']:.0f} | {1000 * grown['ordered_seconds']:.0f} "
        f"| {found['outcome']} |"
    )


def networks(folder: Path) -> Iterator[tuple[str, Path]]:
    for index, (name, write) in enumerate(NETWORKS.items()):
        yield name, write(folder / f"net{index}.onnx")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*")
    models = parser.parse_args().models
    heads = "network|`--for`|default, MB|and no pattern, MB|in order, MB|predicted, MB|off by"
    heads += "|saved|default, ms|in order, ms|order"
    print(f"|{heads}|\n" + "|---" * len(heads.split("|")) + "|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for label, path in [(m, Path(m)) for m in models] or networks(folder):
            for runs_on in LEVELS:
                print(row(label, path, runs_on, folder), flush=True)


if __name__ == "__main__":
    main()
