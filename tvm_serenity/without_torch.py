"""Keep TVM from importing PyTorch where it is installed: it takes three times as long as TVM."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def without_torch() -> Iterator[None]:
    """Hide PyTorch from what is imported in the block, unless it is imported already."""
    hidden = _Hidden()
    if "torch" not in sys.modules:
        sys.meta_path.insert(0, hidden)
    try:
        yield
    finally:
        if hidden in sys.meta_path:
            sys.meta_path.remove(hidden)


@contextmanager
def with_torch() -> Iterator[None]:
    """Show PyTorch to what is imported in the block, also inside of :func:`without_torch`."""
    hidden = [finder for finder in sys.meta_path if isinstance(finder, _Hidden)]
    for finder in hidden:
        sys.meta_path.remove(finder)
    try:
        yield
    finally:
        sys.meta_path[:0] = hidden


class _Hidden:
    """Hides PyTorch from every import, also from modules that search for it, such as SciPy."""

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> None:
        """Raise for PyTorch; leave all other modules to other finders."""
        if name == "torch":
            raise ModuleNotFoundError("PyTorch is not imported here", name="torch")
