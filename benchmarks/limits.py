"""Commands under limits: seconds from when the file is read until the command has ended.

    python benchmarks/limits.py [--ops N ...] [--limits S ...]

Each command on models, and on generated files of each size, under limits of 1, 10 and 60 seconds
(the smallest size without the longest limit); CPU seconds beside, as machines are shared: "held"
says so of wall time, and "CPU" where that alone was within the limit. Of ``compile``, which makes
kernels between its searches, what the searches took.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.large_graphs import FAMILIES, trace
from tvm_serenity.graph import text

ALLOWED_SHARE, ALLOWED_S = 1.1, 0.5
"""A command may take so much of its limit and so many seconds more, from when its file is read."""

COMMANDS = {
    "schedule": ("layered", "training"),
    "rewrite": ("layered", "training"),
    "plan": ("plateau",),
    "offchip": ("layered",),
    "explain": ("training",),
    "report": ("training",),
}
"""Which kinds of files each command is given, at each size."""

MOST_OPS = {"report": 100_000}
"""The largest size at which a command is asked: no browser shows larger pages."""

WORDS = {
    "report": ("-o", "report.html"),
    "explain": ("--board", "nucleo-f767zi"),
    "offchip": (
        "--order-for",
        "traffic",
        "--capacity",
        "4K",
        "--block",
        "64",
        "--effort",
        "100000",
    ),
}
"""What else a command is asked, the same at each size."""

MOBILENET = "zoo:mobilenet-v2?layout=NHWC&quantised=1"
MODELS = (
    ("rows", MOBILENET),
    ("rows", "zoo:swiftnet"),
    ("rows", "zoo:nasnet-imagenet"),
    ("rewrite", "zoo:swiftnet-cell-a"),
    ("schedule", "zoo:swiftnet"),
    ("offchip", "zoo:swiftnet", "--orders", "given,rewrite,traffic", "--effort", "100000"),
    ("compile", "zoo:swiftnet-cell-a", "--rows", "1", "--no-check"),
    ("compile", "zoo:swiftnet", "--rewrite", "--no-check"),
)
"""Commands that read models."""

SHOWN = {"--rows", "--rewrite"}
"""The options that the row of a command shows."""

CLOCKED = """
import atexit, sys, time
from importlib import import_module
read = sys.argv.pop(1)

def note():
    with open(read, "a") as file:
        print(time.monotonic(), time.process_time(), file=file)

def noted(work, before=False):
    def run(*arguments, **options):
        if before:
            note()
        made = work(*arguments, **options)
        if not before:
            note()
        return made
    return run

class Searches:  # adds up the outermost blocks under a limit
    depth, wall, cpu = 0, 0.0, 0.0

    def __init__(self, block):
        self.block = block

    def __enter__(self):
        Searches.depth += 1
        if Searches.depth == 1:
            Searches.wall -= time.monotonic()
            Searches.cpu -= time.process_time()
        return self.block.__enter__()

    def __exit__(self, *error):
        Searches.depth -= 1
        if Searches.depth == 0:
            Searches.wall += time.monotonic()
            Searches.cpu += time.process_time()
        return self.block.__exit__(*error)

def totals():
    with open(read, "w") as file:
        print(Searches.wall, Searches.cpu, file=file)

if sys.argv[1] == "compile":
    home = import_module("tvm_serenity.search.deadline")
    home.within = lambda *limits, within=home.within: Searches(within(*limits))
    atexit.register(totals)
elif sys.argv[2].startswith("zoo:"):
    home = import_module("tvm_serenity.search.deadline")
    home.within = noted(home.within, before=True)
elif sys.argv[1] == "plan":
    home = import_module("tvm_serenity.plan")
    home.read_csv = noted(home.read_csv)
else:
    home = import_module("tvm_serenity.graph.text")
    home.parse = noted(home.parse)
from tvm_serenity.cli import run as command_line
command_line()
"""
"""The command line, writing when a file has been read (of a model: when its limit begins; of
``compile`` what its searches took)."""


def limits(sizes: Sequence[int], seconds: Sequence[int]) -> None:
    """Commands on models and on files of each size, under each limit; the longest by themselves."""
    print("| command | ops | limit s | seconds after reading | CPU s | status | held |")
    print("|" + "---|" * 7)
    held = []
    with tempfile.TemporaryDirectory() as folder:
        for words in MODELS:
            held += [_limited(words, words[1], limit, folder) for limit in seconds]
        for ops in sizes:
            for limit in seconds if ops > min(sizes) else seconds[:-1]:
                held += _at_size(Path(folder), ops, limit)
    print(f"\n{sum(held)} of {len(held)} held")


def _at_size(folder: Path, ops: int, limit: int) -> Iterator[bool]:
    for command, kinds in COMMANDS.items():
        for kind in kinds if ops <= MOST_OPS.get(command, ops) else ():
            words = [command, str(file_of(folder, kind, ops)), *WORDS.get(command, ())]
            yield _limited(words, f"{ops:,} {kind}", limit, str(folder))


def file_of(folder: Path, kind: str, ops: int) -> Path:
    """A text file of a graph, or the CSV of a trace."""
    file = folder / f"{kind}-{ops}.{'csv' if kind == 'plateau' else 'txt'}"
    if kind == "plateau":
        rows = (f"{b.name},{b.lower},{b.upper},{b.size_bytes}" for b in trace(ops))
        file.write_text("id,lower,upper,size\n" + "\n".join(rows) + "\n")
    else:
        file.write_text(text.dump(FAMILIES[kind](ops)))
    return file


def _limited(words: Sequence[str], what: str, limit: int, folder: str) -> bool:
    """The row of one command under a limit; whether it was held."""
    noted = Path(folder) / "read"
    noted.unlink(missing_ok=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", CLOCKED, str(noted), *words, "--time-limit", str(limit)]
    made = subprocess.run(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=folder, check=False
    )
    if not noted.exists():
        sys.exit(f"{' '.join(words)}: {made.stderr.decode()}")
    ended, after = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    took, cpu = map(float, noted.read_text().splitlines()[0].split())
    if words[0] != "compile":  # that says itself what its searches took
        used = sum(getattr(after, n) - getattr(before, n) for n in ("ru_utime", "ru_stime"))
        took, cpu = ended - took, used - cpu
    allowed = ALLOWED_SHARE * limit + ALLOWED_S
    held = took <= allowed
    shown = " ".join([words[0], *(word for word in words if word in SHOWN)])
    print(
        f"| {shown} | {what} | {limit} | {took:.2f} | {cpu:.2f} | {made.returncode} | "
        f"{'yes' if held else 'CPU' if cpu <= allowed else 'no'} |",
        flush=True,
    )
    return held


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ops", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--limits", type=int, nargs="+", default=[1, 10, 60])
    chosen = parser.parse_args()
    limits(chosen.ops, chosen.limits)


if __name__ == "__main__":
    main()
