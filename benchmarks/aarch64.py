"""Instructions of networks on AArch64, ours beside stock TVM's: QEMU counts them, kernel by kernel.

    python benchmarks/aarch64.py [MODEL ...]

Kernels are cross-compiled and run by QEMU's user mode on random inputs, once and twice: the
difference is one run. A plugin, compiled here, counts instructions. They are no cycles.
"""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data" / "models"
MODELS = (
    "mlperf_tiny/kws_dscnn_int8.tflite",
    "mlperf_tiny/ic_resnet8_int8.tflite",
    "mlperf_tiny/ad01_int8.tflite",
    "tflm/person_detect.tflite",
    "misc/mobilenet_v1_0.25_128_quant.tflite",
    "swiftnet/swiftnet_vww_224_uint8.tflite",
    "mlperf_tiny/kws_dscnn_fp32.tflite",
    "mlperf_tiny/ic_resnet8_fp32.tflite",
)
TARGETS = {
    "NEON": ["+neon"],
    "dot products": ["+neon", "+dotprod"],
    "I8MM": ["+neon", "+dotprod", "+i8mm"],
}
PLUGIN = r"""
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
struct qemu_plugin_tb;
typedef uint64_t Id;
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern void qemu_plugin_register_vcpu_tb_trans_cb(Id, void (*)(Id, struct qemu_plugin_tb *));
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, int, void *,
                                                     uint64_t);
extern void qemu_plugin_register_atexit_cb(Id, void (*)(Id, void *), void *);
int qemu_plugin_version = 1;
static uint64_t count;
static void translated(Id id, struct qemu_plugin_tb *block) {
  (void)id;
  qemu_plugin_register_vcpu_tb_exec_inline(block, 0, &count, qemu_plugin_tb_n_insns(block));
}
static void ended(Id id, void *none) {
  (void)id, (void)none;
  fprintf(stderr, "%" PRIu64 "\n", count);
}
int qemu_plugin_install(Id id, const void *info, int argc, char **argv) {
  (void)info, (void)argc, (void)argv;
  qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
  qemu_plugin_register_atexit_cb(id, ended, NULL);
  return 0;
}
"""


def plugin(folder: Path) -> Path:
    """Compile the plugin that counts instructions."""
    source, made = folder / "count.c", folder / "count.so"
    source.write_text(PLUGIN)
    words = ["gcc", "-shared", "-fPIC", "-O1", "-o", str(made), str(source)]
    subprocess.run(words, check=True)
    return made


def counted(mod: Any, target: Any, inputs: Sequence[Any], counter: Path) -> int:
    """Return the instructions of a module of kernels on inputs."""
    from tests.conformance.relax_forms import evaluated
    from tests.kernels.programs import Program
    from tvm_serenity import compat

    kernels = {g.name_hint: f for g, f in mod.functions.items() if compat.is_prim_func(f)}
    with tempfile.TemporaryDirectory() as made:
        program = Program(kernels, target, Path(made))
        program.emulator = (*program.emulator, "-plugin", str(counter))
        total = [0]

        def run(kernel: Any, _given: Any, arguments: Sequence[Any], types: Any) -> Any:
            words = [str(program.path), str(program.numbers[kernel.name_hint])]
            once, few = program.ran([*words, "1"], arguments, types)
            _, more = program.ran([*words, "2"], arguments, types)
            total[0] += int(more.splitlines()[-1]) - int(few.splitlines()[-1])
            return once

        evaluated(mod, inputs, run)
    return total[0]


def main() -> None:
    """Print the table."""
    sys.path.insert(0, str(ROOT))
    import tvm

    from tvm_serenity.commands.models import source
    from tvm_serenity.relax.pipeline import Steps, prepared_for_host
    from tvm_serenity.runtime.build import stock_kernels
    from tvm_serenity.validation.network_inputs import random_inputs

    print("| model | target | ours | stock TVM | ours / it |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as made:
        counter = plugin(Path(made))
        for model in sys.argv[1:] or MODELS:
            opened = source(str(DATA / model))
            module = opened.module("off")
            inputs = random_inputs(module)
            for name, features in TARGETS.items():
                target = tvm.target.Target(
                    {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mattr": features}
                )
                kernels = prepared_for_host(opened.module(), Steps(), target).kernels
                ours = counted(kernels, target, inputs, counter)
                stock = counted(stock_kernels(module, target), target, inputs, counter)
                cells = f"{ours:,} | {stock:,} | {ours / stock:.3f}"
                print(f"| {Path(model).name} | {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
