"""The target of kernels whose results tests compare, not their speed."""

from typing import Any

from tests.cases import scaled

TARGET: Any = scaled({"kind": "llvm", "opt-level": 0}, "llvm")
"""LLVM without optimisations, which compiles in a third of the time; with them when exhaustive.

Both have the IR of the same kernels. Tests of targets, passes of LLVM and speed name their own.
"""
