"""Run the command line as a user does: a process of its own."""

import json
import os
import subprocess
import sys
from typing import Any


def serenity(*arguments: object, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Return the finished process of ``serenity ARGUMENTS``."""
    return subprocess.run(
        [sys.executable, "-m", "tvm_serenity.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, "COLUMNS": "100"},
        check=False,
    )


def answer(*arguments: object) -> Any:
    """Return the JSON that ``serenity ARGUMENTS --json`` prints; it must succeed."""
    found = serenity(*arguments, "--json")
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)
