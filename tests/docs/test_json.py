"""What commands print with ``--json`` is what docs/reference/json.md says, key by key."""

import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tvm")
pytest.importorskip("tflite")
pytest.importorskip("onnxruntime")

from tests.conformance.builder import Net
from tests.conformance.quantise import integer_file
from tests.conformance.writer import Node, Subgraph, T, tflite
from tests.docs.json_tables import Tables, tables
from tests.firmware.test_states_in_place import cached
from tests.frontends.programs import program
from tests.frontends.test_tflite_interface import edged
from tests.onnx_session.nets import wired
from tests.quantize.test_operators import IMAGE, conv, weights
from tests.rows.nets import random_module  # noqa: F401  (imports TVM once, before the clock)
from tvm_serenity.cli import app
from tvm_serenity.cli.commands import register
from tvm_serenity.errors import MissingPartError

register()

CELL = "zoo:swiftnet-cell-c"
BOARD = ("--board", "mps2-an386")
AGAIN = ("--rows", "1", "--recompute", "1.5")
RUNS: dict[str, tuple[tuple[str, ...], ...]] = {
    "zoo": (("zoo",),),
    "boards": (("boards",), ("boards", "nucleo-l4r5zi", "--fits", "conv.tflite")),
    "schedule": (
        ("schedule", "conv.tflite", "--certificate", "certificate.json"),
        ("schedule", "conv.tflite", "--plan", "tflm", "-o", "planned.tflite"),
        ("schedule", "program.pte"),
    ),
    "schedule-for-onnxruntime": (
        ("schedule", "wired.onnx", "-o", "ordered.onnx", "--for", "onnxruntime"),
    ),
    "check": (("check", "conv.tflite", "certificate.json"),),
    "inspect": (("inspect", "conv.tflite"), ("inspect", "program.pte")),
    "interface": (("interface", "edges.tflite", "-o", "stored.tflite"),),
    "explain": (
        ("explain", "conv.tflite", "--board", "microbit"),
        ("explain", CELL, "--board", "microbit"),
        ("explain", CELL, "--board", "mps2-an386"),
        ("explain", "barren.tflite"),
        ("explain", "two.tflite"),
        ("explain", "kept.tflite"),
    ),
    "rewrite": (
        ("rewrite", CELL),
        ("rewrite", "copies.txt", "--rules", "no-copies"),
        ("rewrite", "zoo:randwire?n=12&channels=16", "--time-limit", "1"),
    ),
    "report": (("report", "conv.tflite", "--sliding", "2"),),
    "paper": (("paper", "liberis-lane", "--table", "1"),),
    "paper-without-a-number": (("paper", "serenity"),),
    "plan": (("plan", "buffers.csv"), ("plan", "buffers.csv", "--capacity", "7")),
    "offchip": (
        ("offchip", "conv.tflite", "--energy", "dram-45nm"),
        (
            *("offchip", "conv.tflite", "--orders", "given", "--capacities", "1M"),
            *("--block", "tensor", "--memory", "scratchpad", "--plan", "plan.json"),
        ),
    ),
    "check-of-a-plan": (("check", "conv.tflite", "plan.json"),),
    "offchip---order-for-traffic": (
        ("offchip", "conv.tflite", "--order-for", "traffic", "--capacity", "1K"),
    ),
    "sparse-order": (("sparse", "order", "--mlp", "6x2", "--density", "0.5", "--bound"),),
    "sparse-grow": (("sparse", "grow", "--memory", "8", "--neurons", "20"),),
    "sparse-build": (
        ("sparse", "build", "--mlp", "6x2", "--density", "0.5", *BOARD, "-o", "mlp"),
        (
            *(
                "sparse",
                "build",
                "--mlp",
                "6x2",
                "--density",
                "0.5",
                "-o",
                "mlp2",
                "--stack",
                "60K",
            ),
            *("--cpu", "cortex-m4", "--ram", "1K", "--flash", "64K"),
        ),
    ),
    "sparse-bench": (("sparse", "bench", "--mlp", "16x2", "--density", "0.5", "--repeats", "1"),),
    "rows": (
        ("rows", "conv.tflite", "--curve", "--time-limit", "0.1", "--certificate", "bands.json"),
        ("rows", "wide.tflite", *AGAIN),
    ),
    "rows---sliding": (
        ("rows", "conv.tflite", "--sliding", "2", "--curve", "--causal", "past.tflite"),
        ("rows", "conv.tflite", "--sliding", "2", "--run"),
    ),
    "compile": (
        ("compile", "conv.tflite", "-o", "library"),
        ("compile", "conv.tflite", "--rows", "1", "--no-check", "--time-limit", "0.1"),
        ("compile", "conv.tflite", "--rewrite", "--no-check", "--time-limit", "0.1"),
        ("compile", "barren.tflite", "--no-check"),
        ("compile", "conv.tflite", "--target", "llvm", "--no-check", "--tuned", "forms.json"),
    ),
    "tune": (("tune", "conv.tflite", "-o", "tiles.json", "--trials", "1", "--target", "llvm"),),
    "build": (
        ("build", "conv.tflite", *BOARD, "-o", "whole"),
        ("build", "conv.tflite", *BOARD, "-o", "rows", "--rows", "1", "--no-check"),
        ("build", "wide.tflite", *BOARD, "-o", "again", "--no-check", *AGAIN),
        ("build", "conv.tflite", *BOARD, "-o", "steps", "--sliding", "2", "--no-check"),
        ("build", "conv.tflite", *BOARD, "-o", "none", "--minimise", "off", "--arena-limit", "8"),
        ("build", "conv.tflite", "--board", "nucleo-l4r5zi", "-o", "best", "--no-check"),
        ("build", "barren.tflite", *BOARD, "-o", "fewer", "--no-check"),
        ("build", "barren.tflite", *BOARD, "-o", "data", "--format", "blob"),
        ("build", "conv.tflite", *BOARD, "-o", "slow", "--fast-memory", "1M", "--no-check"),
        ("build", "conv.tflite", "--board", "nucleo-l4r5zi", "-o", "priced", "--no-check", "--why"),
    ),
    "fit": (("fit", "conv.tflite", *BOARD), ("fit", "conv.tflite", "--ram", "1")),
    "fit---boards": (
        ("fit", "conv.tflite", "barren.tflite", "--boards", "microbit", "--time-limit", "20"),
    ),
    "verify": (("verify", "whole"),),
    "run": (("run", "whole", "--host"),),
    "latency": (("latency", "priced", "--hop", "20"), ("latency", "whole")),
}
"""Commands by the heading that says what they print; later ones read what earlier ones wrote."""
OPTIONAL = ("sparse-bench", "tune")
"""Commands whose parts (MKL, xgboost, a version of tvm-ffi) may be missing: they say so."""
NOT_HERE = {("sparse-bench", "missing.*")}
"""Keys that are only there where such a part is missing."""
LISTS = ("offchip",)
COPIES = """graph copies
input x[1,8,8,4]i8
a RELU: x -> y[1,8,8,4]i8
b RELU: x -> z[1,8,8,4]i8
c CONCATENATION: y z -> w[1,8,8,8]i8
d RELU: w -> v[1,8,8,8]i8
output v
"""

FORMS = {
    "rows---sliding",
    "offchip---order-for-traffic",
    "check-of-a-plan",
    "fit---boards",
    "schedule-for-onnxruntime",
    "paper-without-a-number",
}
"""Further tables of commands that have one."""


def barren() -> bytes:
    """Two convolutions; the weights of half of the channels between are 0."""
    net = Net(0)
    x = net.input(1, 4, 4, 2)
    x = net.conv(x, 6, 1, activation="RELU")
    filters = net.values[net.steps[0].inputs[1]].data
    assert filters is not None
    filters[:3] = 0
    net.output(net.conv(x, 3, 1))
    return integer_file(net, dict.fromkeys(range(len(net.values)), (-4.0, 4.0)))


def wide_inside() -> bytes:
    """A block with many channels inside and few outside: its layers are worth computing twice."""
    net = Net(0)
    x = net.conv(net.input(1, 16, 16, 3), 4, 1, activation="RELU")
    x = net.depthwise(net.conv(x, 24, 1, activation="RELU"), 3, activation="RELU")
    net.output(net.conv(x, 4, 1))
    return integer_file(net, dict.fromkeys(range(len(net.values)), (-4.0, 4.0)))


def two_signatures() -> bytes:
    """Two entry points of an operator each."""
    tensors = [T((1, 4), "float32", name=name) for name in "xy"]
    other = Subgraph(tensors, [Node("ABS", [0], [1])], [0], [1], "two")
    return tflite(tensors, [Node("RELU", [0], [1])], [0], [1], [other], "one")


def forms(model: Path, file: Path) -> None:
    """Write that TVM's own schedules are faster for all kernels of a model."""
    import tvm

    from tvm_serenity.frontends.relax import to_relax
    from tvm_serenity.kernels.measured import PLAIN, Form, Measured, key_of, write
    from tvm_serenity.relax.pipeline import Steps, prepared_for_host

    plain = prepared_for_host(to_relax(model), Steps(), tvm.target.Target("llvm")).plain
    kernels = [f for f in plain.functions.values() if isinstance(f, tvm.tirx.PrimFunc)]
    write({key_of(f): Measured(2.0, (Form(None, 1.0, 0),)) for f in kernels}, PLAIN, file)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("json")
    small = T((8, 3, 3, 4), "int8", 0.08, data=weights(8, 3, 3, 4) // 64)
    (made / "conv.tflite").write_bytes(conv(IMAGE, small, T((1, 7, 6, 8), "int8", 0.02, -5)))
    (made / "barren.tflite").write_bytes(barren())
    (made / "wide.tflite").write_bytes(wide_inside())
    (made / "two.tflite").write_bytes(two_signatures())
    cached(made / "kept.tflite")
    (made / "edges.tflite").write_bytes(edged(0))
    wired(made / "wired.onnx", n=8, size=16)
    (made / "program.pte").write_bytes(program())
    (made / "copies.txt").write_text(COPIES)
    forms(made / "conv.tflite", made / "forms.json")
    (made / "buffers.csv").write_text("id,lower,upper,size\na,0,3,4\nb,0,3,4\n")
    return made


@pytest.fixture(scope="module")
def said() -> Tables:
    return tables()


@pytest.fixture(scope="module")
def answers(folder: Path) -> dict[str, list[Any]]:
    """What every command prints, by heading."""
    with contextlib.chdir(folder):
        found = dict(_answers())
    found["certificate"] = [json.loads((folder / "certificate.json").read_text())]
    found["rows-certificate"] = [json.loads((folder / "bands.json").read_text())]
    found["compile"].append(json.loads((folder / "library" / "report.json").read_text()))
    return found


def _answers() -> Iterator[tuple[str, list[Any]]]:
    for heading, runs in RUNS.items():
        try:
            yield heading, [_printed(run) for run in runs]
        except MissingPartError:
            if heading not in OPTIONAL:
                raise


def _printed(command: tuple[str, ...]) -> Any:
    import typer

    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(typer.Exit):
        app([*command, "--json"], standalone_mode=False)
    return json.loads(out.getvalue())


@pytest.mark.parametrize("heading", RUNS)
def test_a_command_prints_what_the_page_says(
    heading: str, answers: dict[str, list[Any]], said: Tables
) -> None:
    if heading not in answers:
        pytest.skip(f"a part of {heading} is not installed")
    for answer in answers[heading]:
        items = answer if heading in LISTS else [answer]
        assert items
        for item in items:
            assert said.check(heading, item) == []


def test_the_page_says_nothing_that_no_command_prints(
    answers: dict[str, list[Any]], said: Tables
) -> None:
    seen: set[tuple[str, str]] = set()
    for heading, found in answers.items():
        for answer in found:
            for item in answer if heading in LISTS else [answer]:
                seen |= said.seen(heading, item)
    left_out = {heading for heading in RUNS if heading not in answers}
    missing = {
        (table, key)
        for table, keys in said.keys.items()
        if table not in left_out
        for key in keys
        if (table, key) not in seen
    }
    assert missing <= NOT_HERE


def test_every_command_with_json_is_on_the_page() -> None:
    import inspect as python

    def takes_json(command: Any) -> bool:
        return "json" in python.signature(command.callback).parameters

    from tvm_serenity.cli.sparse import sparse_app

    names = {str(c.name) for c in app.registered_commands if takes_json(c)}
    names |= {f"sparse-{c.name}" for c in sparse_app.registered_commands if takes_json(c)}
    assert names == set(RUNS) - FORMS


def test_a_key_more_or_less_is_found(said: Tables) -> None:
    good = {"peak_bytes": 1, "arena_bytes": 2}
    assert said.check("before", good) == []
    assert said.check("before", {**good, "more": 1})
    assert said.check("before", {"peak_bytes": 1})
    assert said.check("before", {**good, "peak_bytes": "1"})
    assert said.check("before", {**good, "peak_bytes": True})
    assert said.seen("before", good) == {("before", "peak_bytes"), ("before", "arena_bytes")}
