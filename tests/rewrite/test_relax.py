"""Rewritten modules on the Relax VM: equal to the original, in the arena that was promised."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax, te, tirx
from tvm.relax import op

from tests.cases import sampled
from tests.llvm import TARGET
from tests.passes import nets as pass_nets
from tests.rewrite import nets
from tvm_serenity import zoo
from tvm_serenity.kernels.lean import LEAN
from tvm_serenity.memory import peak_bytes
from tvm_serenity.passes import SerenityPlanMemory, SerenityRewrite, SerenitySchedule
from tvm_serenity.relax.read import read_function
from tvm_serenity.relax.rewrite import force, rewrite_module
from tvm_serenity.relax.schedule import ARENA
from tvm_serenity.rewrite import RULES, RewriteOptions, rule_names
from tvm_serenity.rewrite.rule import Promise
from tvm_serenity.runtime.vm import Run, compare, run
from tvm_serenity.validation.network_inputs import random_inputs


def execute(module: Any, source: Any, pipeline: Any = "default") -> Run:
    return run(
        tvm.compile(module, TARGET, relax_pipeline=pipeline),
        random_inputs(source),
    )


def error(left: Run, right: Run) -> float:
    """The largest difference, relative to the largest output."""
    scale = max(float(np.abs(a.astype(np.float64)).max()) for a in left.outputs)
    return float(compare(left.outputs, right.outputs)["max_abs_error"]) / max(scale, 1e-30)


def weight_bytes(module: Any) -> int:
    """Bytes of all constants that calls of ``main`` name."""
    found: dict[Any, int] = {}

    def visit(expr: Any) -> None:
        if isinstance(expr, tvm.ir.expr.GenericConst):
            found[expr] = expr.value.numpy().nbytes

    relax.analysis.post_order_visit(module["main"], visit)
    return sum(found.values())


def test_the_passes_compose() -> None:
    source = zoo.build("swiftnet-cell-b")
    passes = [SerenityRewrite(), SerenitySchedule(), SerenityPlanMemory()]
    planned = tvm.transform.Sequential(passes)(source)
    ours, stock = execute(planned, source), execute(source, source)
    ordered = SerenityPlanMemory()(SerenitySchedule()(source))
    assert error(stock, ours) < 1e-5
    assert ours.storages[0] == int(planned["main"].attrs[ARENA]) == 150_528
    assert ours.storages[0] < int(ordered["main"].attrs[ARENA])
    assert ours.storages[1:] == (62_720,)


@pytest.mark.parametrize("spec", sampled(["swiftnet-cell-a", "darts-normal-cell", "randwire"], 1))
def test_zoo_networks_compute_the_same_in_less(spec: str) -> None:
    source = zoo.build(spec)
    rewritten, done = rewrite_module(source)
    assert done.found is not None
    graph = read_function(rewritten).graph
    assert peak_bytes(graph) == done.found.best.peak_bytes
    assert all(not op.workspace_bytes for op in graph.ops)
    pipeline = relax.get_pipeline("serenity", validate=False)
    before, after = execute(source, source, pipeline), execute(rewritten, source, pipeline)
    assert error(before, after) < 1e-5
    assert after.storages[0] < before.storages[0]
    assert after.storages[1:] == before.storages[1:]
    assert weight_bytes(rewritten) <= weight_bytes(source)


def test_the_pipeline_has_an_option() -> None:
    source = zoo.build("swiftnet-cell-c")
    ours = execute(source, source, relax.get_pipeline("serenity", rewrite="all"))
    plain = execute(source, source, relax.get_pipeline("serenity", validate=False))
    assert error(plain, ours) < 1e-5
    assert ours.storages[0] < plain.storages[0] / 4


def test_tvms_own_pipeline_runs_what_overwrites() -> None:
    source = zoo.build("swiftnet-cell-c")
    rewritten = SerenityRewrite()(source)
    assert error(execute(source, source), execute(rewritten, source)) < 1e-5


ALONG_CHANNELS = "residual", "depthwise", "grouped", "dilated", "mixed", "paired"
ALONG_ROWS = "crossed", "stacked"
LAYOUTS = "NCHW", "NHWC"


@pytest.mark.parametrize(
    ("name", "layout"),
    [*sampled(product(ALONG_CHANNELS, LAYOUTS), 4), *sampled(product(ALONG_ROWS, LAYOUTS), 2)],
)
def test_integers_stay_bit_identical_under_all_rules(name: str, layout: str) -> None:
    source = nets.module(nets.NETS[name], layout, "int8")
    made = force(source, "all")
    planned = SerenityPlanMemory()(SerenitySchedule()(made))
    assert compare(execute(source, source).outputs, execute(planned, source).outputs)["identical"]


@pytest.mark.parametrize("seed", sampled(range(16), 4))
def test_random_networks_keep_their_outputs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    layout, dtype = ("NCHW", "NHWC")[seed % 2], ("float32", "int8")[seed // 2 % 2]
    source = nets.module(nets.random_body(1000 + seed), layout, dtype)
    before = execute(source, source)
    for rules in ("all", str(rng.choice(list(RULES)))):
        made = force(source, rules)
        if made is source:
            continue
        assert weight_bytes(made) <= weight_bytes(source)
        after = execute(SerenityPlanMemory()(SerenitySchedule()(made)), source)
        resummed = dtype == "float32" and any(
            RULES[rule].promise is Promise.RESUMMED for rule in rule_names(rules)
        )
        if resummed:
            assert error(before, after) < 1e-5
        else:
            assert compare(before.outputs, after.outputs)["identical"]


def unchanged(module: Any) -> None:
    after = SerenityRewrite()(module)
    tvm.ir.assert_structural_equal(after, module)


def test_symbolic_shapes_are_refused_with_the_reason() -> None:
    source = pass_nets.symbolic()
    unchanged(source)
    assert "symbolic shape" in rewrite_module(source)[1].reason


def test_tuples_are_refused_with_the_reason() -> None:
    source = pass_nets.build("tuples")
    unchanged(source)
    assert rewrite_module(source)[1].reason


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_parts_of_a_split_are_read_where_they_are(layout: str) -> None:
    source = nets.module(nets.shuffled, layout, "int8")
    rewritten, done = rewrite_module(source)
    assert done.found is not None
    forms = {(e.match.rule, e.match.form) for e in done.found.report.applied}
    assert ("no-copies", "read through") in forms
    planned = SerenityPlanMemory()(SerenitySchedule()(rewritten))
    assert compare(execute(source, source).outputs, execute(planned, source).outputs)["identical"]


def test_nothing_gained_leaves_the_module_alone() -> None:
    def body(builder: Any, x: Any) -> Any:
        return pass_nets.conv(builder, x, 4, 3)

    source = pass_nets.module((1, 4, 8, 8), body)
    unchanged(source)
    assert "lowers the peak" in rewrite_module(source)[1].reason


def test_unknown_layouts_are_left_alone() -> None:
    def body(builder: Any, x: Any) -> Any:
        joined = builder.emit(op.concat([x, x], axis=1))
        weight = pass_nets.weight(2, 2, 1, 1, 4, 4)
        return builder.emit(
            op.nn.conv2d(joined, weight, data_layout="NCHW4c", kernel_layout="OIHW4i4o")
        )

    source = pass_nets.module((1, 1, 8, 8, 4), body)
    after, done = rewrite_module(source, RewriteOptions(rules="channelwise"))
    assert after is source
    assert done.found is not None
    assert "layout NCHW4c is not supported" in done.found.report.refused[0].reason


@pytest.mark.parametrize(
    ("index", "finished", "reason"),
    [
        ("int64", False, ""),
        ("int64", True, "no rewrite lowers the peak"),
        ("int32", False, "TVM cannot fuse"),  # TVM's own kernels have extents of 64 bits
    ],
)
def test_kernels_of_the_module_read_pieces_unless_they_are_finished(
    index: str, finished: bool, reason: str
) -> None:
    extents = [tirx.const(extent, index) for extent in (1, 8, nets.SIZE, nets.SIZE)]
    operand = te.placeholder(extents, name="x")
    doubled = te.compute(operand.shape, lambda *at: operand(*at) * 2.0, name="doubled")
    kernel = te.create_prim_func([operand, doubled]).with_attr("global_symbol", "double")
    if finished:
        kernel = kernel.with_attr(LEAN, True)

    def body(w: nets.Writer, x: Any) -> Any:
        joined = w.concat([w.conv(x, 4, 3), w.conv(x, 4)])
        call = relax.call_tir(w.builder.add_func(kernel, "double"), [joined], joined.ty)
        return w.relu(w.emit(call))

    source = nets.module(body)
    rewritten, done = rewrite_module(source)
    assert done.found is not None
    refused = [e.reason for e in done.found.report.refused if e.match.rule == "fold"]
    assert ("'lv7' cannot read pieces" in refused) == finished
    assert done.reason.startswith(reason)
    assert (rewritten is source) == bool(reason)
    assert compare(execute(source, source).outputs, execute(rewritten, source).outputs)["identical"]


def test_a_lowered_module_is_left_alone() -> None:
    source = SerenitySchedule()(pass_nets.build("branches"))
    unchanged(source)
