"""What the library's kernels cost on each core: ``python benchmarks/kernel_costs.py [CORE...]``.

Layers are drawn, every kernel that there is for each is compiled and called once: under QEMU on a
Cortex-M55, in the emulator of ``serenity latency`` on cores that have a table of cycles, their
memory without waits. Prices of the counts of ``firmware/tir/work.py``, least squares none below 0,
are written to ``tvm_serenity/firmware/kernel_costs.json``. ``--check``: layers that were not
seen; how far off, how often the cheapest was the fastest, and what was lost.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tvm_serenity.boards import Board, Core, board
from tvm_serenity.cores import core_model
from tvm_serenity.cycles import MeasuredCall, cycles_of
from tvm_serenity.cycles.core import core_names
from tvm_serenity.firmware.emit.sources import kernels_header, kernels_source
from tvm_serenity.firmware.isa import Extensions
from tvm_serenity.firmware.program import Program
from tvm_serenity.firmware.tir import cost, tuned, work
from tvm_serenity.firmware.tir.candidates import NotCovered, Tuned, candidates
from tvm_serenity.firmware.tir.library import COUNT, RoundedConvolution
from tvm_serenity.kernels.convolution import Convolution
from tvm_serenity.kernels.records import Requantise
from tvm_serenity.quantize.fixed import multiplier

TABLE = Path(cost.__file__).parents[1] / cost.TABLE
LAYERS, CHECKED = 480, 120
FIRST_CHECKED = 1_000_000
KINDS = (
    *("plain", "windows", "apart", "joined", "few", "plain", "dense", "apart", "few", "windows"),
    *("plain", "joined", "windows", "apart"),
)
"""Few: windows of few inputs, as first layers have; joined: of tensors that were a concat."""
ENOUGH = 30
"""Measurements of a kind for which further layers are drawn."""
FEWEST = 6
"""Measurements of a kind of kernels that are enough for prices."""
BATCH = 60
"""Layers of one program."""
MOST_PRODUCTS = 250_000
BUFFER = 160_000
CORES = ("cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m55")
"""Cores that are priced, on the machine of QEMU that their files name."""
FLAGS = "-std=gnu11 -O2 -ffp-contract=off -w -nostartfiles --specs=nano.specs --specs=nosys.specs"
MAIN = """
#include <stdint.h>
#include "net_kernels.h"
#define TICKS (*(volatile uint32_t *)0xE000E018u)
static int32_t host(int32_t op, const void *at)
{
    register int32_t r0 __asm("r0") = op;
    register const void *r1 __asm("r1") = at;
    __asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}
__attribute__((aligned(16))) static uint8_t in[BUFFER], out[BUFFER], work[BUFFER];
__attribute__((aligned(16))) static uint8_t held[BUFFER];
static const uint32_t one = 1;
static uint32_t took[CALLS + 1];
__attribute__((noinline)) void nothing(void) { __asm volatile(""); }
static void shown(uint32_t value)
{
    char text[] = "00000000\\n";
    for (int i = 7; i >= 0; --i, value /= 10) {
        text[i] = (char)('0' + value %% 10);
    }
    host(4, text);
}
int main(void)
{
    uint32_t before;
    BEGIN nothing(); END(CALLS)
%s
    return 0;
}
void start(void)
{
    FLOATS
    *(volatile uint32_t *)0xE000E014u = 0xFFFFFF;
    TICKS = 0;
    *(volatile uint32_t *)0xE000E010u = 5;
    uint32_t seed = 1;
    for (int i = 0; i < BUFFER; ++i) {
        seed = seed * 1664525u + 1013904223u;
        in[i] = (uint8_t)(seed >> 24);
        held[i] = (uint8_t)(seed >> 16) %% 16;
    }
    main();
    for (int i = 0; i <= CALLS; ++i) shown(took[i]);
    host(0x18, (const void *)0x20026);
    for (;;) { }
}
__attribute__((section(".vectors"), used)) static const void *const vectors[] = {
    (const void *)STACK_TOP, (const void *)start};
"""


@dataclass(frozen=True)
class MeasuredKernel:
    """What one call of a kernel took, and the counts of its work."""

    layer: int
    kind: str
    counts: list[float]
    instructions: int
    cycles: int


def drawn(seed: int) -> tuple[Convolution, Any, Any]:
    """A layer as networks have them, its weights and its biases."""
    rng = np.random.default_rng(seed)

    def one(*choices: int) -> int:
        return int(rng.choice(choices))

    dtype = ("int8", "int8", "uint8")[seed % 3]
    what = KINDS[seed % len(KINDS)]
    while True:
        kh, kw = one(1, 3, 3, 3, 2, 5, 7), one(1, 3, 3, 3, 2, 5, 4)
        stride = one(1, 1, 2)
        ins = one(1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 40, 64)
        outs = one(2, 4, 6, 8, 12, 16, 20, 24, 32, 64, 10)
        high, wide = (int(n) for n in rng.integers(1, 26, 2))
        pieces = 1
        if what in ("plain", "dense"):
            kh = kw = stride = 1
            ins = one(3, 4, 8, 12, 16, 16, 24, 32, 48, 64, 96, 128, 200, 256)
            if what == "dense":
                high = wide = 1
                ins, outs = ins * one(1, 2, 4, 8), one(1, 2, 4, 8, 10, 12, 16, 64, 128)
        if what == "apart":
            kh = kw = 3 if one(0, 1, 1, 1, 1) else one(1, 2, 4, 5)
            ins = outs = one(2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
        elif what == "windows" and rng.random() < 0.12:
            pieces = 2
        if what == "few":
            kh, kw, ins = one(1, 2, 3, 3, 3, 4, 5), one(1, 2, 3, 3, 3, 4, 5), one(1, 1, 2, 3, 3, 4)
        if what == "joined":
            pieces, ins = one(2, 2, 3, 4, 5, 6, 8), one(4, 8, 8, 12, 16, 24, 36)
            kh, kw = (1, 1) if rng.random() < 0.7 else (3, 3)
        same = what in ("windows", "few", "apart", "joined") and rng.random() < 0.75
        high, wide = max(high, kh), max(wide, kw)
        top, left = ((kh - 1) // 2, (kw - 1) // 2) if same else (0, 0)
        down, right = (kh - 1 - top, kw - 1 - left) if same else (0, 0)
        shape = (kh, kw, ins) if what == "apart" else (kh, kw, ins * pieces, outs)
        low, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        ends = (low, most) if rng.random() < 0.8 else (low, most - 20)
        zero = low if rng.random() < 0.6 else int(rng.integers(low, most))
        taps = kh * kw * (1 if what == "apart" else ins * pieces)
        each = rng.random() < (0.4 if what == "dense" else 0.8)
        reals = rng.uniform(0.2, 1, outs if each else 1) / (taps**0.5 * 4000)
        finish = Requantise(multiplier(np.broadcast_to(reals, outs)), zero, *ends, dtype, "tflite")
        spec = Convolution(
            "NHWC",
            ((1, high, wide, ins),) * pieces,
            dtype,
            shape,
            "int8",
            (stride, stride),
            (top, left, down, right),
            (1, 1),
            ins if what == "apart" else 1,
            int(rng.integers(low, most)),
            0,
            finish,
        )
        products = int(np.prod(spec.output_shape)) * taps
        sizes = [int(np.prod(spec.pieces[0])), int(np.prod(shape)), int(np.prod(spec.output_shape))]
        if products <= MOST_PRODUCTS and max(sizes) < BUFFER // 4:
            break
    few = rng.random() < 0.1
    weights = rng.integers(*((-8, 7) if few else (-127, 127)), shape, endpoint=True)
    bias = rng.integers(-30_000, 30_000, outs)
    return spec, weights.astype(np.int8), bias.astype(np.int32)


def kernels(seed: int, core: Extensions) -> Iterator[tuple[RoundedConvolution, Tuned]]:
    """All kernels of a drawn layer, whole and by rows."""
    spec, weights, bias = drawn(seed)
    for by_rows in (False, True):
        if by_rows and spec.output_shape[1] == 1:
            continue
        layer = tuned._layer(spec if by_rows else tuned._lying(spec), weights, bias)
        layer = replace(layer, by_rows=by_rows, vectors=core.vectors)
        try:
            for made in candidates("k", layer, core):
                yield layer, made
        except NotCovered:
            continue


def call(name: str, number: int, layer: RoundedConvolution, made: Tuned) -> str:
    """A call of a kernel: inputs that are as long as rows, one buffer for all constants."""
    names = [param.name for param in made.kernel.params]
    given = []
    for index, name_of in enumerate(names):
        if re.fullmatch(r"x\d+", name_of):
            row = layer.spec.pieces[0][2] * layer.spec.pieces[0][3]
            at = index * row if layer.by_rows else -(-index * row // 16) * 16
            given.append(f"(const void *)(in + {at})")
        elif name_of == "out":
            given.append("(void *)out")
        elif name_of == "workspace":
            given.append("(void *)work")
        else:
            given.append("(const void *)&one" if name_of == COUNT else "(const void *)held")
    return f"    BEGIN net_{name}({', '.join(given)}); END({number})"


def program(seeds: Sequence[int], target: Board, core: Extensions, folder: Path) -> list[Any]:
    """The kernels of layers as one linked program, in the order they are called."""
    made, texts, lines = [], [], []
    for seed in seeds:
        for layer, found in kernels(seed, core):
            name = f"k{len(made)}"
            made.append((seed * 2 + layer.by_rows, layer, found))
            texts.append(replace(found.kernel, name=name))
            lines.append(call(name, len(made) - 1, layer, found))
    written = Program("net", tuple(texts), (), (), (), (), (), (), {})
    (folder / "net_kernels.h").write_text(kernels_header(written))
    (folder / "net_kernels.c").write_text(kernels_source(written))
    ram = next(
        r for r in target.regions if r.kind in ("sram", "dtcm") and r.size_bytes > 4 * BUFFER
    )
    timed = target.core.name not in core_names()
    define = {
        "BUFFER": BUFFER,
        "CALLS": len(made),
        "STACK_TOP": hex(ram.address + ram.size_bytes),
        "BEGIN": "before = TICKS;" if timed else "",
        "END(i)": "took[i] = (before - TICKS) & 0xFFFFFF;" if timed else "",
        "FLOATS": "*(volatile uint32_t *)0xE000ED88u |= 0xF << 20;",
    }
    head = "".join(f"#define {name} {value}\n" for name, value in define.items())
    (folder / "main.c").write_text(head + MAIN % "\n".join(lines))
    places = "-Wl,--section-start=.vectors=0 -Wl,-Ttext=0x400,--entry=start"
    command = f"arm-none-eabi-gcc {target.gcc} {FLAGS} {places} -Wl,-Tdata={ram.address:#x}"
    subprocess.run(
        [*command.split(), "net_kernels.c", "main.c", "-o", "all.elf"], cwd=folder, check=True
    )
    return made


def counted(target: Board, folder: Path, count: int) -> list[tuple[int, int]]:
    """Instructions and cycles of each call."""
    if target.core.name in core_names():
        names = tuple(f"net_k{i}" for i in range(count))
        found = cycles_of(
            folder / "all.elf", target, MeasuredCall(function="main", operators=names)
        )
        spent = {part.name: part for part in found.operators}
        return [(spent[n].instructions, round(sum(spent[n].cycles) / 2)) for n in names]
    command = f"qemu-system-arm -M {target.qemu} -display none -monitor none -serial null "
    command += "-icount shift=6 -kernel all.elf"
    ran = subprocess.run(
        [*command.split(), "-semihosting-config", "enable=on,target=native"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    ticks = [int(line) for line in (ran.stdout + ran.stderr).split() if line.isdigit()]
    assert len(ticks) == count + 1, (ran.stdout + ran.stderr)[-300:]
    each = [(t - ticks[-1]) * 1e9 / target.core.clock_mhz / 1e6 / 64 for t in ticks[:-1]]
    return [(max(round(n), 1),) * 2 for n in each]


def machine(core: str) -> Board:
    """A board with a core whose memory has no waits."""
    model = core_model(core)
    assert model.qemu is not None
    found = board(model.qemu)
    regions = [r for r in found.regions if r.kind in ("flash", "psram")]
    memories = [{"region": r.name, "wait_states": [[10_000, 0]], "source": "none"} for r in regions]
    timing = {"class": "modelled", "core": core, "source": "none", "error_percent": 1}
    timing["memories"] = memories
    made = replace(found, timing=timing)
    whole = model.variants[0]
    if core != found.core.name:
        made = replace(
            made,
            core=Core(core, whole.instructions, found.core.clock_mhz, 16, whole.prices, core),
            gcc=whole.gcc,
        )
    return made


def measured(core: str, seeds: Sequence[int]) -> list[MeasuredKernel]:
    """All kernels of layers on a core."""
    target = machine(core)
    has, found = Extensions.of(target.core), []
    for first in range(0, len(seeds), BATCH):
        with tempfile.TemporaryDirectory(prefix="serenity.") as made_in:
            folder = Path(made_in)
            made = program(seeds[first : first + BATCH], target, has, folder)
            both = counted(target, folder, len(made))
        for (number, layer, one), (instructions, cycles) in zip(made, both, strict=True):
            kind = work.kind(one.form, layer)
            counts = work.work(one.form, layer, one.plane_rows)
            found.append(MeasuredKernel(number, kind, counts, instructions, cycles))
        print(f"{core}: {first + BATCH} layers, {len(found)} kernels", file=sys.stderr)
    return found


def code_of(core: str, kinds: set[str], seeds: Sequence[int]) -> dict[str, dict[str, int]]:
    """The functions of the library that each kind calls, each with its bytes."""
    target = machine(core)
    has = Extensions.of(target.core)
    found: dict[str, dict[str, int]] = {}
    for seed in seeds:
        for layer, made in kernels(seed, has):
            kind = work.kind(made.form, layer)
            if kind in kinds and kind not in found:
                found[kind] = functions(made, target)
        if len(found) == len(kinds):
            break
    return found


def functions(made: Tuned, target: Board) -> dict[str, int]:
    """The functions beside itself that a kernel is compiled with."""
    with tempfile.TemporaryDirectory(prefix="serenity.") as made_in:
        folder = Path(made_in)
        written = Program("net", (made.kernel,), (), (), (), (), (), (), {})
        (folder / "net_kernels.h").write_text(kernels_header(written))
        (folder / "net_kernels.c").write_text(kernels_source(written))
        command = f"arm-none-eabi-gcc {target.gcc} {FLAGS} -c net_kernels.c -o k.o"
        subprocess.run(command.split(), cwd=folder, check=True)
        listed = subprocess.run(
            ["arm-none-eabi-nm", "--print-size", "--size-sort", "k.o"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
    rows = [line.split() for line in listed.stdout.splitlines()]
    return {name: int(size, 16) for _, size, kind, name in rows if kind == "t"}


def rare(core: str, points: Sequence[MeasuredKernel], tried: Sequence[int]) -> list[int]:
    """Further layers that have kernels of kinds of which few were measured."""
    count = Counter(p.kind for p in points)
    has, chosen = Extensions.of(machine(core).core), []
    for seed in tried:
        kinds = {work.kind(made.form, layer) for layer, made in kernels(seed, has)}
        if any(count[kind] < ENOUGH for kind in kinds):
            chosen.append(seed)
            count.update(kinds)
    return chosen


def fitted(points: Sequence[MeasuredKernel], unit: str) -> dict[str, list[float]]:
    """Prices of each kind: least squares of relative errors, none below 0."""
    from scipy.optimize import nnls

    found = {}
    for kind in sorted({p.kind for p in points}):
        here = [p for p in points if p.kind == kind]
        if len(here) < FEWEST:
            continue
        want = np.array([getattr(p, unit) for p in here], float)
        rows = np.array([p.counts for p in here], float) / want[:, None]
        prices, _ = nnls(rows, np.ones(len(here)), maxiter=10_000)
        found[kind] = [float(f"{price:.4g}") for price in prices]
    return found


def errors(
    points: Sequence[MeasuredKernel], prices: dict[str, list[float]], unit: str
) -> list[float]:
    """How far off each is, of 1."""
    return [
        abs(
            sum(n * c for n, c in zip(p.counts, prices[p.kind], strict=True)) / getattr(p, unit) - 1
        )
        for p in points
        if p.kind in prices
    ]


def regret(
    points: Sequence[MeasuredKernel], prices: dict[str, list[float]], unit: str
) -> list[float]:
    """Of each layer with several kernels what the cheapest takes more than the fastest, of 1."""
    layers: dict[int, list[MeasuredKernel]] = {}
    for p in points:
        if p.kind in prices:
            layers.setdefault(p.layer, []).append(p)
    lost = []
    for found in layers.values():
        if len(found) > 1:
            cheapest = min(
                found,
                key=lambda p: sum(n * c for n, c in zip(p.counts, prices[p.kind], strict=True)),
            )
            lost.append(getattr(cheapest, unit) / min(getattr(p, unit) for p in found) - 1)
    return lost


def text_of(table: dict[str, Any]) -> str:
    """JSON with a line for each kind."""
    parts = []
    for core in sorted(table):
        known = table[core]
        head = f'"unit": "{known["unit"]}", "error_percent": {known["error_percent"]}'
        rows = [
            f'"{of}": {{\n'
            + ",\n".join(
                f'"{kind}": {json.dumps(each)}' for kind, each in sorted(known[of].items())
            )
            + "\n}"
            for of in ("prices", "code")
        ]
        parts.append(f'"{core}": {{{head}, {", ".join(rows)}}}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("cores", nargs="*", default=list(CORES))
    options.add_argument("--check", action="store_true")
    options.add_argument("--layers", type=int, default=LAYERS)
    given = options.parse_args()
    if not TABLE.is_file():
        TABLE.write_text("{}\n")
    table = json.loads(TABLE.read_text())
    for core in given.cores:
        unit = "cycles" if core in core_names() else "instructions"
        if not given.check:
            points = measured(core, range(given.layers))
            points += measured(core, rare(core, points, range(given.layers, 4 * given.layers)))
            prices = fitted(points, unit)
            table[core] = {
                "unit": unit,
                "prices": prices,
                "code": code_of(core, set(prices), range(4 * given.layers)),
            }
        seeds = range(FIRST_CHECKED, FIRST_CHECKED + CHECKED)
        points = measured(core, seeds)
        prices = table[core]["prices"]
        off, lost = errors(points, prices, unit), regret(points, prices, unit)
        if not given.check:
            both = statistics.median(off), float(np.quantile(off, 0.95))
            table[core]["error_percent"] = [round(100 * one, 1) for one in both]
            TABLE.write_text(text_of(table))
        print(
            f"{core}, {unit}: {len(points)} kernels of {CHECKED} other layers: off by "
            f"{100 * statistics.median(off):.1f} % (median), {100 * np.quantile(off, 0.95):.1f} % "
            f"(19 of 20), {100 * max(off):.0f} % (worst); of {len(lost)} choices "
            f"{sum(r == 0 for r in lost)} are the fastest, lost "
            f"{100 * statistics.mean(lost):.2f} % "
            f"(mean), {100 * max(lost):.1f} % (worst)"
        )


if __name__ == "__main__":
    main()
