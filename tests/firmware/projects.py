"""Projects made once a session from the shared models, and the tools they need."""

import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tvm_serenity.boards import board
from tvm_serenity.firmware.emit.project import Layout, write_project
from tvm_serenity.firmware.emit.project import project as files_of
from tvm_serenity.firmware.memory import rooms
from tvm_serenity.firmware.program import Program
from tvm_serenity.firmware.result import REFERENCE, Project, load, packed
from tvm_serenity.firmware.toolchain import have

MODELS = Path(__file__).resolve().parents[3] / "shared" / "data" / "models"
KWS = "mlperf_tiny/kws_dscnn_int8.tflite"
VWW = "mlperf_tiny/vww_mobilenetv1_96_int8.tflite"
HELLO = "tflm/hello_world_int8.tflite"
HELLO_FLOAT = "tflm/hello_world_float.tflite"
SWIFTNET = "swiftnet/swiftnet_vww_224_uint8.tflite"

needs_board = pytest.mark.skipif(
    not have("make", "arm-none-eabi-gcc", "qemu-system-arm"),
    reason="apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm",
)
needs_host = pytest.mark.skipif(not have("make", "cc"), reason="needs make and a C compiler")


def model(name: str) -> Path:
    """Return the path of a shared model; the test is skipped where it is absent."""
    path = MODELS / name
    if not path.is_file():
        pytest.skip(f"the shared data is not at {path}")
    return path


@functools.cache
def compiled(name: str, target: str, **settings: Any) -> Any:
    """Return a shared model compiled for a board."""
    from tvm_serenity.firmware.settings import Settings
    from tvm_serenity.firmware.tir.program import compiled as compile_module
    from tvm_serenity.frontends.relax import to_relax

    found = board(target)
    module = to_relax(str(model(name)))
    return compile_module(module, "net", found, rooms(found), Settings(**settings))


@functools.cache
def reference(name: str, target: str, **settings: Any) -> bytes:
    """Return the reference of a compiled model."""
    from tvm_serenity.firmware.tir.reference import reference as computed

    return packed(computed(compiled(name, target, **settings), 0, str(model(name))))


def project(directory: Path, name: str, target: str, **settings: Any) -> Project:
    """Write the project of a model to ``directory``; ``change`` may replace its program."""
    change = settings.pop("change", None)
    external = settings.pop("external_arena", False)
    made = compiled(name, target, **settings)
    program: Program = made.program if change is None else change(made.program)
    files = files_of(program, Layout(board(target), external_arena=external))
    files[REFERENCE] = reference(name, target, **settings)
    write_project(files, directory, force=True)
    return load(directory)


def moved(program: Program, tensor: int, offset: int) -> Program:
    """Return ``program`` with one tensor at another offset."""
    places = list(program.places)
    places[tensor] = replace(places[tensor], offset_bytes=offset)
    return replace(program, places=tuple(places))
