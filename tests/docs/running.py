"""Commands and code of the documentation, run as a reader would: each in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import ROOT

SHELL = """#!/bin/sh
exec "{python}" -m tvm_serenity.cli "$@"
"""


def run(command: list[str], folder: Path) -> str:
    """What a command prints in ``folder``, where ``serenity`` is the command line under test."""
    program = folder / "bin" / "serenity"
    if not program.exists():
        program.parent.mkdir()
        program.write_text(SHELL.format(python=sys.executable))
        program.chmod(0o755)
    path = os.pathsep.join([str(program.parent), os.environ["PATH"]])
    python_path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    found = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTHONPATH": python_path, "COLUMNS": "300"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    return found.stdout
