"""Int8 models on RISC-V in QEMU, beside TensorFlow Lite Micro on the same core.

    python benchmarks/riscv.py [--tflm ELF] [--cmsis-nn ELF] [MODEL ...]

Every tensor of every run is compared with stock TVM's when it is written, and every output with
LiteRT's. RAM is the arena, as planned
and as the linker has it, the measured stack, data and bss. Instructions are those
that QEMU emulated for one run: not cycles. ``--tflm``: a program for rv32imc that is linked with
``link.ld`` and the port of a project, runs the model ``input0.bin`` on ``input1.bin``, writes
``output0.bin`` and reports "ticks" of one run, and "arena" and "stack" in bytes. ``--cmsis-nn``:
the same program with CMSIS-NN's kernels in plain C.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from tvm_serenity.architectures import architecture
from tvm_serenity.firmware import Settings, build
from tvm_serenity.firmware.board.execute import ICOUNT_SHIFT, emulated
from tvm_serenity.firmware.board.sizes import sizes
from tvm_serenity.firmware.check.verify_report import report
from tvm_serenity.firmware.result import Project

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "models"
MODELS = {
    "KWS": "mlperf_tiny/kws_dscnn_int8.tflite",
    "VWW": "mlperf_tiny/vww_mobilenetv1_96_int8.tflite",
    "ResNet-8": "mlperf_tiny/ic_resnet8_int8.tflite",
    "ResNet large": "mlperf_tiny/ic_resnet_large_int8.tflite",
    "AD": "mlperf_tiny/ad01_int8.tflite",
    "SWW": "mlperf_tiny/sww_streaming_int8.tflite",
    "person_detect": "tflm/person_detect.tflite",
    "micro_speech": "tflm/micro_speech_quantized.tflite",
    "hello_world": "tflm/hello_world_int8.tflite",
    "keyword_scrambled": "tflm/keyword_scrambled_8bit.tflite",
    "MLTK keywords": "mltk/mltk_keyword_spotting_on_off_v3.tflite",
    "MCUNet VWW": "mcunet/mcunet_vww_int8.tflite",
}
CORES = ("rv32imc", "rv32imac")
HEAD = (
    "| model | RAM: arena | stack | data, bss | flash: code | constants | tensors | all "
    "| instructions: rv32imc | rv32imac | TFLM | ratio | with CMSIS-NN | ratio |\n|" + "---|" * 14
)


def built(path: str, core: str) -> tuple[Project, dict[str, Any]]:
    """The project of a model on a core, and what verifying it says."""
    with tempfile.TemporaryDirectory() as directory:
        settings = Settings(name="net", output=Path(directory) / "project", check=False)
        made = build(path, f"{core}:4M:4M", settings)
        found = report(made, on_host=core == CORES[0])
        linked = sizes(made.folder / "build" / "firmware.elf")
        found["planned"] = linked.arena_bytes == sum(made.metadata["arena_bytes"].values())
        return made, found


def tflm(elf: Path, path: Path, made: Project) -> tuple[dict[str, int], bool]:
    """What TFLM reports of a run on the project's inputs, and whether its output is the same."""
    emulator = architecture("riscv").toolchain.emulator
    command = [*emulated(emulator, "virt"), "-icount", f"shift={ICOUNT_SHIFT}", "-kernel"]
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        (folder / "input0.bin").write_bytes(path.read_bytes())
        (folder / "input1.bin").write_bytes(made.reference_inputs()[0].tobytes())
        done = subprocess.run(
            [*command, str(elf.resolve())], cwd=folder, capture_output=True, text=True, check=False
        )
        lines = (line.split() for line in (done.stdout + done.stderr).splitlines())
        found = {words[0]: int(words[1]) for words in lines if words[1:] and words[1].isdigit()}
        if found.get("status") != 0:
            raise SystemExit(f"{path.name}: TFLM: {(done.stdout + done.stderr).strip()[-200:]}")
        wanted = np.ascontiguousarray(made.reference["output0"]).tobytes()
        return found, (folder / "output0.bin").read_bytes() == wanted


def row(name: str, path: Path, others: dict[str, Path]) -> dict[str, Any]:
    """The figures of one model."""
    found, made = {}, None
    for core in CORES:
        made, found[core] = built(str(path), core)
    assert made is not None
    first = found[CORES[0]]
    same = all(
        one["identical"] and one["qemu"]["litert_max_abs_error"] == 0 and one["planned"]
        for one in found.values()
    )
    result = {
        "model": name,
        **first["ram"],
        **first["flash"],
        "tensors": first["qemu"]["tensors"],
        "identical": same,
        **{core: one["instructions"] for core, one in found.items()},
    }
    for other, elf in others.items():
        theirs, equal = tflm(elf, path, made)
        result[other] = round(theirs["ticks"] / 2**ICOUNT_SHIFT)
        result[f"{other}_ram_bytes"] = theirs["arena"] + theirs["stack"]
        result[f"{other}_identical"] = equal
    return result


def beside(one: dict[str, Any], other: str) -> str:
    """The instructions of another program, and the ratio of ours to them."""
    if other not in one:
        return "- | -"
    note = "" if one[f"{other}_identical"] else " (another output)"
    return f"{one[other]:,}{note} | {one['rv32imc'] / one[other]:.2f}"


def text(one: dict[str, Any]) -> str:
    """A row of the table."""
    return (
        f"| {one['model']} | {one['arena_bytes']:,} | {one['stack_bytes']:,} "
        f"| {one['data_bytes'] + one['bss_bytes']:,} | {one['code_bytes']:,} "
        f"| {one['const_bytes']:,} | {one['tensors']} "
        f"| {'identical' if one['identical'] else 'DIFFERENT'} | {one['rv32imc']:,} "
        f"| {one['rv32imac']:,} | {beside(one, 'tflm')} | {beside(one, 'cmsis_nn')} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--tflm", type=Path)
    parser.add_argument("--cmsis-nn", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    given = {"tflm": options.tflm, "cmsis_nn": options.cmsis_nn}
    others = {name: elf for name, elf in given.items() if elf is not None}
    print(HEAD)
    rows = []
    for name in options.models:
        rows.append(row(name, DATA / MODELS[name], others))
        print(text(rows[-1]), flush=True)
    for other in others:
        ratios = [one["rv32imc"] / one[other] for one in rows]
        print(f"ratio to {other}: median {median(ratios):.2f}, worst {max(ratios):.2f}")
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
