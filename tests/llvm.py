"""The target of kernels whose results tests compare, not their speed."""

import pytest

from tests.cases import scaled

tvm = pytest.importorskip("tvm")

TARGET = tvm.target.Target(scaled({"kind": "llvm", "opt-level": 0}, {"kind": "llvm"}))
"""LLVM without optimisations, which compiles in a third of the time; with them when exhaustive.

Both have the IR of the same kernels. Tests of targets, passes of LLVM and speed name their own.
"""
