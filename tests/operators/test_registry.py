"""Every operator is registered once, and none needs TVM to be looked up."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

from tvm_serenity import operators
from tvm_serenity.operators import MODULES, OPERATORS, MemoryUse, operator

_SHARED = """
    __init__ clamped convolutions dynamic_convolutions dynamic_range dynamic_transposed extents
    functions inferred needs pairs parts picked pieces plain record reductions running
    sample_bounds scene sharing stored table_bounds weighted windows
"""
SHARED = set(_SHARED.split())
"""Files that declare no operator."""


def test_every_file_is_registered() -> None:
    files = {path.stem for path in Path(operators.__path__[0]).glob("*.py")} - SHARED
    assert files == set(MODULES)
    assert list(MODULES) == sorted(MODULES)


def test_every_kind_is_declared_once() -> None:
    declared = [
        kind
        for name in MODULES
        for record in import_module(f"tvm_serenity.operators.{name}").OPERATORS
        for kind in record.kinds
    ]
    assert len(declared) == len(set(declared)) == len(OPERATORS)


def test_unknown_kinds_have_no_facts() -> None:
    made_up = operator("MADE_UP")
    assert made_up.storage.use is MemoryUse.OWN
    assert made_up.rows.needs is None
    assert made_up.storage.scratch is None


def test_operators_need_no_tvm() -> None:
    said = "import sys, tvm_serenity.operators; print([m for m in sys.modules if 'tvm' == m])"
    found = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
