"""What the library's kernels cost on each core: ``python benchmarks/kernel_costs.py [CORE...]``.

Layers are drawn, every kernel that there is for each is compiled and called once: in the
emulator of ``serenity latency`` on cores that it prices, their memory without waits, and under QEMU
on others. Prices of the counts of each kernel's record, least squares none below 0, are
written to ``prices.json`` in the folder of the kernel (``tvm_serenity/firmware/kernels``).
``--missing``: only cases without prices, from layers drawn for them. ``--check``: layers that were
not seen; how far off, how often the cheapest was the fastest, and what was lost.
``--decoding``: only the cost of a byte of weights in an entropy code.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tvm_serenity.architectures import architecture
from tvm_serenity.boards import Board, Core, board
from tvm_serenity.cores import core_model
from tvm_serenity.cycles import MeasuredCall, cycles_of
from tvm_serenity.cycles.core import core_names, core_timing
from tvm_serenity.firmware import kernels as folders
from tvm_serenity.firmware.board.execute import ICOUNT_SHIFT, emulated
from tvm_serenity.firmware.board.fit import flash_of
from tvm_serenity.firmware.emit.buildfiles import flags, linked
from tvm_serenity.firmware.emit.c import array_definition
from tvm_serenity.firmware.emit.linker import linker_script
from tvm_serenity.firmware.emit.sources import board_port, kernels_header, kernels_source
from tvm_serenity.firmware.isa import ANY, Extensions
from tvm_serenity.firmware.kernels import all_kernels
from tvm_serenity.firmware.kernels.candidates import Layer, unpriced
from tvm_serenity.firmware.kernels.coded import CODE, WEIGHTS, coded
from tvm_serenity.firmware.kernels.parts.calls import COUNT
from tvm_serenity.firmware.kernels.parts.layer import PlainLayer
from tvm_serenity.firmware.kernels.prices import CORES, TABLE, Row, cores, table_of
from tvm_serenity.firmware.kernels.record import LibraryCall, NotCovered
from tvm_serenity.firmware.program import Program
from tvm_serenity.firmware.select import library
from tvm_serenity.kernels.convolution import Convolution
from tvm_serenity.kernels.records import (
    AveragePool,
    BatchMatmul,
    MaxPool,
    Pair,
    Requantise,
    RowSoftmax,
)
from tvm_serenity.operators.add import sum_of
from tvm_serenity.quantize.fixed import multiplier
from tvm_serenity.quantize.params import Affine

FOLDERS = Path(folders.__file__).parent
LAYERS, CHECKED = 480, 120
FIRST_CHECKED = 1_000_000
KINDS = (
    *("plain", "windows", "apart", "joined", "few", "plain", "dense", "apart", "few", "windows"),
    *("plain", "joined", "windows", "apart"),
)
"""Few: windows of few inputs, as first layers have; joined: of tensors that were a concat."""
DECODED = 12
"""Layers whose weights are decoded for the cost of a byte."""
ENOUGH = 30
"""Measurements of a kind for which further layers are drawn."""
FEWEST = 6
"""Measurements of a kind of kernels that are enough for prices."""
BATCH = 60
"""Layers of one program."""
MOST_PRODUCTS = 250_000
BUFFER = 160_000
PRICED = ("cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m55", "rv32imc")
"""Cores that are priced, on the machine of QEMU that their files name."""
FLAGS = "-std=gnu11 -O2 -ffp-contract=off -w"
MAIN = """
#include "net_kernels.h"
#include "port.h"
__attribute__((aligned(16))) static uint8_t in[BUFFER], out[BUFFER], work[BUFFER];
__attribute__((aligned(16))) static uint8_t held[BUFFER];
static const uint32_t one = 1;
static uint64_t took[CALLS + 1];
__attribute__((noinline)) void nothing(void) { __asm volatile(""); }
__attribute__((noinline)) void calls(void)
{
    uint64_t before;
    BEGIN nothing(); END(CALLS)
%s
    __asm volatile(""); /* the last call returns to here */
}
int main(void)
{
    START_CLOCK
    uint32_t seed = 1;
    for (int i = 0; i < BUFFER; ++i) {
        seed = seed * 1664525u + 1013904223u;
        in[i] = (uint8_t)(seed >> 24);
        held[i] = (uint8_t)(seed >> 16) %% 16;
    }
    calls();
    for (int i = 0; i <= CALLS; ++i) port_report("ticks", took[i]);
    return 0;
}
"""


@dataclass(frozen=True)
class Wanted:
    """What a layer is drawn to be, where that is rare: None and nothing: as networks have them.

    ``ragged``: pixels are no whole words; ``large``: sums are shifted to the left; ``zeros``: the
    share of weights that are 0.
    """

    dtype: str = ""
    what: str = ""
    narrow: bool | None = None
    ragged: bool | None = None
    joined: bool | None = None
    large: bool = False
    zeros: float = 0.0


RARE = tuple(
    Wanted(dtype, what, narrow, ragged, joined, large)
    for dtype in ("int8", "uint8")
    for what in ("plain", "windows")
    for joined in (False, True)
    for ragged in (False, True)
    for narrow, large in ((True, False), (False, True), (False, False))
) + tuple(Wanted(dtype, "apart", narrow=True) for dtype in ("int8", "uint8"))
RARE += tuple(
    Wanted(dtype, what, narrow=narrow, zeros=zeros)
    for narrow in (False, True)
    for dtype in ("int8", "uint8")
    for what in ("plain", "dense")
    for zeros in (0.5, 0.75, 0.9)
)


@dataclass(frozen=True)
class MeasuredKernel:
    """What one call of a kernel took, and the counts of its work."""

    layer: int
    kind: Row
    counts: list[float]
    instructions: int
    cycles: int


def drawn(seed: int, wanted: Wanted = Wanted()) -> tuple[Convolution, Any, Any]:
    """A layer, its weights and its biases."""
    rng = np.random.default_rng(seed)

    def one(*choices: int) -> int:
        return int(rng.choice(choices))

    dtype = wanted.dtype or ("int8", "int8", "uint8")[seed % 3]
    what = wanted.what or KINDS[seed % len(KINDS)]
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
        if wanted.joined is not None:
            pieces = one(2, 3, 4) if wanted.joined else 1
        if wanted.ragged is not None:
            ins = one(6, 9, 13, 18, 27, 50) if wanted.ragged else -(-ins // 4) * 4
        if wanted.narrow and what != "apart":
            outs = max(outs, -(-300 // (kh * kw * ins * pieces)))
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
        reals = reals * 0 + rng.uniform(1, 1.9) if wanted.large else reals
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
    few = rng.random() < 0.1 if wanted.narrow is None else wanted.narrow
    weights = rng.integers(*((-8, 7) if few else (-127, 127)), shape, endpoint=True)
    if wanted.zeros:
        weights[rng.random(shape) < wanted.zeros] = 0
    bias = rng.integers(-30_000, 30_000, outs)
    return spec, weights.astype(np.int8), bias.astype(np.int32)


def drawn_layers(seed: int, core: Extensions, wanted: Wanted = Wanted()) -> Iterator[Layer]:
    """A drawn layer, whole and by rows."""
    spec, weights, bias = drawn(seed, wanted)
    for by_rows in (False, True):
        if by_rows and spec.output_shape[1] == 1:
            continue
        layer = library._layer(spec if by_rows else library._joined_lines(spec), weights, bias)
        yield replace(layer, by_rows=by_rows, vectors=core.vectors)


def plain_layers(seed: int, core: Extensions) -> Iterator[Layer]:
    """Layers without weights: a sum, a mean of all pixels, a max pool and a product of matrices."""
    rng = np.random.default_rng(seed)
    dtype = ("int8", "uint8")[seed % 2]
    limits = np.iinfo(dtype)
    height, width = (int(n) for n in rng.integers(2, 13, 2))
    shape = (1, height, width, 4 * int(rng.integers(1, 17)))
    zeros = rng.integers(limits.min, limits.max, 3)
    scales = rng.choice([1.0, 0.5, 0.37, 0.051], 3).astype(np.float32)
    a, b, out = (Affine((float(s),), (int(z),), dtype) for s, z in zip(scales, zeros, strict=True))
    summed = sum_of(Pair((shape, shape), (a, b), out, limits.min, limits.max), False)
    yield PlainLayer(summed, shape, (), False, core.vectors)
    yield PlainLayer(summed, shape, (0, 1), True, core.vectors)
    result, window = (1, 1, 1, shape[3]), (height, width)
    mean = AveragePool(
        "NHWC", shape, result, dtype, window, (1, 1), (0, 0, 0, 0), limits.min, limits.max, 0
    )
    yield PlainLayer(mean, shape, (), False, core.vectors)
    (kh, kw), (sy, sx) = rng.integers(1, 5, 2).tolist(), rng.integers(1, 3, 2).tolist()
    height, width, channels = kh + shape[1], kw + shape[2], int(rng.integers(1, 65))
    made = (1, (height - kh) // sy + 1, (width - kw) // sx + 1, channels)
    given = (1, height, width, channels)
    pool = MaxPool(given, made, dtype, (kh, kw), (sy, sx), (1, 1), (0, 0))
    yield PlainLayer(pool, given)
    yield PlainLayer(pool, given, (0,) * kh, True)
    shares = RowSoftmax((1, height, width, channels), dtype, dtype)
    table = (np.asarray([(1 << 31) - 1, 0], np.int32),)
    yield PlainLayer(shares, shares.shape, constants=table)
    yield PlainLayer(shares, shares.shape, (0,), True, constants=table)
    heads, rows, inner, columns = (int(n) for n in rng.integers((1, 2, 4, 4), (4, 9, 161, 161)))
    if seed % 4:
        inner, columns = -(-inner // 16) * 16, -(-columns // 16) * 16
    flip = (False, bool(seed & 1))
    second = (1, heads, columns, inner) if flip[1] else (1, heads, inner, columns)
    byte = replace(a, dtype="int8", zero_points=(3,))
    tokens_first = (0, 2, 1, 3)
    shapes, axes = ((1, heads, rows, inner), second), (tokens_first,) * 3
    product = BatchMatmul(shapes, flip, (byte, byte), replace(byte, scales=(1e3,)), axes=axes)
    yield PlainLayer(product, product.shape)
    yield PlainLayer(product, product.shape, (0,), True)


def kernels(
    seed: int, core: Extensions, wanted: Wanted = Wanted()
) -> Iterator[tuple[Layer, LibraryCall]]:
    """All kernels of a drawn layer, whole and by rows."""
    layers = list(drawn_layers(seed, core, wanted))
    for layer in [*layers, *(plain_layers(seed, core) if wanted == Wanted() else ())]:
        try:
            for made in unpriced("k", layer, core):
                yield layer, made
        except NotCovered:
            continue


@dataclass(frozen=True)
class Sample:
    """A kernel of a drawn layer; ``number``: of the layer."""

    number: int
    layer: Layer
    made: LibraryCall

    @property
    def kind(self) -> Row:
        """Which row of a table prices it."""
        form = self.made.form
        return form.kernel.name, form.kernel.case(self.layer, form.options)

    @property
    def counts(self) -> list[float]:
        """The counts of its work."""
        return self.made.form.kernel.counts(self.layer, self.made.form.options)

    @property
    def driven(self) -> bool:
        """Whether its constants decide how much it does."""
        return self.made.form.kernel.driven or self.made.form.options.coded

    @property
    def row_bytes(self) -> int:
        """What lies between two operands."""
        layer = self.layer
        shape = layer.shape if isinstance(layer, PlainLayer) else layer.spec.pieces[0]
        row = shape[2] * shape[3]
        whole = isinstance(layer, PlainLayer) and not layer.by_rows
        return row * shape[1] if whole else row

    def constant(self, number: int, index: int) -> str:
        """The name of the constant that is argument ``index`` of call ``number``."""
        names = [param.name for param in self.made.kernel.params]
        first = min(names.index(name) for name in (WEIGHTS, CODE) if name in names)
        return f"c{number}_{index - first}"

    def constants(self, number: int) -> str:
        """The definitions of the constants of call ``number`` that decide what it does."""
        if not self.driven:
            return ""
        return "".join(
            array_definition(f"c{number}_{i}", np.asarray(array), 4)
            for i, array in enumerate(self.made.constants)
        )

    def call(self, name: str, number: int) -> str:
        """A call: inputs that are as long as rows, one buffer for all constants."""
        given = []
        names = [param.name for param in self.made.kernel.params]
        first = next((i for i, name in enumerate(names) if name in (WEIGHTS, CODE)), 0)
        constants = names[first : first + len(self.made.constants)]
        for index, param in enumerate(self.made.kernel.params):
            if param.name == "out":
                given.append("(void *)out")
            elif param.name == "workspace":
                given.append("(void *)work")
            elif self.driven and param.name in constants:
                given.append(f"(const void *){self.constant(number, len(given))}")
            elif param.name in constants:
                given.append("(const void *)held")
            elif param.name == COUNT:
                given.append("(const void *)&one")
            else:
                at = index * self.row_bytes
                at = at if self.layer.by_rows else -(-at // 16) * 16
                given.append(f"(const void *)(in + {at})")
        return f"    BEGIN net_{name}({', '.join(given)}); END({number})"


def samples(seeds: Iterable[int], core: Extensions, wanted: Wanted = Wanted()) -> list[Sample]:
    """All kernels of drawn layers."""
    return [
        Sample(seed * 2 + layer.by_rows, layer, made)
        for seed in seeds
        for layer, made in kernels(seed, core, wanted)
    ]


def program(drawn: Sequence[Sample], target: Board, folder: Path) -> None:
    """The kernels as one linked program, in the order they are called."""
    texts = [replace(one.made.kernel, name=f"k{i}") for i, one in enumerate(drawn)]
    lines = [one.call(f"k{i}", i) for i, one in enumerate(drawn)]
    written = Program("net", tuple(texts), (), (), (), (), (), (), {})
    (folder / "net_kernels.h").write_text(kernels_header(written))
    (folder / "net_kernels.c").write_text(kernels_source(written))
    ram = next(
        r for r in target.regions if r.kind in ("sram", "dtcm") and r.size_bytes > 4 * BUFFER
    )
    timed = not emulates(target.core.name)
    define = {
        "BUFFER": BUFFER,
        "CALLS": len(drawn),
        "START_CLOCK": "port_clock_start();" if timed else "",
        "BEGIN": "before = port_clock();" if timed else "",
        "END(i)": "took[i] = port_clock() - before;" if timed else "",
    }
    head = "".join(f"#define {name} {value}\n" for name, value in define.items())
    held = "".join(one.constants(i) for i, one in enumerate(drawn))
    (folder / "main.c").write_text(head + "#include <stdint.h>\n" + held + MAIN % "\n".join(lines))
    for name, text in board_port(target.architecture).items():
        (folder / name).write_text(text)
    near = replace(target, regions=(flash_of(target), ram))
    (folder / "link.ld").write_text(linker_script(written, near, 4096))
    command = f"{target.compiler} {flags(target)} {FLAGS} {linked(target)} -T link.ld -o all.elf"
    files = ("net_kernels.c", "main.c", "startup.c", "port_board.c")
    subprocess.run([*command.split(), *files], cwd=folder, check=True)


def emulates(core: str) -> bool:
    """Whether the emulator of ``serenity latency`` prices a core by its table of cycles."""
    return core in core_names() and core_timing(core).model != ""


def counted(target: Board, folder: Path, count: int) -> list[tuple[int, int]]:
    """Instructions and cycles of each call."""
    if emulates(target.core.name):
        names = tuple(f"net_k{i}" for i in range(count))
        found = cycles_of(
            folder / "all.elf", target, MeasuredCall(function="calls", operators=names)
        )
        spent = {part.name: part for part in found.operators}
        return [(spent[n].instructions, round(sum(spent[n].cycles) / 2)) for n in names]
    emulator = architecture(target.architecture).toolchain.emulator
    assert target.qemu is not None
    command = [*emulated(emulator, target.qemu), "-icount", f"shift={ICOUNT_SHIFT}"]
    ran = subprocess.run(
        [*command, "-kernel", "all.elf"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    ticks = [int(line) for line in (ran.stdout + ran.stderr).split() if line.isdigit()]
    assert len(ticks) == count + 1, (ran.stdout + ran.stderr)[-300:]
    tick = 1e9 / emulator.machines[target.qemu] / 2**ICOUNT_SHIFT
    return [(max(round((t - ticks[-1]) * tick), 1),) * 2 for t in ticks[:-1]]


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


def measured(core: str, drawn: Sequence[Sample]) -> list[MeasuredKernel]:
    """What the kernels take on a core."""
    target, found = machine(core), []
    for first in range(0, len(drawn), BATCH):
        batch = drawn[first : first + BATCH]
        with tempfile.TemporaryDirectory(prefix="serenity.") as made_in:
            folder = Path(made_in)
            program(batch, target, folder)
            both = counted(target, folder, len(batch))
        for one, (instructions, cycles) in zip(batch, both, strict=True):
            found.append(MeasuredKernel(one.number, one.kind, one.counts, instructions, cycles))
        print(f"{core}: {len(found)} of {len(drawn)} kernels", file=sys.stderr)
    return found


def code_of(core: str, drawn: Iterable[Sample], kinds: set[Row]) -> dict[Row, dict[str, int]]:
    """The functions of the library that each kind calls, each with its bytes."""
    target, found = machine(core), {}
    for one in drawn:
        if one.kind in kinds and one.kind not in found:
            found[one.kind] = functions(one.made, target)
    return found


def functions(made: LibraryCall, target: Board) -> dict[str, int]:
    """The functions beside itself that a kernel is compiled with."""
    with tempfile.TemporaryDirectory(prefix="serenity.") as made_in:
        folder = Path(made_in)
        written = Program("net", (made.kernel,), (), (), (), (), (), (), {})
        (folder / "net_kernels.h").write_text(kernels_header(written))
        (folder / "net_kernels.c").write_text(kernels_source(written))
        command = f"{target.compiler} {flags(target)} {FLAGS} -c net_kernels.c -o k.o"
        subprocess.run(command.split(), cwd=folder, check=True)
        listed = subprocess.run(
            [
                f"{architecture(target.architecture).toolchain.prefix}nm",
                "--print-size",
                "--size-sort",
                "k.o",
            ],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
    rows = [line.split() for line in listed.stdout.splitlines()]
    return {name: int(size, 16) for _, size, kind, name in rows if kind == "t"}


def rare(drawn: Sequence[Sample], tried: Sequence[Sample]) -> list[Sample]:
    """Further kernels of kinds of which few were drawn."""
    count, chosen = Counter(one.kind for one in drawn), []
    for one in tried:
        if count[one.kind] < ENOUGH:
            chosen.append(one)
            count[one.kind] += 1
    return chosen


def missing(core: Extensions) -> set[Row]:
    """The cases of kernels that a core has no prices for."""
    return {
        (kernel.name, case)
        for kernel in all_kernels()
        if core.isa in kernel.isa
        for case in set(kernel.cases) - set(prices_of(kernel.name).get(core.name, {}))
    }


def wanted_for(core: Extensions, kinds: set[Row]) -> list[Sample]:
    """Kernels of certain kinds, of layers that are drawn for them, enough of each."""
    pool = samples(range(2 * ENOUGH), core)
    for rarely in RARE:
        pool += samples(range(2 * ENOUGH), core, rarely)
    return rare([], [one for one in pool if one.kind in kinds])


def fitted(points: Sequence[MeasuredKernel], unit: str) -> dict[Row, list[float]]:
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
    points: Sequence[MeasuredKernel], prices: Mapping[Row, list[float]], unit: str
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
    points: Sequence[MeasuredKernel], prices: Mapping[Row, list[float]], unit: str
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
    """JSON with two lines for each case."""
    parts = []
    for core in sorted(table):
        rows = [
            f' {json.dumps(case)}: {{"prices": {json.dumps(row["prices"])},\n'
            f'  "code": {json.dumps(row["code"])}}}'
            for case, row in sorted(table[core].items())
        ]
        parts.append(f'"{core}": {{\n' + ",\n".join(rows) + "\n}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def prices_of(kernel: str) -> dict[str, Any]:
    """A kernel's table of prices; none of a new kernel."""
    return dict(table_of(kernel)) if (FOLDERS / kernel / TABLE).is_file() else {}


def store(core: str, prices: Mapping[Row, list[float]], code: Mapping[Row, Any]) -> None:
    """Write prices to the folders of their kernels; those of other cases stay."""
    for name in {kernel for kernel, _ in prices}:
        table = prices_of(name)
        rows = {case: row for (kernel, case), row in prices.items() if kernel == name}
        made = {c: {"prices": row, "code": code[name, c]} for c, row in rows.items()}
        table[core] = table.get(core, {}) | made
        (FOLDERS / name / TABLE).write_text(text_of(table))
    table_of.cache_clear()


def measure(core: str, layers: int, only_missing: bool) -> None:
    """Measure and store the prices of a core's kernels."""
    has, unit = Extensions.of(machine(core).core), unit_of(core)
    if only_missing:
        drawn = wanted_for(has, missing(has))
    else:
        drawn = samples(range(layers), has)
        drawn += rare(drawn, samples(range(layers, 4 * layers), has))
        drawn += wanted_for(has, missing(has))
    prices = fitted(measured(core, drawn), unit)
    store(core, prices, code_of(core, drawn, set(prices)))


def decoding(core: str) -> float:
    """The cost of a byte of coded weights: what dense layers take more with them."""
    has, unit, plain, with_code = Extensions.of(machine(core).core), unit_of(core), [], []
    for one in samples(range(3 * DECODED), has, Wanted("int8", "dense")):
        made = coded(one.made, None)
        if made is not None and one.made.form.kernel.isa == ANY and not one.driven:
            plain.append(one)
            with_code.append(replace(one, made=made))
    several = plain[:DECODED], with_code[:DECODED]
    before, after = ([getattr(p, unit) for p in measured(core, drawn)] for drawn in several)
    sizes = [one.made.constants[0].nbytes for one in several[0]]
    more = np.array(after) - np.array(before)
    fit = np.polyfit(sizes, more, 1)
    return float(f"{fit[0]:.3g}")


def unit_of(core: str) -> str:
    """In what a core is counted."""
    return "cycles" if emulates(core) else "instructions"


def check(core: str) -> list[float]:
    """How far off prices are for layers that were not seen: median, 19 of 20; prints all of it."""
    has, unit = Extensions.of(machine(core).core), unit_of(core)
    points = measured(core, samples(range(FIRST_CHECKED, FIRST_CHECKED + CHECKED), has))
    prices = {
        (kernel.name, case): row["prices"]
        for kernel in all_kernels()
        for case, row in prices_of(kernel.name).get(core, {}).items()
    }
    off, lost = errors(points, prices, unit), regret(points, prices, unit)
    print(
        f"{core}, {unit}: {len(points)} kernels of {CHECKED} other layers: off by "
        f"{100 * statistics.median(off):.1f} % (median), {100 * np.quantile(off, 0.95):.1f} % "
        f"(19 of 20), {100 * max(off):.0f} % (worst); of {len(lost)} choices "
        f"{sum(r == 0 for r in lost)} are the fastest, lost "
        f"{100 * statistics.mean(lost):.2f} % "
        f"(mean), {100 * max(lost):.1f} % (worst)"
    )
    both = statistics.median(off), float(np.quantile(off, 0.95))
    return [round(100 * one, 1) for one in both]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("cores", nargs="*", default=list(PRICED))
    options.add_argument("--check", action="store_true")
    options.add_argument("--missing", action="store_true")
    options.add_argument("--decoding", action="store_true", help="only the cost of coded weights")
    options.add_argument("--layers", type=int, default=LAYERS)
    given = options.parse_args()
    known = dict(cores())
    for core in given.cores:
        if given.decoding or not (given.check or given.missing):
            known[core] = {**known.get(core, {}), "decoding": decoding(core)}
            write_cores(known)
        if given.decoding:
            continue
        if not given.check:
            measure(core, given.layers, given.missing)
        if given.missing:
            continue
        error = check(core)
        if not given.check:
            isa = Extensions.of(machine(core).core).isa.name
            made = {"isa": isa, "unit": unit_of(core), "error_percent": error}
            known[core] = {**known[core], **made}
            write_cores(known)


def write_cores(known: Mapping[str, Any]) -> None:
    """Write what is known of each core."""
    rows = [f'"{name}": {json.dumps(row)}' for name, row in known.items()]
    (FOLDERS / CORES).write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
