"""Networks of Keras and PyTorch with fresh seeds through the commands: equal, or refused.

    KERAS_PYTHON=PYTHON python benchmarks/outside_networks.py [--keras 40] [--torch 40] [--seed N]
        [--keep FOLDER] [--json FILE]
    python benchmarks/outside_networks.py --files FOLDER [NAME...]

Each network is drawn and converted by ``keras_layers.py`` (with the Python that ``KERAS_PYTHON``
names, which has tensorflow) or ``torch_layers.py``; ``--files`` takes model files that are there.
Each goes through schedule, explain, rows, compile, build and verify, in a child process with a time
limit. A command is *equal* (its result is that of the model's own runtime), *ran*, *no reference*
(that runtime refuses the model), *refused* with its line, *does not fit*, *wrong* or *crashed*.
Exit status 1 where one is wrong or crashed, or a refusal names neither operator nor tensor.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from models import BOARD, FAILURES, Verdict, failure

from tests.cli.run import serenity
from tests.conformance.child import Child, Death

HERE = Path(__file__).resolve().parent
LIMIT_S = 1500.0
"""Seconds for all commands on one network."""
COMMANDS: dict[str, Sequence[str]] = {
    "schedule": ("schedule", "MODEL", "--time-limit", "20"),
    "explain": ("explain", "MODEL"),
    "rows": ("rows", "MODEL", "--time-limit", "20"),
    "compile": ("compile", "MODEL", "--check"),
    "build": ("build", "MODEL", "--board", BOARD, "-o", "made"),
    "verify": ("verify", "made", "--host"),
}


def verdict(command: str, found: Any) -> Verdict:
    """What a finished command says of the network."""
    if found.returncode != 0 or "Traceback" in found.stderr:
        return failure(found.returncode, found.stdout, found.stderr)
    printed = json.loads(found.stdout)
    if command != "compile":
        return Verdict("equal" if command in ("build", "verify") else "ran", "")
    reference = printed["checks"]["reference_runtime"]
    if reference["outcome"] == "absent":
        return Verdict("no reference", str(reference["reason"]))
    return Verdict("equal", reference["second"] or reference["outcome"])


def through(path: str) -> dict[str, Verdict]:
    """What each command says of a model file; nothing is verified that was not built."""
    said: dict[str, Verdict] = {}
    with tempfile.TemporaryDirectory() as folder:
        for command, words in COMMANDS.items():
            if command == "verify" and said["build"].word != "equal":
                continue
            named = [path if word == "MODEL" else word for word in words]
            begun = time.monotonic()
            found = verdict(command, serenity(*named, "--json", cwd=Path(folder)))
            said[command] = Verdict(found.word, found.said or f"{time.monotonic() - begun:.0f} s")
    return said


def written(chosen: argparse.Namespace, folder: Path) -> list[Path]:
    """The model files of all networks, drawn and converted."""
    keras = os.environ.get("KERAS_PYTHON")
    writers = [
        (keras, "keras_layers.py", chosen.keras),
        (sys.executable, "torch_layers.py", chosen.torch),
    ]
    for python, script, count in writers:
        if python is None or not count:
            print(f"{script}: left out" + ("" if python else " (KERAS_PYTHON names no Python)"))
            continue
        words = [python, str(HERE / script), str(count), str(chosen.seed), str(folder)]
        first = 0
        while first < count:
            run = subprocess.run([*words, str(first)], capture_output=True, text=True)
            begun = sum(not line.startswith(" ") for line in run.stdout.splitlines())
            print(run.stdout, end="", flush=True)
            first = first + begun if run.returncode else count
            if run.returncode > 0 or not begun:
                raise RuntimeError(f"{script} failed: {run.stderr[-2000:]}")
            if run.returncode:
                print(f"    the converter died of signal {-run.returncode}")
    return sorted(p for p in folder.rglob("*.*") if p.suffix in (".tflite", ".onnx"))


def line(name: str, said: dict[str, Verdict]) -> str:
    """A network in one line: alike commands together, and what was refused."""
    words = {command: found.word for command, found in said.items()}
    reasons = {f.said for f in said.values() if f.word not in ("equal", "ran")}
    shown = ", ".join(f"{command} {word}" for command, word in words.items())
    return f"{name}: {shown}" + "".join(f"\n    {reason}" for reason in sorted(reasons))


def unclear(found: Verdict) -> bool:
    """Whether a refusal names neither an operator nor a tensor."""
    words = ("operator", "tensor", "output", "input", "Operator")
    return found.word == "refused" and not any(word in found.said for word in words)


def bad(said: dict[str, Verdict]) -> bool:
    """Whether a command is wrong, has crashed, or refuses without saying what."""
    return any(found.word in FAILURES or unclear(found) for found in said.values())


def table(rows: dict[str, dict[str, Verdict]]) -> str:
    """How the commands ended, by the kind of network."""
    head = "| networks | command | " + " | ".join(("equal", "ran", "refused", "others")) + " |"
    lines = [head, "|---|---|---|---|---|---|"]
    kinds = Counter(kind_of(name) for name in rows)
    for kind, total in sorted(kinds.items()):
        for command in COMMANDS:
            found = [
                s[command].word for n, s in rows.items() if kind_of(n) == kind and command in s
            ]
            counts = Counter(found)
            numbers = [str(counts.pop(word, 0)) for word in ("equal", "ran", "refused")]
            others = ", ".join(f"{count} {word}" for word, count in counts.items())
            lines.append(f"| {total} {kind} | {command} | {' | '.join(numbers)} | {others} |")
    return "\n".join(lines)


def kind_of(name: str) -> str:
    """The format and numbers of a network, off its name."""
    path = Path(name)
    return f"{path.suffix[1:]} {path.stem.rpartition('-')[2]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keras", type=int, default=40)
    parser.add_argument("--torch", type=int, default=40)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100_000)
    parser.add_argument("--keep", type=Path, help="write the model files here")
    parser.add_argument("--files", type=Path, help="model files that are there already")
    parser.add_argument("--json", type=Path)
    parser.add_argument("names", nargs="*", help="only files whose name holds one of these")
    chosen = parser.parse_args()
    rows: dict[str, dict[str, Verdict]] = {}
    with tempfile.TemporaryDirectory() as made, Child(through, LIMIT_S) as child:
        print(f"seed {chosen.seed}")
        folder = chosen.files or chosen.keep or Path(made)
        found = written(chosen, folder) if chosen.files is None else sorted(folder.rglob("*.*"))
        for path in found:
            name = path.relative_to(folder).as_posix()
            wanted = not chosen.names or any(part in name for part in chosen.names)
            if path.suffix not in (".tflite", ".onnx") or not wanted:
                continue
            answer = child.ask(str(path.resolve()))
            died = isinstance(answer, Death)
            rows[name] = {"all": Verdict("crashed", answer.reason)} if died else answer
            print(line(name, rows[name]), flush=True)
    print(table(rows))
    if chosen.json is not None:
        named = {n: {c: asdict(v) for c, v in s.items()} for n, s in rows.items()}
        chosen.json.write_text(json.dumps(named, indent=1) + "\n")
    return int(any(bad(said) for said in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
