"""Layers packed for dot products: what they compute, on every unit that this machine has."""

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cases import sampled, scaled
from tests.conformance.case import DIFFERENT, EQUAL
from tests.conformance.counts import generate
from tests.conformance.operators import STRATEGIES
from tests.quantize.running import Machine, assert_exact, integer_module
from tests.rows.nets import model

tvm = pytest.importorskip("tvm")

from tvm_serenity import tvm_targets  # noqa: E402
from tvm_serenity.kernels import dot_shapes, dot_tiles, dot_units, packed  # noqa: E402
from tvm_serenity.kernels.dot_units import Unit, units_of  # noqa: E402
from tvm_serenity.kernels.records import Convolution, Dense, Packed, Requantise  # noqa: E402
from tvm_serenity.operators.weighted import requantised  # noqa: E402
from tvm_serenity.quantize.fixed import multiplier  # noqa: E402
from tvm_serenity.relax.pipeline import Steps, prepared  # noqa: E402
from tvm_serenity.runtime.weights import weight_bytes  # noqa: E402

Array = npt.NDArray[Any]
KWS = "mlperf_tiny/kws_dscnn_int8.tflite"
QUICK = settings(
    max_examples=scaled(5, 100),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)


def runs_here(target: Any) -> bool:
    """Whether this machine has all vector instructions of a target."""
    shown = tvm_targets._shown() or frozenset()
    has = [(v, s) for v, s in tvm_targets.VECTORS.items() if tvm_targets.has_feature(target, v)]
    return bool(has) and all(said in shown for _, said in has)


TARGETS = {
    cpu: target
    for cpu in ("cascadelake", "skylake-avx512", "alderlake", "haswell")
    if runs_here(target := tvm.target.Target({"kind": "llvm", "mcpu": cpu}))
}
"""Those of the kinds of units that run here: 512 and 256 bits, four bytes and pairs of 16 bits."""
UNITS = {unit.name: (unit, target) for target in TARGETS.values() for unit in units_of(target)}
some_units = pytest.mark.skipif(not UNITS, reason="no dot products on this machine")


@st.composite
def layers(draw: Any) -> Convolution | Dense:
    """A convolution of one or two pieces, or a dense layer, of any 8-bit types."""

    def number(low: int, high: int) -> int:
        return int(draw(st.integers(low, high)))

    dtype, weights = (draw(st.sampled_from(("int8", "uint8"))) for _ in range(2))
    channels = number(1, 40)
    reals = np.linspace(2e-4, 3e-3, channels if draw(st.booleans()) else 1)
    low = int(np.iinfo(dtype).min)
    finish = Requantise(multiplier(reals.tolist()), low + 100, low + number(0, 9), low + 250, dtype)
    zero = 0 if weights == "int8" else number(0, 255)
    if draw(st.booleans()):
        rows, inputs = number(1, 20), number(1, 40)
        return Dense(rows, inputs, channels, dtype, weights, zero, finish)
    n, height, width = number(1, 2), number(6, 9), number(6, 20)
    pieces = tuple((n, height, width, number(1, 13)) for _ in range(number(1, 2)))
    return Convolution(
        layout="NHWC",
        pieces=pieces,
        dtype=dtype,
        weight_shape=(number(1, 3), number(1, 3), sum(p[3] for p in pieces), channels),
        weight_dtype=weights,
        strides=(number(1, 2), number(1, 3)),
        padding=(number(0, 2), number(0, 2), number(0, 2), number(0, 2)),
        dilation=(number(1, 2), number(1, 2)),
        groups=1,
        input_zero=low + number(0, 255),
        weight_zero=zero,
        requantise=finish,
    )


def drawn(spec: Convolution | Dense, seed: int) -> tuple[list[Array], Array, Array]:
    """Inputs, weights and biases of a layer."""
    rng = np.random.default_rng(seed)

    def filled(shape: tuple[int, ...], dtype: str) -> Array:
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max + 1, shape).astype(dtype)

    shapes: list[tuple[int, ...]]
    weight_shape: tuple[int, ...]
    if isinstance(spec, Dense):
        shapes, weight_shape = [(spec.rows, spec.inputs)], (spec.inputs, spec.units)
    else:
        shapes, weight_shape = list(spec.pieces), spec.weight_shape
    bias = rng.integers(-99999, 99999, weight_shape[-1]).astype(np.int32)
    inputs = [filled(shape, spec.dtype) for shape in shapes]
    return inputs, filled(weight_shape, spec.weight_dtype), bias


def by_definition(
    spec: Convolution | Dense, inputs: list[Array], weight: Array, bias: Array
) -> Array:
    """The layer in numpy, window by window."""
    factors = weight.astype(np.int64) - spec.weight_zero
    if isinstance(spec, Dense):
        return requantised(inputs[0].astype(np.int64) @ factors + bias, spec.requantise)
    top, left, bottom, right = spec.padding
    around = ((0, 0), (top, bottom), (left, right), (0, 0))
    joined = np.concatenate(inputs, axis=3).astype(np.int64)
    image = np.pad(joined, around, constant_values=spec.input_zero)
    (kh, kw), (sy, sx), (dy, dx) = spec.weight_shape[:2], spec.strides, spec.dilation
    sums = np.zeros(spec.output_shape, np.int64) + bias
    _, rows, columns, _ = spec.output_shape
    for y in range(rows):
        for x in range(columns):
            at = image[:, y * sy : y * sy + dy * kh : dy, x * sx : x * sx + dx * kw : dx]
            sums[:, y, x] += np.tensordot(at, factors, 3)
    return requantised(sums, spec.requantise)


def compiled(kernel: Any, target: Any) -> Any:
    """The library of one kernel."""
    named = kernel.with_attr("global_symbol", "main")
    return tvm.compile(tvm.IRModule({"main": named}), target=target)


def apart(spec: Convolution | Dense, unit: Unit, target: Any, seed: int = 0) -> list[str]:
    """The forms of a packed layer that compute something else than its definition."""
    made = packed.packed_spec(spec, unit)
    inputs, weight, bias = drawn(spec, seed)
    constants = packed.packed_constants(made, spec.requantise, weight, bias)
    wanted = by_definition(spec, inputs, weight, bias)
    shape = made.stored_shape(made.output_shape)
    wrong = []
    forms = {"expression": packed.packed(made), "tiles": dot_tiles.dot_tiles(made)}
    for name, kernel in forms.items():
        out = tvm.runtime.tensor(np.full(shape, 77, spec.dtype))
        given = [tvm.runtime.tensor(a) for a in (*inputs, *constants)]
        compiled(kernel, target)["main"](*given, out)
        if not np.array_equal(out.numpy(), wanted.reshape(shape)):
            wrong.append(name)
    return wrong


@some_units
@pytest.mark.parametrize("name", sampled(UNITS, 2))
def test_packed_layers_are_what_they_were(name: str) -> None:
    unit, target = UNITS[name]

    @QUICK
    @given(layers())
    def check(spec: Convolution | Dense) -> None:
        assert apart(spec, unit, target) == []

    check()


WIDE = Convolution(
    layout="NHWC",
    pieces=((1, 6, 9, 6),),
    dtype="int8",
    weight_shape=(3, 3, 6, 21),
    weight_dtype="uint8",
    strides=(1, 1),
    padding=(1, 1, 1, 1),
    dilation=(1, 1),
    groups=1,
    input_zero=-7,
    weight_zero=90,
    requantise=Requantise(multiplier([1e-3]), 3, -128, 127, "int8"),
)
"""A layer of which every part is needed: borders, rests of channels, corrections."""


OF_OFFSETS = {
    "tvm_serenity.kernels.dot_tiles.correction",
    "tvm_serenity.kernels.dot_units.Unit.offset",
}
"""What only units change that take values of the other sign."""


_VALUES = Unit.values


def _fewer_values(unit: Unit, buffer: Any, at: Any, count: int, dtype: str) -> Any:
    return _VALUES(unit, buffer, at, max(count - 1, 1), dtype)


@some_units
@pytest.mark.parametrize(
    ("where", "fault"),
    [
        ("tvm_serenity.kernels.dot_tiles.correction", lambda _spec: 0),
        ("tvm_serenity.kernels.dot_tiles._row_inside", lambda _kernel, _row: None),
        ("tvm_serenity.kernels.dot_tiles._table", lambda *_given: None),
        ("tvm_serenity.kernels.dot_units.Unit.offset", lambda _unit, _dtype: 0),
        ("tvm_serenity.kernels.dot_units.Unit.values", _fewer_values),
    ],
    ids=["correction", "rows outside", "columns outside", "sign", "rest of channels"],
)
def test_a_fault_is_found(where: str, fault: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    unit, target = UNITS["vnni512" if "vnni512" in UNITS else next(iter(UNITS))]
    if where in OF_OFFSETS and not unit.offset(WIDE.dtype):
        pytest.skip(f"{unit.name} multiplies values as they are: it has no offset to correct")
    assert apart(WIDE, unit, target) == []
    monkeypatch.setattr(where, fault)
    assert "tiles" in apart(WIDE, unit, target)


@pytest.mark.parametrize(
    ("kind", "cpu"), sampled(product(["CONV_2D", "FULLY_CONNECTED"], TARGETS), 3)
)
def test_operators_are_those_of_litert(
    kind: str, cpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = partial(Machine, target=TARGETS[cpu])
    monkeypatch.setattr("tests.conformance.case.Machine", machine)
    found = generate(STRATEGIES[kind], scaled(10, 60), 3)
    integers = [v for case, v in found if case.note.startswith(("int8", "uint8"))]
    assert [v.reason for v in integers if v.status == DIFFERENT] == []
    assert EQUAL in {v.status for v in integers}


def kinds(target: Any, name: str = KWS, **steps: Any) -> list[str]:
    """What packed kernels of a model are packed for."""
    from tvm_serenity.frontends.relax import to_relax
    from tvm_serenity.kernels.spec_read import kind_of, spec_of

    made = prepared(to_relax(model(name)), Steps(**steps), target)
    kernels = [f for f in made.plain.functions.values() if kind_of(f) == Packed.__name__]
    return [spec_of(kernel).unit for kernel in kernels]


def kind_of_cpu(cpu: str, **steps: Any) -> set[str]:
    return set(kinds(tvm.target.Target({"kind": "llvm", "mcpu": cpu}), **steps))


def test_a_target_has_the_units_of_its_instructions() -> None:
    from tvm_serenity.kernels.tile import SCALAR

    assert kind_of_cpu("cascadelake") == {"vnni512"}
    assert kind_of_cpu("alderlake") == {"vnni256"}
    assert kind_of_cpu("skylake-avx512") == {"madd512"}
    assert kind_of_cpu("haswell") == {"madd256"}
    assert kinds(tvm.target.Target("llvm")) == []
    assert kind_of_cpu("cascadelake", lean=False) == set()
    assert kind_of_cpu("cascadelake", tiling=SCALAR) == set()
    thumb = {"kind": "llvm", "mtriple": "thumbv7em-none-eabi", "mcpu": "cortex-m7"}
    assert units_of(tvm.target.Target(thumb)) == ()
    assert units_of(tvm.target.Target("c")) == ()
    arm = {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mattr": ["+neon", "+dotprod"]}
    assert [unit.name for unit in units_of(tvm.target.Target(arm))] == ["sdot", "smull"]


@pytest.mark.parametrize(
    ("cpu", "instruction"),
    [
        ("cascadelake", "vpdpbusd\t%zmm"),
        ("alderlake", "vpdpbusd\t%ymm"),
        ("skylake-avx512", "vpmaddwd\t%zmm"),
        ("haswell", "vpmaddwd\t%ymm"),
    ],
)
def test_kernels_are_of_the_instructions(cpu: str, instruction: str) -> None:
    target = tvm.target.Target({"kind": "llvm", "mcpu": cpu})
    made = packed.packed_spec(WIDE, units_of(target)[0])
    text = str(compiled(dot_tiles.dot_tiles(made), target).mod.inspect_source("asm"))
    assert text.count(instruction.partition("\t")[0]) > 20
    assert instruction.partition("%")[2] in text


def test_tiles_fit_into_the_registers() -> None:
    for unit in dot_units.UNITS:
        for columns in (1, 2, 5, 7, 32, 125, 3000):
            for channels in (1, 2, 3, 5, 16):
                for extra in (False, True):
                    tile = dot_shapes.tile_for(unit, columns, channels, extra)
                    assert 1 <= tile.columns <= columns
                    assert 1 <= tile.vectors <= channels
                    held = tile.columns * (tile.vectors + extra) + tile.vectors + 2
                    assert held <= unit.registers


@pytest.mark.parametrize("cpu", [cpu for cpu in ("cascadelake", "haswell") if cpu in TARGETS])
def test_a_network_is_exact_and_its_packed_weights_are_counted(cpu: str, tmp_path: Any) -> None:
    from tvm_serenity.frontends.relax import to_relax

    data = model(KWS).read_bytes()
    assert_exact(data, integer_module(data, tmp_path), (0, "min", "max"), target=TARGETS[cpu])
    fresh = to_relax(model(KWS))
    bytes_of = {c: weight_bytes(prepared(fresh, Steps(), t).plain) for c, t in TARGETS.items()}
    usual = weight_bytes(prepared(fresh, Steps(), "llvm").plain)
    assert bytes_of[cpu] > usual  # 12 classes fill 16 channels


def called(kernel: Any, spec: Convolution, result: tuple[int, ...]) -> Any:
    """A module that calls a kernel of a layer of one input and one multiplier."""
    from tvm import relax

    from tvm_serenity import compat

    _, weight, bias = drawn(spec, 0)
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(spec.pieces[0], spec.dtype))
    with builder.function("main", [x]):
        with builder.dataflow():
            held = [x, compat.constant(weight), compat.constant(bias)]
            call = builder.emit(compat.call_kernel(builder, kernel, "layer", held))
            assert tuple(compat.static_shape(call.ty, "result")) == result
            made = builder.emit_output(call)
        builder.emit_func_output(made)
    return builder.get()


def test_a_layer_that_makes_a_part_of_a_tensor_stays() -> None:
    from tvm_serenity.kernels.convolution import convolution
    from tvm_serenity.kernels.shared_storage import into_part
    from tvm_serenity.relax.pack_weights import pack_weights

    target, shape = tvm.target.Target({"kind": "llvm", "mcpu": "cascadelake"}), (1, 6, 9, 40)
    kernel = convolution(WIDE)
    whole = called(kernel, WIDE, WIDE.output_shape)
    assert pack_weights(whole, target) is not whole
    part = called(into_part(kernel, shape, 3, 4, begun=False), WIDE, shape)
    assert pack_weights(part, target) is part
