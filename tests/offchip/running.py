"""Small networks in files, and the command line on them."""

import random
import subprocess
import sys
from pathlib import Path

from tests.random_graphs import random_graph
from tvm_serenity.text import dump

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "offchip.py"


def graph_files(folder: Path, count: int, ops: int = 20) -> list[str]:
    """Write ``count`` random networks in text form."""
    paths = []
    for seed in range(count):
        path = folder / f"net{seed}.txt"
        path.write_text(dump(random_graph(random.Random(seed), ops, features=False)))
        paths.append(str(path))
    return paths


def offchip(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the script to its end."""
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=120,
        check=False,
    )
