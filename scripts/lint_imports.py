"""Runs import-linter on the sources, with the contracts of pyproject.toml.

An editable installation registers the package in several folders, which import-linter would read as
several packages. So the installation's import finder is removed first.
"""

import os
import sys
from pathlib import Path

from importlinter.cli import lint_imports_command

ROOT = Path(__file__).resolve().parents[1]

if __name__ == "__main__":
    os.chdir(ROOT)
    sys.meta_path[:] = [f for f in sys.meta_path if not type(f).__module__.startswith("_editable")]
    sys.path.insert(0, str(ROOT))
    lint_imports_command(["--no-cache", *sys.argv[1:]])
