"""Each rule by itself: what it matches, what it makes of it, what it refuses and why."""

from itertools import product
from typing import Any

import pytest

from tests.rewrite import nets
from tests.rewrite.describe import lines
from tvm_serenity.graph import Graph, Op, Tensor
from tvm_serenity.relax.rewrite_read import prepared, read_net
from tvm_serenity.rewrite import RULES, Match, Net, apply_everywhere, rule_names
from tvm_serenity.rewrite.from_graph import net_of
from tvm_serenity.rewrite.net import Kind, Node
from tvm_serenity.rewrite.rule import Ability, Promise


def net(name: str, layout: str = "NCHW", dtype: str = "float32") -> Net:
    found: Net = read_net(nets.module(nets.NETS[name], layout, dtype), external=False).net
    return found


def only(net: Net, rule: str) -> Match:
    (match,) = RULES[rule].matches(net)
    return match


def test_a_convolution_with_its_bias_and_activation_is_one_op() -> None:
    kinds = [str(node.kind) for node in net("branches").nodes]
    assert kinds == ["conv"] * 4 + ["concat", "conv"]
    int8 = net("branches", dtype="int8")
    assert [str(node.kind) for node in int8.nodes] == kinds
    assert {v.dtype for v in int8.values} == {"int8"}


def test_channelwise_cuts_a_convolution_into_a_sum_in_one_buffer() -> None:
    before = net("branches")
    after, done = apply_everywhere(before, "channelwise")
    out = before.values[before.outputs[0]].name
    made = [line.split(": conv ")[1] for line in lines(after)[4:]]
    assert len(done) == 1
    assert made == [
        f"lv2 -> {out}#0 reads 0:4 sum",
        f"lv5 -> {out}#1 reads 4:8 over {out}#0 sum",
        f"lv8 -> {out}#2 reads 8:12 over {out}#1 sum",
        f"lv11 -> {out} reads 12:16 over {out}#2",
    ]


def test_an_int8_sum_is_four_times_as_wide_and_the_last_term_narrows_it() -> None:
    before = net("branches", dtype="int8")
    after, _ = apply_everywhere(before, "channelwise")
    sums = [v for v in after.values if "#" in v.name]
    made = before.values[before.outputs[0]]
    assert {(v.dtype, v.size_bytes) for v in sums} == {("int32", 4 * made.size_bytes)}
    last = after.nodes[-1]
    assert last.base is None
    assert len(last.addends) == 1


def test_kernelwise_moves_the_concat_down_to_the_next_convolution() -> None:
    after, done = apply_everywhere(net("depthwise"), "kernelwise")
    kinds = [str(n.kind) for n in after.nodes]
    assert [m.rule for m in done] == ["kernelwise"] * len(done)
    assert kinds == ["conv", "conv", "conv", "conv", "pool", "pool", "concat", "conv"]
    both, _ = apply_everywhere(after, "channelwise")
    assert "concat" not in {str(n.kind) for n in both.nodes}


def test_a_residual_add_is_one_more_term() -> None:
    after, done = apply_everywhere(net("residual"), "channelwise,residual")
    assert [m.rule for m in done] == ["channelwise", "residual"]
    assert "add" not in {str(n.kind) for n in after.nodes}
    merged = [n for n in after.nodes if n.base is not None]
    assert len(merged) == 2
    assert len(merged[-1].biases) == 2


def test_a_shortcut_around_joined_branches_is_done_pairwise() -> None:
    after, done = apply_everywhere(net("shortcut"), "pairwise")
    assert [m.rule for m in done] == ["pairwise"]
    made = [line.split(": ", 1)[1] for line in lines(after)[3:]]
    assert made == [
        "add lv5 lv2[0:4] -> lv10@0 reads 0:4",
        "add lv8 lv2[4:8] -> lv10@1 reads 4:8",
        "concat lv10@0+lv10@1 -> lv10",
        "conv lv10 -> gv",
    ]
    apart, _ = apply_everywhere(after, "channelwise,in-place")
    assert [len(n.in_place) for n in apart.nodes if str(n.kind) == "add"] == [1, 1]
    assert "concat" not in {str(n.kind) for n in apart.nodes}


def test_concats_that_are_cut_alike_are_added_pairwise() -> None:
    after, _ = apply_everywhere(net("paired"), "pairwise")
    added = [n for n in after.nodes if str(n.kind) == "add"]
    assert [[o.pieces[0].direct for o in n.operands] for n in added] == [[True, True]] * 2


def test_a_folded_concat_is_read_in_pieces() -> None:
    after, _ = apply_everywhere(net("nested"), "fold")
    assert "concat" not in {str(n.kind) for n in after.nodes}
    assert sorted(len(n.operands[0].pieces) for n in after.nodes) == [1, 1, 1, 1, 2, 3]


def test_pieces_are_written_where_they_belong_and_read_there() -> None:
    after, _ = apply_everywhere(net("dilated"), "no-copies")
    written = [n for n in after.nodes if n.into is not None]
    assert [n.into for n in written] == [(0, 4), (4, 8)]
    assert written[1].base == written[0].output


def test_elementwise_ops_may_overlap_what_dies() -> None:
    source = net("nested")
    after, done = apply_everywhere(source, "in-place")
    assert [m.rule for m in done] == ["in-place"]
    (node,) = [n for n in after.nodes if n.in_place]
    assert str(node.kind) == "add"
    assert len(node.in_place) == 2


@pytest.mark.parametrize(
    ("name", "rule", "reason"),
    [
        ("misaligned", "channelwise", "ends within a group of 4 channels"),
        ("misaligned", "kernelwise", "ends within a group of 4 channels"),
        ("dilated", "fold", "it is an output of the network"),
        ("uneven", "pairwise", "its operands are split at different channels"),
    ],
)
def test_refusals_carry_their_reason(name: str, rule: str, reason: str) -> None:
    found = net(name)
    reasons = [RULES[rule].check(found, m) or "" for m in RULES[rule].matches(found)]
    assert any(reason in r for r in reasons), reasons


def test_concats_along_two_axes_are_not_paired() -> None:
    folded, _ = apply_everywhere(net("crossed"), "fold")
    (match,) = RULES["pairwise"].matches(folded)
    assert RULES["pairwise"].check(folded, match) == "an operand is joined along another axis"


@pytest.mark.parametrize("rule", ["channelwise", "kernelwise"])
def test_a_folded_concat_along_another_axis_is_refused(rule: str) -> None:
    folded, done = apply_everywhere(net("stacked"), "fold")
    assert done
    (match,) = RULES[rule].matches(folded)
    assert RULES[rule].check(folded, match) == "the concat is not along the channels"


def test_requantised_sums_are_never_merged() -> None:
    graph = graph_of("uint8")
    found = net_of(graph)
    match = only(found, "residual")
    reason = RULES["residual"].check(found, match)
    assert reason == "the convolution's sum is rounded to another type before the add"


def test_unknown_weights_and_layouts_are_refused() -> None:
    graph = graph_of("uint8", constant=False)
    found = net_of(graph)
    assert only(found, "channelwise").node == "conv"
    assert RULES["channelwise"].check(found, only(found, "channelwise")) == (
        "its weights are not constants"
    )


def test_a_concat_along_another_axis_is_refused() -> None:
    found = net_of(graph_of("float32", axis=1))
    assert RULES["channelwise"].check(found, only(found, "channelwise")) == (
        "the concat is not along the channels"
    )


def test_names_and_numbers_name_rules() -> None:
    assert rule_names("1,3") == ("channelwise", "residual")
    assert rule_names("all") == tuple(RULES)
    with pytest.raises(Exception, match="no rule 'seven'"):
        rule_names("seven")


@pytest.mark.parametrize("name", RULES)
def test_every_rule_has_a_numbered_specification(name: str) -> None:
    said = RULES[name].specification
    numbers = [line.partition(".")[0] for line in said.splitlines() if line[:1].isdigit()]
    assert numbers == [str(i + 1) for i in range(len(numbers))]
    assert "Refused" in said
    assert (RULES[name].promise is Promise.IDENTICAL) == ("Promise: bit-identical" in said)


def needed(before: Net, node: Node) -> set[Ability]:
    """What the kernel of an op that a rule made must be able to do."""
    found = set[Ability]()
    pieces = [p for o in node.operands for p in o.pieces]
    several = node.kind is not Kind.CONCAT and any(len(o.pieces) > 1 for o in node.operands)
    if several or any(not p.direct for p in pieces):
        found.add(Ability.READ_PIECES)
    if node.in_place or (node.into is not None and before.sums_in_place):
        found.add(Ability.WRITE_PLACES)
    return found


@pytest.mark.parametrize("name", RULES)
def test_a_rule_says_what_its_kernels_must_be_able_to_do(name: str) -> None:
    found = set[Ability]()
    cuttable = [body for name, body in nets.NETS.items() if name != "grouped"]  # pinned in Relay
    for layout, body in product(("NCHW", "NHWC"), (*cuttable, nets.shuffled)):
        module = prepared(nets.module(body, layout))
        before: Net = read_net(module, external=False).net
        after, done = apply_everywhere(before, name)
        if done:
            found |= set[Ability]().union(*(needed(before, node) for node in after.nodes))
    assert found == RULES[name].abilities


def graph_of(dtype: str, *, constant: bool = True, axis: int = 3) -> Graph:
    """A concat, CONV_2D of it, ADD of that and the first input; NHWC."""
    from tvm_serenity.graph import Role

    width = 4 if dtype == "float32" else 1
    shape = (1, 4, 4, 4)
    joined = tuple(8 if i == axis else 4 if i else 1 for i in range(4))
    channels = joined[3]

    def tensor(name: str, shape: tuple[int, ...], role: Any = Role.ACTIVATION) -> Tensor:
        size = width
        for extent in shape:
            size *= extent
        return Tensor(name, size, shape, dtype, role)

    role = Role.CONSTANT if constant else Role.ACTIVATION
    out = (joined[0], joined[1], joined[2], 4)
    tensors = (
        tensor("a", shape),
        tensor("b", shape),
        tensor("w", (4, 1, 1, channels), role),
        tensor("joined", joined),
        tensor("y", out),
        tensor("c", out),
        tensor("z", out),
    )
    ops = (
        Op("concat", "CONCATENATION", (0, 1), (3,)),
        Op("conv", "CONV_2D", (3, 2), (4,)),
        Op("add", "ADD", (4, 5), (6,)),
    )
    inputs = (0, 1, 5) if constant else (0, 1, 2, 5)
    return Graph("g", tensors, ops, inputs, (6,))
