"""Ctrl-C at many moments of a command: seconds until it has ended, and where it was.

    python benchmarks/interrupts.py [--ops N] [--limit S] [--every S] [--commands NAME ...]

Each command on a generated file, started anew for every moment until one is past its end; CPU
seconds beside wall time, as machines are shared. Where: the innermost calls when Ctrl-C came.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.limits import COMMANDS, WORDS, file_of

WAITED_S = 0.5
"""The maximum seconds that a user waits after Ctrl-C."""

SHOWN = """
import faulthandler, signal, sys
faulthandler.register(signal.SIGUSR1, file=open(sys.argv.pop(1), "w"), all_threads=False)
from tvm_serenity.cli import run
run()
"""
"""The command line, writing where it is when asked to."""


class Ended(NamedTuple):
    """How a command ended after Ctrl-C."""

    status: int
    seconds: float
    cpu_s: float
    where: str


def interrupts(commands: Sequence[str], ops: int, limit: int, every: float) -> None:
    """A row for each moment of each command; the longest of all at the end."""
    print("| command | after s | seconds | CPU s | status | where |")
    print("|" + "---|" * 6)
    longest = {}
    with tempfile.TemporaryDirectory() as folder:
        for command in commands:
            file = file_of(Path(folder), COMMANDS[command][0], ops)
            words = [command, str(file), *WORDS.get(command, ()), "--time-limit", str(limit)]
            for after, ended in _moments(words, every, Path(folder) / "where"):
                longest[command] = max(longest.get(command, 0.0), ended.cpu_s)
                print(
                    f"| {command} | {after:.1f} | {ended.seconds:.2f} | {ended.cpu_s:.2f} | "
                    f"{ended.status} | {ended.where} |",
                    flush=True,
                )
    for command, cpu_s in longest.items():
        held = "yes" if cpu_s <= WAITED_S else "no"
        print(f"{command}: at most {cpu_s:.2f} CPU seconds; within {WAITED_S}: {held}")


def _moments(words: Sequence[str], every: float, noted: Path) -> Iterator[tuple[float, Ended]]:
    after = every
    while (ended := _interrupted(words, after, noted)) is not None:
        yield after, ended
        after += every


def _interrupted(words: Sequence[str], after: float, noted: Path) -> Ended | None:
    """How a command ends that is interrupted so many seconds after its start; None if it had."""
    command = [sys.executable, "-c", SHOWN, str(noted), *words]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(after)
        return None
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGUSR1)
    time.sleep(0.01)
    began, used = time.monotonic(), _cpu_s(process.pid)
    process.send_signal(signal.SIGINT)
    if process.returncode is not None:
        return None
    _, status, usage = os.wait4(process.pid, 0)
    seconds, cpu_s = time.monotonic() - began, usage.ru_utime + usage.ru_stime - used
    process.returncode = os.waitstatus_to_exitcode(status)
    return Ended(process.returncode, seconds, cpu_s, _innermost(noted.read_text()))


def _cpu_s(pid: int) -> float:
    """The CPU seconds that a process has used, from Linux's /proc."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _innermost(traceback: str) -> str:
    lines = [line.split('"') for line in traceback.splitlines() if '"' in line]
    calls = [f"{Path(file).name}{rest.removeprefix(', line ')}" for _, file, rest in lines[:3]]
    return " < ".join(call.replace(" in ", ":") for call in calls)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ops", type=int, default=1_000_000)
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--every", type=float, default=2.0)
    parser.add_argument("--commands", nargs="+", default=list(COMMANDS), choices=list(COMMANDS))
    chosen = parser.parse_args()
    interrupts(chosen.commands, chosen.ops, chosen.limit, chosen.every)


if __name__ == "__main__":
    main()
