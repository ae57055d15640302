"""The kernel library with vector instructions: many layers in one program, against numpy."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import cases, sampled
from tests.cases import scaled as tier
from tests.firmware.library_form import library_forms
from tests.firmware.projects import HELLO, built, needs_board
from tests.firmware.test_library import Drawn, computed, drawn, rows_under
from tvm_serenity.firmware.emit.sources import board_port, kernels_header, kernels_source
from tvm_serenity.firmware.isa import Extensions
from tvm_serenity.firmware.kernels.candidates import candidates
from tvm_serenity.firmware.kernels.parts.calls import COUNT
from tvm_serenity.firmware.kernels.parts.layer import PlainLayer
from tvm_serenity.firmware.kernels.record import LibraryCall, NotCovered
from tvm_serenity.firmware.program import Kernel, Program
from tvm_serenity.firmware.select import library
from tvm_serenity.kernels.convolution import Convolution
from tvm_serenity.kernels.records import Pair, Requantise, Sum
from tvm_serenity.kernels.rows import RowKernel, RowParam
from tvm_serenity.operators.add import sum_of
from tvm_serenity.quantize.fixed import multiplier, scaled
from tvm_serenity.quantize.params import Affine

BOARD = "mps3-an547"
CORE = "-mcpu=cortex-m55 -mthumb -mfloat-abi=hard -DSERENITY_REGIONS"
FLAGS = (
    "-std=gnu11 -O2 -ffunction-sections -fdata-sections -Wall -Wextra -Wconversion -Wshadow -Werror"
)
LINK = "-nostartfiles --specs=nano.specs --specs=nosys.specs -Wl,--gc-sections -T link.ld -lm"
QEMU = f"qemu-system-arm -M {BOARD} -display none -monitor none -serial null"
SEMIHOSTING = "-semihosting-config enable=on,target=native -kernel"


class Calls:
    """A program of calls of kernels, each with what it must make."""

    def __init__(self) -> None:
        self.kernels: dict[str, Kernel] = {}
        self.arrays: list[str] = []
        self.calls: list[str] = []
        self.held: dict[tuple[str, bytes], str] = {}

    def array(self, array: Any) -> str:
        """The name of a static array; equal ones are one."""
        key = (str(array.dtype), array.tobytes())
        if key not in self.held:
            name = self.held[key] = f"a{len(self.arrays)}"
            values = ",".join(map(str, np.ravel(array).tolist()))
            body = f"[{max(array.size, 1)}]" + (f" = {{{values}}}" if array.size else "")
            kind = f"static const __attribute__((aligned(16))) {array.dtype}_t"
            self.arrays.append(f"{kind} {name}{body};")
        return self.held[key]

    def add(self, kernel: Kernel, given: list[Any], expected: Any, scratch: int, tail: str) -> None:
        """A call of ``kernel`` with ``given``, its result, workspace, and ``tail`` arguments."""
        self.kernels[kernel.name] = kernel
        arguments = [self.array(a) for a in given]
        arguments.append(f"({expected.dtype}_t *)(result + 16)")
        if scratch:
            arguments.append("workspace")
        right = self.array(expected)
        self.calls.append(
            f"(void)memset(result, 0x5A, sizeof result);"
            f"net_{kernel.name}({', '.join(arguments)}{tail});"
            f'check("{kernel.name}", {right}, {expected.nbytes});'
        )

    def run(self, folder: Path, mutant: tuple[str, str] = ("", "")) -> list[str]:
        """Return what the program says is wrong; ``mutant``: a text of the library, and another."""
        project = built(HELLO, BOARD).files
        for name in ("link.ld", *board_port("arm")):
            (folder / name).write_bytes(project[name])
        program = Program("net", tuple(self.kernels.values()), (), (), (), (), (), (), {})
        (folder / "net_kernels.h").write_text(kernels_header(program))
        (folder / "net_kernels.c").write_text(kernels_source(program).replace(*mutant))
        lines = "\n".join(f"    {call}" for call in self.calls)
        (folder / "main.c").write_text(MAIN % ("\n".join(self.arrays), lines))
        sources = "main.c net_kernels.c startup.c port_board.c"
        command = f"arm-none-eabi-gcc {CORE} {FLAGS} {sources} {LINK} -o all.elf"
        done = subprocess.run(command.split(), cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        command = f"{QEMU} {SEMIHOSTING} all.elf"
        done = subprocess.run(
            command.split(), cwd=folder, capture_output=True, text=True, timeout=120
        )
        said = (done.stdout + done.stderr).split("\n")
        assert f"calls {len(self.calls)}" in said, said[-5:]
        return [line for line in said if line and not line.startswith("calls ")]


MAIN = """#include <string.h>
#include "net_kernels.h"
#include "port.h"
%s
static uint8_t result[40000];
__attribute__((aligned(16), unused)) static uint8_t workspace[4096];
static uint32_t done;
static void check(const char *name, const void *right, uint32_t size)
{
    const uint8_t *const r = right;
    int32_t bad = 0;
    for (uint32_t i = 0; i < size; ++i) {
        bad += result[16 + i] != r[i];
    }
    for (uint32_t i = 0; i < 16; ++i) {
        bad += result[i] != 0x5A || result[16 + size + i] != 0x5A;
    }
    if (bad != 0) {
        port_report(name, (uint64_t)bad);
    }
    ++done;
}
int main(void)
{
%s
    port_report("calls", done);
    return 0;
}
"""


def library_calls(
    layers: dict[str, Drawn], monkeypatch: pytest.MonkeyPatch
) -> tuple[Calls, list[LibraryCall]]:
    """Calls of the library's kernels of ``layers``, whole and by rows."""
    calls, made = Calls(), []
    for name, layer in layers.items():
        spec = layer.spec
        arguments = [*(None for _ in layer.inputs), layer.weights, layer.bias]
        slots = (RowParam(0, ()),) * (len(layer.inputs) * spec.weight_shape[0])
        for form, rows in (("whole", None), ("row", RowKernel((None,), (), slots, {}))):
            with monkeypatch.context() as patched:
                patched.setattr(library, "spec_of", lambda _function, _given, spec=spec: spec)
                forms = library_forms(f"{name}_{form}", arguments, rows, vectors=True)
            for number, found in enumerate(forms):
                kernel = replace(found.kernel, name=f"{found.kernel.name}_{number}")
                made.append(replace(found, kernel=kernel))
                if rows is None:
                    given = [*layer.inputs, *found.constants]
                    calls.add(kernel, given, layer.expected, found.workspace_bytes, "")
                    continue
                several = kernel.params[-1].name == COUNT
                tail = ", (const uint32_t[]){1}" if several else ""
                y = layer.expected.shape[0] // 2
                given = [*rows_under(spec, y, layer.inputs), *found.constants]
                calls.add(kernel, given, layer.expected[y], 0, tail)
    return calls, made


def larger(seed: int) -> Drawn:
    """A layer as networks have them: many channels, in groups and parts of groups."""
    rng = np.random.default_rng(seed)
    small = drawn(seed)
    spec = small.spec
    channels = int(rng.choice([7, 12, 16, 20, 33, 48]))
    made = channels if spec.depthwise else int(rng.choice([3, 8, 13, 16, 20]))
    shape = (1, *spec.pieces[0][1:3], channels)
    kernel = (
        (*spec.weight_shape[:2], made)
        if spec.depthwise
        else (*spec.weight_shape[:2], channels, made)
    )
    taps = int(np.prod(kernel)) // made
    values = multiplier(np.array(rng.uniform(0.2, 1, made) / (taps**0.5 * 5000)))
    finish = replace(spec.requantise, multiplier=values)
    spec = replace(
        spec,
        pieces=(shape,),
        weight_shape=kernel,
        groups=made if spec.depthwise else 1,
        requantise=finish,
    )
    weights = rng.integers(-127, 127, kernel, endpoint=True).astype(np.int8)
    limits = np.iinfo(spec.dtype)
    inputs = (rng.integers(limits.min, limits.max, shape, endpoint=True).astype(spec.dtype),)
    ends = rng.random(shape) < 0.1
    inputs[0][ends] = limits.min
    bias = rng.integers(-20000, 20000, made).astype(np.int32)
    return Drawn(spec, weights, bias, inputs, computed(spec, weights, bias, inputs))


def of_nine(seed: int) -> Drawn:
    """A depthwise layer of 3x3 with channels by fours, rounded twice, any border and stride."""
    rng = np.random.default_rng(seed)
    channels = (8, 4, 8, 12, 16, 20, 28, 32, 48)[seed % 9]
    dtype = ("int8", "int8", "uint8")[seed % 3 if seed % 2 else 0]
    limits = np.iinfo(dtype)
    values = multiplier(np.array(rng.uniform(0.2, 1, channels if seed % 5 else 1) / 12000))
    zero = int(rng.choice([limits.min, limits.max, int(rng.integers(limits.min, limits.max))]))
    finish = Requantise(values, zero, limits.min, limits.max, dtype, "tflite")
    stride = int(rng.choice([1, 1, 2]))
    height, width = (int(n) for n in rng.integers(3, 9, 2))
    border = [int(n) for n in rng.integers(0, 2, 4)]
    spec = Convolution(
        "NHWC",
        ((1, height, width, channels),),
        dtype,
        (3, 3, channels),
        "int8",
        (stride, stride),
        (border[0], border[1], border[2], border[3]),
        (1, 1),
        channels,
        int(rng.integers(limits.min, limits.max, endpoint=True)),
        0,
        finish,
    )
    weights = rng.integers(-127, 127, (3, 3, channels), endpoint=True).astype(np.int8)
    weights[rng.random(weights.shape) < 0.2] = 127
    bias = rng.integers(-20000, 20000, channels).astype(np.int32)
    inputs = rng.integers(limits.min, limits.max, spec.pieces[0], endpoint=True).astype(dtype)
    inputs[rng.random(inputs.shape) < 0.3] = limits.min
    return Drawn(spec, weights, bias, (inputs,), computed(spec, weights, bias, (inputs,)))


def of_few_inputs(seed: int) -> Drawn:
    """A layer of up to 32 inputs a window and outputs by fours, rounded twice, of any border."""
    rng = np.random.default_rng(seed)
    dtype = ("int8", "uint8")[seed % 2]
    limits = np.iinfo(dtype)
    kernel, channels = [
        ((1, 1), (1, 3, 8, 13, 16, 17, 24, 31, 32)),
        ((3, 3), (1, 2, 3)),
        ((2, 3), (1, 2, 4, 5)),
        ((4, 1), (3, 4, 8)),
        ((1, 8), (1, 3)),
    ][seed % 5]
    many, made = int(rng.choice(channels)), int(rng.choice([4, 8, 12, 20]))
    values = multiplier(np.array(rng.uniform(0.2, 1, made if seed % 3 else 1) / 8000))
    zero = (limits.min, limits.max, int(rng.integers(limits.min, limits.max)))[seed // 2 % 3]
    finish = Requantise(values, zero, limits.min, limits.max, dtype, "tflite")
    height, width = (int(n) for n in rng.integers(8, 19, 2))
    border = [int(n) for n in rng.integers(0, 2, 4)] if seed % 4 else [0, 0, 0, 0]
    stride = int(rng.choice([1, 2]))
    spec = Convolution(
        "NHWC",
        ((1, height, width, many),),
        dtype,
        (*kernel, many, made),
        "int8",
        (stride, stride),
        (border[0], border[1], border[2], border[3]),
        (1, 1),
        1,
        int(rng.integers(limits.min, limits.max, endpoint=True)),
        0,
        finish,
    )
    weights = rng.integers(-128, 127, spec.weight_shape, endpoint=True).astype(np.int8)
    bias = rng.integers(-20000, 20000, made).astype(np.int32)
    inputs = rng.integers(limits.min, limits.max, spec.pieces[0], endpoint=True).astype(dtype)
    inputs[rng.random(inputs.shape) < 0.3] = limits.min
    return Drawn(spec, weights, bias, (inputs,), computed(spec, weights, bias, (inputs,)))


LAYERS = tier(36, 60)


@needs_board
def test_layers_of_any_shape_with_vectors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    layers = {f"layer{i}": drawn(1000 + i) for i in range(LAYERS)}
    layers |= {f"large{i}": larger(2000 + i) for i in range(LAYERS)}
    layers |= {f"nine{i}": of_nine(3000 + i) for i in range(LAYERS)}
    calls, made = library_calls(layers, monkeypatch)
    assert sum("depthwise_3x3_line" in found.kernel.body for found in made) > LAYERS * 3 // 2
    grouped = [found for found in made if "convolve_groups" in found.kernel.body]
    assert len(grouped) > LAYERS // 4
    assert calls.run(tmp_path) == []


FORMS = (
    *("strip_16_int8", "strip_16_positive_", "strip_16_whole_int8", "strip_16_whole_positive_"),
    *("strip_32_uint8", "strip_32_positive_", "strip_32_whole_uint8", "strip_32_whole_positive_"),
)


@needs_board
def test_layers_of_few_inputs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    layers = {f"few{i}": of_few_inputs(4000 + i) for i in range(LAYERS)}
    calls, made = library_calls(layers, monkeypatch)
    for form in FORMS:
        assert sum(form in found.kernel.body for found in made) > 0, form
    assert calls.run(tmp_path) == []


def summed(seed: int) -> tuple[Sum, tuple[Any, Any], Any]:
    """A sum or difference of two tensors of any scales, its operands and its result."""
    rng = np.random.default_rng(seed)
    dtype = ("int8", "uint8")[seed % 2]
    limits = np.iinfo(dtype)
    shape = (1, int(rng.integers(1, 5)), int(rng.integers(1, 6)), int(rng.integers(1, 9)))
    zeros = rng.choice([limits.min, limits.max, int(rng.integers(limits.min, limits.max))], 3)
    scales = rng.choice([1.0, 0.5, 0.37, 0.051], 3).astype(np.float32)
    a, b, out = (Affine((float(s),), (int(z),), dtype) for s, z in zip(scales, zeros, strict=True))
    low, high = (limits.min, limits.max) if seed % 3 else (limits.min + 40, limits.max - 3)
    spec = sum_of(Pair((shape, shape), (a, b), out, low, high), seed % 5 == 4)
    operands = [
        rng.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype) for _ in range(2)
    ]
    operands[0].flat[0], operands[1].flat[0] = limits.min, limits.max
    x, y = (
        (v.astype(np.int64) - s.zero_point) << spec.shift
        for v, s in zip(operands, (a, b), strict=True)
    )
    second = scaled(y, np.abs(spec.right.value), spec.right.shift)
    second = scaled(-y, np.abs(spec.right.value), spec.right.shift) if seed % 5 == 4 else second
    total = scaled(x, spec.left.value, spec.left.shift) + second
    made = scaled(total, spec.out.value, spec.out.shift) + out.zero_point
    return spec, (operands[0], operands[1]), np.clip(made, low, high).astype(dtype)


def summing(name: str, spec: Sum, core: Extensions, *, by_rows: bool = False) -> LibraryCall | None:
    """The library's kernel of a sum of two tensors, or of a row of it."""
    slots = (0, 1) if by_rows else ()
    layer = PlainLayer(spec, spec.pair.output_shape, slots, by_rows, core.vectors)
    try:
        return candidates(name, layer, core)[0]
    except NotCovered:
        return None


@needs_board
def test_sums_with_vectors(tmp_path: Path) -> None:
    calls = Calls()
    for seed in range(60):
        spec, operands, expected = summed(seed)
        whole = summing(f"sum{seed}", spec, Extensions(vectors=True))
        by_row = summing(f"sum{seed}_row", spec, Extensions(vectors=True), by_rows=True)
        if whole is None or by_row is None:
            continue
        calls.add(whole.kernel, list(operands), expected, 0, "")
        calls.add(by_row.kernel, [v[0, 0] for v in operands], expected[0, 0], 0, "")
    assert len(calls.calls) > 80
    assert calls.run(tmp_path) == []


@needs_board
@pytest.mark.parametrize(
    "mutant",
    sampled(
        [
            ("subs lr, lr, #16", "subs lr, lr, #32"),
            ('"ldr r11, [sp, #24]', '"movs r11, #0'),
            ('"vqadd.s16 q6, q6, r7', '"vqadd.s16 q6, q6, r6'),
            ('"vldrb.8 q5, [r8, #64]', '"vldrb.8 q5, [r8, #16]'),
            ("line->steps[ky] = line->moves = -(", "line->steps[ky] = line->moves = 16 - ("),
            ('"ldr lr, [sp, #36]', '"ldr lr, [sp, #32]'),
            ("in1 ? row + second", "in1 ? row + first"),
            ("made = min_i32((c->width - c->kernel_width - x)", "made = min_i32((c->width - x)"),
        ],
        4,
        tuples=True,
    ),
)
def test_a_wrong_kernel_is_found(
    mutant: tuple[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    layers = {f"large{i}": larger(2000 + i) for i in cases(6, most=12)}
    layers |= {f"nine{i}": of_nine(3000 + i) for i in cases(9, most=18)}
    layers |= {f"few{i}": of_few_inputs(4000 + i) for i in cases(9, most=18)}
    calls, _ = library_calls(layers, monkeypatch)
    assert calls.run(tmp_path, mutant)
