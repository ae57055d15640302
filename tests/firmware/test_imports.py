"""Firmware of built-in networks needs the required packages only."""

import subprocess
import sys


def test_programs_are_made_without_the_importers_packages() -> None:
    blocked = "; ".join(f"sys.modules[{name!r}] = None" for name in ("tflite", "onnx", "torch"))
    code = f"import sys; {blocked}; import tvm_serenity.firmware.compile.driver, "
    code += "tvm_serenity.firmware.compile.model"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
