"""The build backend: scikit-build-core, after a repair of symbolic links.

`tvm_serenity/passes` and `tvm_serenity/targets` are symbolic links to the folders `passes` and
`targets`, which an editable installation needs. If `core.symlinks` is false, Git checks out a text
file in place of each link. This backend replaces it by a link, or on Windows by a junction, which
needs no special rights.
"""

import os
import sys
from pathlib import Path
from typing import Any

from scikit_build_core import build as _backend
from scikit_build_core.build import (  # noqa: F401  what is not below is as it is there
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)

LINKS = ("passes", "targets")


def relink(root: Path) -> None:
    """Replace the text files that Git checked out in place of links by links."""
    for name in LINKS:
        link = root / "tvm_serenity" / name
        target = f"../{name}"
        if link.is_symlink() or not link.is_file() or link.read_text().strip() != target:
            continue
        link.unlink()
        try:
            os.symlink(target, link, target_is_directory=True)
        except OSError:
            if sys.platform != "win32":
                link.write_text(target)
                raise
            import _winapi

            _winapi.CreateJunction(str(root / name), str(link))


def build_wheel(*arguments: Any, **named: Any) -> str:
    """Build a wheel."""
    relink(Path.cwd())
    return _backend.build_wheel(*arguments, **named)


def build_editable(*arguments: Any, **named: Any) -> str:
    """Build an editable wheel."""
    relink(Path.cwd())
    return _backend.build_editable(*arguments, **named)
