"""Kernels for the DSP extension on layers of any shape: on this machine, and as code of a board."""

import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import scaled
from tests.firmware.library_form import library_forms
from tests.firmware.projects import needs_board, needs_host
from tests.firmware.semihosting import BAD, HOST
from tests.firmware.test_library import Caller, Drawn, computed, drawn, rows_under
from tvm_serenity.firmware.emit.sources import kernels_header, kernels_source
from tvm_serenity.firmware.isa import ANY
from tvm_serenity.firmware.kernels.conv_3x2_dsp import kernel as conv_3x2
from tvm_serenity.firmware.kernels.dense_dsp import kernel as dense_dsp
from tvm_serenity.firmware.kernels.depthwise_3x3_in_place_dsp import kernel as in_place
from tvm_serenity.firmware.kernels.pack import BLOCK, Rounding
from tvm_serenity.firmware.kernels.parts import epilogue, pairs
from tvm_serenity.firmware.kernels.parts import layer as limits
from tvm_serenity.firmware.kernels.parts import planes as by_planes
from tvm_serenity.firmware.kernels.parts.calls import COUNT
from tvm_serenity.firmware.kernels.parts.layer import RoundedConvolution
from tvm_serenity.firmware.kernels.record import LibraryCall
from tvm_serenity.firmware.program import Program
from tvm_serenity.firmware.select import library
from tvm_serenity.kernels.convolution import Convolution
from tvm_serenity.kernels.records import Requantise
from tvm_serenity.kernels.rows import RowKernel, RowParam
from tvm_serenity.quantize.fixed import multiplier

MOST = 240
LAYERS = scaled(130, MOST)
FIRST = 5000
GUARD = 0x5A
KERNELS = {
    "conv_3x2_dsp",
    "conv_2x2_dsp",
    "depthwise_3x3_planes_dsp",
    "dense_dsp",
    "depthwise_3x3_in_place_dsp",
}
"""Kernels for the DSP extension that convolutions have."""
ARM = (
    "arm-none-eabi-gcc -mthumb -mfloat-abi=soft -O2 -std=gnu11 -Wall -Wextra -Werror "
    "-nostartfiles --specs=nano.specs --specs=nosys.specs -Wl,--section-start=.vectors=0 "
    "-Wl,-Ttext=0x400 -Wl,-Tdata=0x20000000"
)
MAIN = f"""
#include <stdint.h>
#include <string.h>
#include "net_kernels.h"
{HOST}{BAD}static uint8_t result[ROOM] __attribute__((aligned(16)));
static uint8_t scratch[ROOM] __attribute__((aligned(16)));
static void begin(void)
{{
    memset(result, 0x5A, sizeof result);
    memset(scratch, 0xA5, sizeof scratch);
}}
static void end(int32_t number, const void *want, uint32_t size, uint32_t room)
{{
    int wrong = memcmp(result + 1, want, size) != 0;
    wrong |= result[0] != 0x5A || result[size + 1] != 0x5A || scratch[room] != 0xA5;
    if (wrong) bad(number);
}}
"""
START = """
void start(void) { run(); host(4, "done\\n"); host(0x18, (const void *)0x20026); for (;;) { } }
__attribute__((section(".vectors"), used)) static const void *const vectors[] = {
    (const void *)STACK_TOP, (const void *)start};
"""


@dataclass(frozen=True)
class Case:
    """A kernel of a layer, whole or of a row."""

    layer: Drawn
    found: LibraryCall
    by_rows: bool

    def calls(self) -> Iterator[tuple[list[Any], Any, list[Any]]]:
        """What it is called with: before the result, the result's rows, and after it."""
        names = [param.name for param in self.found.kernel.params]
        if not self.by_rows:
            yield [*self.layer.inputs, *self.found.constants], self.layer.expected, []
            return
        count = [np.array([1], np.uint32)] * (COUNT in names)
        for y in range(self.layer.expected.shape[0]):
            given = rows_under(self.layer.spec, y, self.layer.inputs)
            yield [*given, *self.found.constants], self.layer.expected[y], count


def at_the_ends(seed: int) -> Drawn:
    """A layer; in every third case weights and inputs are the least or the largest."""
    layer = drawn(seed)
    if seed % 3 != 1:
        return layer
    rng = np.random.default_rng(seed)
    weights = rng.choice([-127, 127], layer.weights.shape).astype(np.int8)
    if seed % 2:
        weights[...] = weights.reshape(-1)[0]
    limits = np.iinfo(layer.spec.dtype)
    inputs = tuple(
        rng.choice([limits.min, limits.max], x.shape).astype(x.dtype) for x in layer.inputs
    )
    spec = layer.spec
    return replace(
        layer, weights=weights, inputs=inputs, expected=computed(spec, weights, layer.bias, inputs)
    )


def planes(seed: int, together: int = 1) -> Drawn:
    """A depthwise layer of 3x3 of any size, stride and border; channels by ``together``."""
    rng = np.random.default_rng(seed)

    def one(*choices: int) -> int:
        return int(rng.choice(choices))

    dtype = ("int8", "uint8")[seed % 2]
    limits = np.iinfo(dtype)
    low, high = int(limits.min), int(limits.max)
    channels, top, left = (int(n) for n in rng.integers((2, 0, 0), (9, 3, 3)))
    channels *= together
    height, width = (int(n) for n in rng.integers(3, 24, 2))
    many = channels if seed % 4 else 1
    reals = np.broadcast_to(rng.uniform(0.2, 1, many) / 2000, channels)
    ends = (low, high) if seed % 3 else (low + 25, high - 30)
    zero = one(low, high, int(rng.integers(low, high)))
    finish = Requantise(multiplier(reals), zero, *ends, dtype, "tflite")
    spec = Convolution(
        "NHWC",
        ((1, height, width, channels),),
        dtype,
        (3, 3, channels),
        "int8",
        (one(1, 2), one(1, 2)),
        (top, left, one(0, 1, 2), one(0, 1, 2)),
        (1, 1),
        channels,
        one(low, high, int(rng.integers(low, high))),
        0,
        finish,
    )
    weights = rng.integers(-128, 127, (3, 3, channels), endpoint=True).astype(np.int8)
    bias = rng.integers(-30_000, 30_000, channels).astype(np.int32)
    inputs = (rng.integers(low, high, spec.pieces[0], endpoint=True).astype(dtype),)
    return Drawn(spec, weights, bias, inputs, computed(spec, weights, bias, inputs))


def short_rows(number: int) -> Drawn:
    """A depthwise layer of whole words of channels, whose rows are read in place."""
    return planes(number // 8, together=4)


def joined(seed: int) -> Drawn:
    """A convolution of two or three tensors of whole blocks, over lines of many windows."""
    rng = np.random.default_rng(seed)
    dtype = ("int8", "uint8")[seed // 8 % 2]
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    height, width, size = int(rng.integers(3, 6)), int(rng.integers(7, 12)), int(rng.choice([1, 3]))
    channels = [4 * int(n) for n in rng.integers(1, 4, 2 + seed % 2)]
    made, stride, edge = 2 * int(rng.integers(1, 5)), int(rng.integers(1, 3)), size // 2
    finish = Requantise(
        multiplier(rng.uniform(0.2, 1, made) / 4000), low, low, high, dtype, "tflite"
    )
    spec = Convolution(
        "NHWC",
        tuple((1, height, width, n) for n in channels),
        dtype,
        (size, size, sum(channels), made),
        "int8",
        (stride, stride),
        (edge, edge, edge, edge),
        (1, 1),
        1,
        int(rng.integers(low, high)),
        0,
        finish,
    )
    weights = rng.integers(-127, 127, spec.weight_shape, endpoint=True).astype(np.int8)
    bias = rng.integers(-30_000, 30_000, made).astype(np.int32)
    given = tuple(
        rng.integers(low, high, shape, endpoint=True).astype(dtype) for shape in spec.pieces
    )
    return Drawn(spec, weights, bias, given, computed(spec, weights, bias, given))


def dense(seed: int) -> Drawn:
    """A dense layer of one row, of either rounding."""
    rng = np.random.default_rng(seed)
    dtype = ("int8", "uint8")[seed % 2]
    limits = np.iinfo(dtype)
    low, high = int(limits.min), int(limits.max)
    inputs, units = 4 * int(rng.integers(1, 12)), 2 * int(rng.integers(1, 12))
    many = units if seed % 3 else 1
    reals = np.broadcast_to(rng.uniform(0.2, 1, many) / (inputs * 40), units)
    ends = (low, high) if seed % 5 else (low + 25, high - 30)
    zero = int(rng.choice([low, high]))
    how = ("tflite", "single")[seed // 8 % 2]
    finish = Requantise(multiplier(reals), zero, *ends, dtype, how)
    spec = Convolution(
        "NHWC",
        ((1, 1, 1, inputs),),
        dtype,
        (1, 1, inputs, units),
        "int8",
        (1, 1),
        (0, 0, 0, 0),
        (1, 1),
        1,
        0,
        0,
        finish,
    )
    weights = rng.integers(-127, 127, spec.weight_shape, endpoint=True).astype(np.int8)
    bias = rng.integers(-30_000, 30_000, units).astype(np.int32)
    given = (rng.integers(low, high, spec.pieces[0], endpoint=True).astype(dtype),)
    return Drawn(spec, weights, bias, given, computed(spec, weights, bias, given))


def cases(monkeypatch: pytest.MonkeyPatch, first: int, count: int, **core: Any) -> dict[str, Case]:
    """Kernels of ``count`` layers that are for the DSP extension, or another core, by name."""
    made: dict[str, Case] = {}
    for number in range(first, first + count):
        monkeypatch.setattr(limits, "STACK_BYTES", (400, 40)[number % 2])
        monkeypatch.setattr(by_planes, "PLANE_BYTES", (432, 200)[number % 2])
        monkeypatch.setattr(dense_dsp, "WIDENED_PRODUCTS", (1 << 30, 0)[number // 16 % 2])
        draw = {0: planes, 3: dense, 5: short_rows, 6: joined}.get(number % 8, at_the_ends)
        layer = draw(number)
        monkeypatch.setattr(library, "spec_of", lambda _function, _given, spec=layer.spec: spec)
        given = [*(None for _ in layer.inputs), layer.weights, layer.bias]
        slots = (RowParam(0, ()),) * (len(layer.inputs) * layer.spec.weight_shape[0])
        for form, rows in (("whole", None), ("row", RowKernel((None,), (), slots, {}))):
            name = f"l{number}_{form}"
            for found in library_forms(name, given, rows, **(core or {"dsp": True})):
                if found.form.kernel.isa != ANY:
                    kernel = replace(found.kernel, name=f"{name}_{len(made)}")
                    case = Case(layer, replace(found, kernel=kernel), rows is not None)
                    made[kernel.name] = case
    return made


def made_in_place(case: Case) -> bool:
    """Whether a kernel is one that reads rows of a depthwise convolution where they lie."""
    return case.found.form.kernel is in_place.KERNEL


def forms(made: dict[str, Case]) -> dict[str, int]:
    """How many calls there are of each kernel of the library."""
    names = [case.found.form.kernel.name for case in made.values()]
    return {name: names.count(name) for name in names}


@dataclass(frozen=True)
class Called:
    """A kernel that is called once: its inputs, and what it must make."""

    found: LibraryCall
    given: tuple[Any, ...]
    expected: Any

    def calls(self) -> Iterator[tuple[list[Any], Any, list[Any]]]:
        """What it is called with: before the result, the result, and after it."""
        yield [*self.given, *self.found.constants], self.expected, []


def compared(made: Mapping[str, Any], folder: Path) -> None:
    """Every kernel makes on this machine what it must, and touches no byte beside it."""
    call = Caller({name: case.found.kernel for name, case in made.items()}, folder)
    for name, case in made.items():
        for before, want, after in case.calls():
            result = np.zeros_like(want)
            room = case.found.workspace_bytes
            scratch = [np.full(room, 0xA5, np.uint8)] * (room > 0)
            call(name, *before, result, *after, *scratch)
            assert (result == want).all(), (name, case)


@needs_host
def test_layers_of_any_shape(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = cases(monkeypatch, FIRST, LAYERS)
    assert forms(made).keys() == KERNELS
    assert min(forms(made).values()) >= scaled(2, 5), forms(made)
    compared(made, tmp_path)


@dataclass(frozen=True)
class Machine:
    """A machine of QEMU, its core and where its RAM ends."""

    name: str = "mps2-an386"
    core: str = "cortex-m4"
    ram_end: int = 0x20300000


def failed(
    made: Mapping[str, Any],
    folder: Path,
    machine: Machine = Machine(),
    changed: Callable[[str], str] = str,
) -> list[str]:
    """The names of the kernels that are wrong on the board, of one compiled program."""
    kernels = {name: case.found.kernel for name, case in made.items()}
    program = Program("net", tuple(kernels.values()), (), (), (), (), (), (), {})
    (folder / "net_kernels.h").write_text(kernels_header(program))
    (folder / "net_kernels.c").write_text(changed(kernels_source(program)))
    main = board_program(made).replace("STACK_TOP", hex(machine.ram_end))
    (folder / "main.c").write_text(main)
    command = [*ARM.split(), f"-mcpu={machine.core}", "net_kernels.c", "main.c", "-o", "test.elf"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    options = f"-M {machine.name} -display none -monitor none -serial null -kernel test.elf"
    semihosting = ["-semihosting-config", "enable=on,target=native"]
    ran = subprocess.run(
        ["qemu-system-arm", *options.split(), *semihosting],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )
    text = ran.stdout + ran.stderr
    assert "done" in text, text
    names = list(made)
    return [names[int(number)] for number in re.findall(r"bad (\d+)", text)]


def board_program(made: Mapping[str, Any]) -> str:
    """C that runs every kernel and says which are wrong: inputs and results at odd addresses."""
    held: list[str] = []

    def array(values: Any) -> str:
        odd = values.dtype.itemsize == 1
        data = bytes([GUARD] * odd) + np.ascontiguousarray(values).tobytes()
        text = ", ".join(map(str, data))
        name = f"a{len(held)}"
        held.append(f"static const uint8_t {name}[] __attribute__((aligned(4))) = {{{text}}};")
        return f"(const void *)({name} + {int(odd)})"

    lines = []
    for number, (name, case) in enumerate(made.items()):
        constants = [array(a) for a in case.found.constants]
        tensors: dict[bytes, str] = {}
        for before, want, after in case.calls():
            data = before[: len(before) - len(constants)]
            given = [tensors.setdefault(x.tobytes(), "") or array(x) for x in data]
            tensors.update({x.tobytes(): at for x, at in zip(data, given, strict=True)})
            room = ["(void *)scratch"] * (case.found.workspace_bytes > 0)
            passed = [*given, *constants, "(void *)(result + 1)", *map(array, after), *room]
            lines.append(f"    begin(); net_{name}({', '.join(passed)});")
            size = f"{want.nbytes}, {case.found.workspace_bytes}"
            lines.append(f"    end({number}, {array(want)}, {size});")
    body = "\n".join(lines)
    sizes = [
        (want.nbytes, c.found.workspace_bytes) for c in made.values() for _, want, _ in c.calls()
    ]
    define = f"#define ROOM {max(max(pair) for pair in sizes) + 16}"
    return "\n".join([define, MAIN, *held, f"static void run(void)\n{{\n{body}\n}}", START])


@needs_board
def test_layers_of_any_shape_on_a_board(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = cases(monkeypatch, FIRST, LAYERS)
    assert forms(made).keys() == KERNELS
    assert min(forms(made).values()) >= scaled(2, 5), forms(made)
    assert failed(made, tmp_path) == []


def _one_more(numbers: Any) -> Any:
    numbers[..., -1] += 1 << 12
    return numbers


@needs_board
def test_a_wrong_number_is_caught_on_a_board(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    right = epilogue.numbers
    monkeypatch.setattr(epilogue, "numbers", lambda layer: _one_more(right(layer)))
    assert failed(cases(monkeypatch, FIRST, 12), tmp_path)


@needs_board
def test_wrong_weights_of_rows_read_in_place_are_caught(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    right = in_place.pack
    monkeypatch.setattr(in_place, "pack", lambda layer: np.roll(right(layer), 1, axis=1))
    made = {n: c for n, c in cases(monkeypatch, FIRST, 48).items() if made_in_place(c)}
    assert made
    assert failed(made, tmp_path)


@needs_board
@pytest.mark.parametrize(
    ("file", "sign", "none"),
    [
        ("depthwise_3x3_planes_dsp", r'add r4, r12, " s ", asr #31', "mov r4, r12"),
        ("depthwise_3x3_in_place_dsp", r'add lr, r12, " s ", asr #31', "mov lr, r12"),
    ],
)
def test_a_rounding_that_skips_the_sign_is_caught(
    file: str, sign: str, none: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = {n: c for n, c in cases(monkeypatch, FIRST, 96).items() if file in forms({n: c})}

    def changed(source: str) -> str:
        assert sign in source
        return source.replace(sign, none)

    assert failed(made, tmp_path, changed=changed)


@needs_board
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("w.offset = from.x * n;", "w.offset = 0;"),
        ("w.stride = c->stride_x * n;", "w.stride = n + n;"),
        (r'"ldrd r9, r10, [sp, #8]\n"', r'"ldrd r9, r10, [sp, #8]\n mov r10, #2\n"'),
    ],
)
def test_windows_that_are_widened_wrong_are_caught(
    right: str, wrong: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    layers = cases(monkeypatch, FIRST, MOST)
    made = {n: c for n, c in layers.items() if "conv_3x2_dsp" in forms({n: c})}

    def changed(source: str) -> str:
        assert right in source
        return source.replace(right, wrong)

    assert failed(made, tmp_path, changed=changed)


@needs_board
def test_a_rounding_without_signs_is_for_results_that_are_clamped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = cases(monkeypatch, FIRST, MOST)
    bodies = [case.found.kernel.body for case in made.values()]
    for form in ("tile_3x2", "2x2", "plane", "dense_tile", "direct_two"):
        assert sum(f"{form}_positive" in body for body in bodies) > 2, form
    for how in ("positive", "once", "twice"):
        assert any(f"dense_tile_{how}_wide" in body for body in bodies), how
    for form in ("tile_3x2", "2x2"):
        assert sum(f"{form}_once" in body for body in bodies) > 2, form
    always, never = property(lambda _: True), property(lambda _: False)
    with monkeypatch.context() as patch:
        patch.setattr(RoundedConvolution, "clamps_at_zero", always)
        assert failed(cases(patch, FIRST, 96), tmp_path)
    monkeypatch.setattr(Rounding, "once_small", never)
    made = cases(monkeypatch, FIRST, 96)
    wrong = {made[name].found.form.kernel.name for name in failed(made, tmp_path)}
    assert {"conv_3x2_dsp", "conv_2x2_dsp"} <= wrong


@needs_host
def test_another_order_of_what_is_left_of_rows_is_caught(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    right = conv_3x2.blocks_first

    def wrong(layer: RoundedConvolution, weights: Any) -> Any:
        return np.concatenate([right(layer, weights)[:-BLOCK], right(layer, weights)[:-5:-1]])

    monkeypatch.setattr(conv_3x2, "blocks_first", wrong)
    made = {
        n: c for n, c in cases(monkeypatch, FIRST, 96).items() if "conv_3x2_dsp" in forms({n: c})
    }
    with pytest.raises(AssertionError):
        compared(made, tmp_path)


def test_what_does_not_fit_a_halfword_is_refused() -> None:
    weights = np.zeros((4, 2), np.int8)
    weights[0] = (-128, 0)
    assert pairs.paired_words(weights) is not None
    weights[0] = (-128, -1)
    assert pairs.paired_words(weights) is None
