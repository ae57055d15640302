"""Traversals of a kernel's nodes with callbacks that may raise.

TVM calls back from C++ for each node. An exception that passes through such a call corrupts the
heap (apache-tvm 0.27, apache-tvm-ffi 0.1: "malloc_consolidate" some time later). These functions
store the first exception, skip the rest of the traversal, and raise after C++ has returned. No
other module calls ``tvm_ffi.structural_map`` and ``structural_walk``.
"""

from collections.abc import Callable
from typing import Any

import tvm_ffi
from tvm import tirx


def mapped(node: tirx.Stmt | tirx.Expr, kind: type[Any], change: Callable[[Any], Any]) -> Any:
    """Return ``node`` with each part of type ``kind`` replaced by ``change(part)``."""
    kept = _Kept(change)
    made = tvm_ffi.structural_map(node, (kind, lambda part: kept(part, part)))
    kept.release()
    return made


def walk(node: tirx.Stmt | tirx.Expr, kind: type[Any], visit: Callable[[Any], Any]) -> None:
    """Call ``visit`` with each part of ``node`` of type ``kind``, inner parts first."""
    kept = _Kept(visit)

    def seen(part: tirx.Stmt | tirx.Expr) -> None:
        kept(part, None)

    tvm_ffi.structural_walk(node, (kind, seen))
    kept.release()


def walk_down(node: tirx.Stmt, kind: type[Any], enter: Callable[[Any], bool]) -> None:
    """Call ``enter`` with parts of type ``kind``, outer parts first.

    If it returns False, parts inside of that part are skipped.
    """
    kept = _Kept(enter)

    def seen(part: tirx.Expr) -> Any:
        advance, skip = tvm_ffi.WalkResult.ADVANCE, tvm_ffi.WalkResult.SKIP
        return advance if kept(part, False) else skip

    tvm_ffi.structural_walk(node, (kind, seen), order="pre")
    kept.release()


def parts(node: tirx.Stmt | tirx.Expr, kind: type[Any]) -> list[Any]:
    """Return all parts of ``node`` of type ``kind``, inner parts first."""
    found: list[Any] = []
    walk(node, kind, found.append)
    return found


def same(one: Any, two: Any) -> bool:
    """Return whether two expressions, or sequences of them, are structurally equal."""
    return bool(tvm_ffi.structural_equal(one, two))


class _Kept:
    """A callback that never raises; ``release`` raises the stored exception."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function
        self.error: BaseException | None = None

    def __call__(self, part: tirx.Stmt | tirx.Expr, otherwise: Any) -> Any:
        if self.error is not None:
            return otherwise
        try:
            return self.function(part)
        except BaseException as error:  # also KeyboardInterrupt: no exception may pass through C++
            self.error = error
            return otherwise

    def release(self) -> None:
        if self.error is not None:
            raise self.error
