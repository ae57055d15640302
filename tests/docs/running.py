"""Commands and code of the documentation, run as a reader would run them.

Lines that are plain ``serenity`` commands and snippets in Python run in this process; what uses
more of the shell runs in one.
"""

import os
import runpy
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

from tests.cli.run import in_process, serenity
from tests.docs.pages import ROOT

SHELL = """#!/bin/sh
exec "{python}" -m tvm_serenity.cli "$@"
"""
SPECIAL = frozenset("|&;<>()$`*?~{}'\"")
"""Characters that only a shell understands; quoted words are left to it as well."""


def run_shell(text: str, folder: Path) -> str:
    """Return what the lines of a shell's block print in ``folder``."""
    lines = text.replace("\\\n", " ").splitlines()
    words = [shlex.split(line, comments=True) for line in lines]
    plain = all(
        not found or (found[0] == "serenity" and not SPECIAL & set(line.split(" #")[0]))
        for line, found in zip(lines, words, strict=True)
    )
    if not plain:
        return _in_a_shell(text, folder)
    printed = ""
    for found in filter(None, words):
        done = serenity(*found[1:], cwd=folder, columns=300)
        assert done.returncode == 0, done.stderr
        printed += done.stdout
    return printed


def run_python(text: str, folder: Path) -> str:
    """Return what a snippet prints that is run as a script in ``folder``."""
    script = folder / "snippet.py"
    script.write_text(text)  # TVMScript reads its own source

    def ran() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runpy.run_path(str(script), run_name="__main__")

    done = in_process(ran, [str(script)], cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _in_a_shell(text: str, folder: Path) -> str:
    program = folder / "bin" / "serenity"
    if not program.exists():
        program.parent.mkdir()
        program.write_text(SHELL.format(python=sys.executable))
        program.chmod(0o755)
    path = os.pathsep.join([str(program.parent), os.environ["PATH"]])
    python_path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    found = subprocess.run(
        ["sh", "-eu", "-c", text],
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTHONPATH": python_path, "COLUMNS": "300"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    return found.stdout
