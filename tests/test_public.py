"""The public surface: names that are what they say, however they are imported."""

import pydoc
import subprocess
import sys
from pathlib import Path

import pytest

import tvm_serenity
from tests.cli.run import NO_TORCH

WITHOUT_TVM = {
    "Graph",
    "__version__",
    "load",
    "peak_bytes",
    "peak_bytes_batch",
    "plan",
    "schedule",
}
SURFACE = WITHOUT_TVM | {
    "LeanKernels",
    "SerenityChannelsLast",
    "SerenityDilations",
    "SerenityFoldChannels",
    "SerenityLoops",
    "SerenityOptions",
    "SerenityPlanMemory",
    "SerenityQuantize",
    "SerenityRewrite",
    "SerenitySchedule",
    "SerenityTokensFirst",
}


def in_a_process(code: str) -> str:
    """What a program prints in a Python of its own."""
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_the_surface_is_pinned() -> None:
    assert set(tvm_serenity.__all__) == WITHOUT_TVM
    assert set(dir(tvm_serenity)) == SURFACE
    assert (Path(tvm_serenity.__file__).parent / "py.typed").exists()


def test_help_fits_a_few_screens() -> None:
    shown = pydoc.plain(pydoc.render_doc(tvm_serenity)).splitlines()
    assert len(shown) < 280  # seven screens of 40 lines; with the passes it had 1,838


def test_the_surface_of_firmware_is_pinned() -> None:
    """``build`` is the function, whatever was imported before."""
    code = """
from tvm_serenity.firmware import building, kept
from tvm_serenity import firmware
assert dir(firmware) == firmware.__all__ == ["Project", "Settings", "build", "load"]
assert all(callable(getattr(firmware, name)) for name in firmware.__all__)
"""
    in_a_process(code)


@pytest.mark.parametrize(
    "first",
    [
        "",
        "import tvm_serenity.schedule, tvm_serenity.plan",
        "from tvm_serenity.schedule import Options",
        "from tvm_serenity.cli import commands",
        "from tvm_serenity import load",
    ],
)
def test_schedule_and_plan_are_functions(first: str) -> None:
    last = "from tvm_serenity import plan, schedule; print(callable(plan), callable(schedule))"
    code = f"{first}\n{last}"
    assert in_a_process(code).split() == ["True", "True"]


def test_every_public_name_is_what_it_says() -> None:
    """A module of the same name, or a missing one, would be neither callable nor typed."""
    code = """
import inspect
import tvm_serenity
from tvm_serenity import Graph, load, peak_bytes, peak_bytes_batch, plan, schedule
for function in (load, peak_bytes, peak_bytes_batch, plan, schedule):
    assert inspect.isfunction(function), function
    assert "return" in function.__annotations__, function
assert inspect.isclass(Graph)
"""
    in_a_process(code)


def test_importing_the_package_loads_no_tvm() -> None:
    assert in_a_process("import sys, tvm_serenity\nprint('tvm' in sys.modules)").strip() == "False"


@pytest.mark.parametrize("imports", ["tvm_serenity\nimport tvm", "tvm\nimport tvm_serenity"])
def test_tvm_knows_the_pipeline_in_either_order(imports: str) -> None:
    pytest.importorskip("tvm")
    code = (
        f"{NO_TORCH}import {imports}\nfrom tvm import relax\nprint(relax.get_pipeline('serenity'))"
    )
    assert 'name="serenity"' in in_a_process(NO_TORCH + code)
