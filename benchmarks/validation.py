"""What validation adds to `compile` and `build`: processor time with and without `--no-check`.

    python benchmarks/validation.py [--models DIR] [--rounds N] [NAME...]

For every model file whose name holds one of NAMEs (all without): user and system seconds of each
command and of its children, medians of N rounds that alternate, and what checks add in parts of
the time without them. Commands that refuse a model are left out.
"""

import os
import statistics
import subprocess
import sys
import tempfile

from models import BOARD, COMMAND, choosing, model_files


def seconds(arguments: list[str]) -> float | None:
    """Processor seconds of a command, None where its status is not 0."""
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _, status, used = os.wait4(made.pid, 0)
    return None if status else used.ru_utime + used.ru_stime


def compared(command: list[str], rounds: int) -> tuple[float, float] | None:
    """Median seconds with checks and without, None where a model is refused."""
    checked, plain = [], []
    for _ in range(rounds):
        for options, times in (([], checked), (["--no-check"], plain)):
            found = seconds([*command, *options])
            if found is None:
                return None
            times.append(found)
    return statistics.median(checked), statistics.median(plain)


def main() -> int:
    parser = choosing(__doc__)
    parser.add_argument("--rounds", type=int, default=1)
    chosen = parser.parse_args()
    print("| model | compile, s | unchecked | adds | build, s | unchecked | adds |")
    print("|---|---|---|---|---|---|---|")
    added: dict[str, list[float]] = {"compile": [], "build": []}
    for path in model_files(chosen):
        cells = [path.relative_to(chosen.models).as_posix()]
        for command in ("compile", "build"):
            options = ["--board", BOARD, "-o", "made"] if command == "build" else []
            found = compared([command, str(path), *options], chosen.rounds)
            if found is None:
                cells += ["", "", ""]
                continue
            added[command].append(found[0] / found[1] - 1)
            cells += [f"{found[0]:.1f}", f"{found[1]:.1f}", f"{100 * added[command][-1]:+.0f} %"]
        print(f"| {' | '.join(cells)} |", flush=True)
    for command, parts in added.items():
        if parts:
            middle, most = 100 * statistics.median(parts), 100 * max(parts)
            print(f"\n{command}: median {middle:+.0f} %, most {most:+.0f} % of {len(parts)} models")
    return 0


if __name__ == "__main__":
    sys.exit(main())
