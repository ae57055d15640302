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
from glob import glob
from pathlib import Path

from tests.cli.run import in_process, serenity
from tests.docs.pages import ROOT

SHELL = """#!/bin/sh
exec "{python}" -m tvm_serenity.cli "$@"
"""
SPECIAL = frozenset("|&;<>()$`~{}[]\\'\"")
"""Characters that only a shell understands."""


def run_shell(text: str, folder: Path) -> str:
    """Return what the lines of a shell's block print in ``folder``."""
    commands = []
    for line in text.replace("\\\n", " ").splitlines():
        words = _plain_words(line)
        if words is None or (words and words[0] != ("serenity", False)):
            return _in_a_shell(text, folder)
        commands.append(words[1:])
    printed = ""
    for words in filter(None, commands):
        found = [
            name for word, wild in words for name in (_names(word, folder) if wild else [word])
        ]
        done = serenity(*found, cwd=folder, columns=300)
        assert done.returncode == 0, done.stderr
        printed += done.stdout
    return printed


def _plain_words(line: str) -> list[tuple[str, bool]] | None:
    """Return the words of a line, and which are patterns of names; None: it needs a shell."""
    words = []
    for token in shlex.split(line, comments=True, posix=False):
        quote, inside = token[0], token[1:-1]
        if quote in "'\"" and token[-1] == quote and not {quote, "$", "`", "\\"} & set(inside):
            words.append((inside, False))
        elif SPECIAL & set(token):
            return None
        else:
            words.append((token, bool({"*", "?"} & set(token))))
    return words


def _names(pattern: str, folder: Path) -> list[str]:
    """Return the names of files that a shell puts for a pattern: itself where there are none."""
    return sorted(glob(pattern, root_dir=folder)) or [pattern]


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
