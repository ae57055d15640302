"""Options of ``serenity build`` drawn together, on networks drawn at random.

A combination is built, and then equal to TVM's kernels and the model's runtime, or it is refused by
the name of an option. ``run`` is the part "options" of ``benchmarks/conformance.py``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from tests.conformance.builder import Net
from tests.conformance.case import DIFFERENT, EQUAL, REFUSED, Case, Verdict
from tests.conformance.counts import Counts, generate_all
from tests.conformance.networks.mobile import inverted
from tests.conformance.networks.parts import classifier, squeezed, swish
from tests.conformance.operators.draws import Draw
from tests.conformance.quantise import dynamic_file, integer_file, ranges
from tests.conformance.random_networks import cases
from tests.quantize.running import REFERENCE
from tvm_serenity import firmware
from tvm_serenity.errors import FitError, InputError, SerenityError
from tvm_serenity.validation.references import ReferenceRuntimeError

BOARDS = ("mps2-an385", "mps2-an386", "mps2-an500", "mps3-an547", "rpi-pico")
"""One a kind of kernels: plain, DSP, two issues a cycle, vectors, Cortex-M0."""

BOTH: Mapping[str, Mapping[str, Any]] = {
    "--overlap": {"overlap": True},
    "--workspace": {"workspace": "grow"},
    "--quantized": {"quantized": "off"},
    "--channels": {"channels": "keep"},
    "--external-arena": {"external_arena": True},
    "--dynamic-range": {"dynamic_range": "float"},
    "--format mlf": {"format": "mlf"},
    "--format zephyr": {"format": "zephyr"},
    "--format arduino": {"format": "arduino"},
    "--ram": {"ram_bytes": 24_000},
    "--arena-limit": {"arena_limit_bytes": 16_000},
    "--stack": {"stack_bytes": 3_000},
}
"""Options that networks take whole and by rows."""
WHOLE: Mapping[str, Mapping[str, Any]] = {
    "--in-place": {"in_place": True},
    "--rewrite": {"rewrite": "all"},
    "--order": {"order": "given"},
    "--constants": {"constants": "ram"},
    "--codegen": {"codegen": "llvm"},
}
BY_ROWS: Mapping[str, Mapping[str, Any]] = {
    "--rows": {"rows": 1},
    "--rows 3": {"rows": 3},
    "--rows auto": {"rows": "auto"},
    "--stream-input": {"stream_input": True},
    "--recompute": {"recompute": 1.5},
    "--sliding": {"sliding": 2},
    "--windows": {"sliding": 1, "windows": 12},
}
LIMITS = ("--ram", "--arena-limit")
"""Options beside which a network may not fit."""


@dataclass(frozen=True, repr=False)
class OptionsCase(Case):
    """A model, and the options it is built with by their names."""

    board: str = BOARDS[0]
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def said(self) -> Mapping[str, Any]:
        """The fields of the settings."""
        return {k: v for option in self.options.values() for k, v in option.items()}


def check(case: OptionsCase) -> Verdict:
    """Return what became of a network built with options."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "drawn.tflite"
        path.write_bytes(case.data)
        try:
            settings = firmware.Settings(name="drawn", time_limit_s=2.0, **case.said)
            firmware.build(path, case.board, settings)
        except FitError as error:
            if any(name in case.options for name in LIMITS):
                return Verdict(REFUSED, f"does not fit: {error}".partition(":")[0])
            return Verdict(DIFFERENT, f"FitError: {error}")
        except InputError as error:
            return _refusal(case, path, str(error))
        except Exception as error:
            return Verdict(DIFFERENT, f"{type(error).__name__}: {error}")
    return Verdict(EQUAL)


def _refusal(case: OptionsCase, path: Path, said: str) -> Verdict:
    """A refusal names an option, or the network is refused without any."""
    if any(name.partition(" ")[0] in said for name in case.options):
        return Verdict(REFUSED, said.replace(str(path), "FILE"))
    try:
        firmware.build(path, BOARDS[0], firmware.Settings(check=False))
    except SerenityError as error:
        return Verdict(REFUSED, f"without options too: {error}".replace(str(path), "FILE"))
    return Verdict(DIFFERENT, f"refused, and no option is named: {said}")


def blocks(d: Draw) -> Net:
    """A small network of the blocks of mobile ones: inverted, squeezed, gated, branching."""
    net = Net(d.number(0, 2**20))
    side = d.one((6, 8, 9, 12))
    x = net.conv(net.input(1, side, side, d.one((1, 3))), d.one((4, 8)), 3, d.one((1, 2)))
    for _ in range(d.number(1, 3)):
        channels = net.shape(x)[3]
        kind = d.one(("inverted", "squeezed", "swish", "branches", "squeezed block"))
        if kind == "inverted":
            x = inverted(net, x, 2 * channels, d.one((channels, 8)), d.one((1, 2)))
        elif kind == "squeezed":
            x = squeezed(net, x, 4, d.one(("LOGISTIC", "hard")))
        elif kind == "swish":
            x = swish(net, x)
        elif kind == "branches":
            pooled = net.conv(net.pool("MAX", x, 3, 1, "SAME"), 4, 1)
            x = net.concat(net.conv(x, 4, 1), net.conv(x, 4, 3), pooled)
        else:
            y = net.unary("HARD_SWISH", net.depthwise(net.conv(x, 2 * channels, 1), 3))
            x = net.add(x, net.conv(squeezed(net, y, 4), channels, 1))
    if d.chance():
        return classifier(net, x, keep=d.chance())
    net.output(net.conv(x, 4, 1))
    return net


def options(d: Draw) -> dict[str, Mapping[str, Any]]:
    """Draw options: of whole networks or of rows, at times of both."""
    known = {**BOTH, **d.one((WHOLE, WHOLE, BY_ROWS, {**WHOLE, **BY_ROWS}))}
    any_of_them = d.number(0, 9) == 0
    found: dict[str, Mapping[str, Any]] = {}
    for name in d.shuffled(tuple(known))[: d.number(3, 9)]:
        taken = {key for fields in found.values() for key in fields}
        if taken & set(known[name]) or not (any_of_them or _goes_with(found, known[name])):
            continue
        found[name] = known[name]
    return found


def _goes_with(found: Mapping[str, Mapping[str, Any]], more: Mapping[str, Any]) -> bool:
    """Whether an option goes with those drawn so far."""
    try:
        firmware.Settings(**{k: v for one in (*found.values(), more) for k, v in one.items()})
    except InputError:
        return False
    return True


@st.composite
def drawn(draw: st.DrawFn, of_blocks: bool) -> OptionsCase:
    """A network and its options."""
    d = Draw(draw)
    chosen, board = options(d), d.one(BOARDS)
    note = f"{board} {' '.join(chosen)}"
    if not of_blocks:
        case = draw(cases())
        return OptionsCase(
            "any network", case.data, f"{note}; {case.note}", board=board, options=chosen
        )
    net = blocks(d)
    try:
        if d.number(0, 5) == 0:
            data = dynamic_file(net, d.chance(), 8)
        else:
            data = integer_file(net, ranges(net, REFERENCE), d.one(("int8", "int8", "uint8")))
    except ReferenceRuntimeError:
        assume(False)
    kinds = " ".join(step.kind for step in net.steps)
    return OptionsCase("blocks", data, f"{note}; {kinds}", board=board, options=chosen)


STRATEGIES = {"blocks": drawn(of_blocks=True), "any network": drawn(of_blocks=False)}


def run(seconds: float, seed: int, folder: Path | None = None) -> Counts:
    """Return what became of options and networks drawn for so many seconds."""
    return generate_all(STRATEGIES, seconds, seed, folder, check)
