"""Faults planted in what makes firmware, and who finds each: ``build``, or only ``verify``.

    python benchmarks/firmware_faults.py
    python benchmarks/firmware_faults.py --only library --json faults.json

Prints a line for each fault of ``tests/firmware/faults.py``, and how many are found.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.firmware.faults import FAULTS, caught


def result_of(name: str) -> dict[str, Any]:
    """Return the command that finds a fault, its message, and the seconds of build and verify."""
    fault, begun = FAULTS[name], time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        by, said = caught(fault, Path(folder), patch)
    seconds = time.perf_counter() - begun
    return {"name": name, "kind": fault.kind, "by": by, "said": said, "seconds": seconds}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="faults of this kind, or of this name")
    parser.add_argument("--json", type=Path, help="write the results here")
    given = parser.parse_args()
    rows = []
    for name, fault in FAULTS.items():
        if given.only in (None, fault.kind, name):
            rows.append(result_of(name))
            row = rows[-1]
            print(
                f"{row['kind']:10} {name:40} {row['by'] or 'NOT FOUND':9} {row['said']}", flush=True
            )
    by_build = sum(row["by"] == "build" for row in rows)
    every = sum(bool(row["by"]) for row in rows)
    print(f"{len(rows)} faults: build finds {by_build}, build and verify {every}")
    if given.json is not None:
        given.json.write_text(json.dumps(rows, indent=2))
    if every < len(rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
