"""Projects built once a session from the shared models, and the tools they need."""

import functools
from pathlib import Path
from typing import Any

import pytest

from tvm_serenity.architectures import architecture
from tvm_serenity.boards import Board
from tvm_serenity.firmware.board.toolchain import have
from tvm_serenity.firmware.emit.project import write_files
from tvm_serenity.firmware.result import Project, load
from tvm_serenity.firmware.settings import Settings

MODELS = Path(__file__).resolve().parents[3] / "shared" / "data" / "models"
AD = "mlperf_tiny/ad01_int8.tflite"
KWS = "mlperf_tiny/kws_dscnn_int8.tflite"
VWW = "mlperf_tiny/vww_mobilenetv1_96_int8.tflite"
HELLO = "tflm/hello_world_int8.tflite"
HELLO_FLOAT = "tflm/hello_world_float.tflite"
SWIFTNET = "swiftnet/swiftnet_vww_224_uint8.tflite"
TRANSPOSED = "wild/tflm_seanet_transpose_conv_transpose_conv4.tflite"

needs_board = pytest.mark.skipif(
    not have("make", "arm-none-eabi-gcc", "qemu-system-arm"),
    reason="apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm",
)
needs_riscv = pytest.mark.skipif(
    not have("make", *architecture("riscv").tools),
    reason=f"apt-get install {' '.join(architecture('riscv').toolchain.packages.values())}",
)
needs_host = pytest.mark.skipif(not have("make", "cc"), reason="needs make and a C compiler")


def model(name: str) -> Path:
    """Return the path of a shared model; the test is skipped where it is absent."""
    path = MODELS / name
    if not path.is_file():
        pytest.skip(f"the shared data is not at {path}")
    return path


def build(name: str, target: Board | str, **settings: Any) -> Project:
    """Return a shared model built for a board; comparing is left to the test."""
    from tvm_serenity.firmware import build as firmware

    chosen = Settings(name="net", check=False, **settings)
    project: Project = firmware(str(model(name)), target, chosen)
    return project


built = functools.cache(build)


def project(directory: Path, name: str, target: str, **settings: Any) -> Project:
    """Write the project of a model to ``directory``."""
    write_files(built(name, target, **settings).files, directory)
    return load(directory)
