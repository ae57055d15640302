"""Small networks in files, and the command line on them."""

import random
from pathlib import Path

from tests.cli.run import Finished, serenity
from tests.random_graphs import random_graph
from tvm_serenity.graph.text import dump

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


def offchip(*arguments: object, cwd: Path | None = None) -> Finished:
    """Return what ``serenity offchip ARGUMENTS`` leaves."""
    return serenity("offchip", *arguments, cwd=cwd)
