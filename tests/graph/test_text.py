import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.random_graphs import random_graph
from tvm_serenity.errors import InputError, ParseError
from tvm_serenity.graph import Graph, Role
from tvm_serenity.graph.text import dump, parse


def meaning(graph: Graph) -> object:
    """The graph with tensors by name, whatever their numbering."""
    name = [t.name for t in graph.tensors]
    ops = [
        (
            op.name,
            op.kind,
            [name[t] for t in op.inputs],
            [name[t] for t in op.outputs],
            op.workspace_bytes,
            op.view_of if op.view_of is None else name[op.view_of],
            [name[t] for t in op.in_place],
        )
        for op in graph.ops
    ]
    used = {t for op in graph.ops for t in (*op.inputs, *op.outputs)}
    used |= {*graph.inputs, *graph.outputs}
    tensors = {graph.tensors[t] for t in used}
    return tensors, ops, [name[t] for t in graph.inputs], [name[t] for t in graph.outputs]


def outcome(text: str) -> Graph | str:
    """The graph that is read, or why it is not."""
    try:
        return parse(text)
    except InputError as error:
        return str(error)


@pytest.mark.parametrize("seed", range(50))
def test_plain_lines_read_at_once_mean_what_they_mean_word_by_word(seed: int) -> None:
    rng = random.Random(seed)
    lines = dump(random_graph(rng, 12, features=seed % 2 == 0)).splitlines()
    for _ in range(40):
        changed = list(lines)
        at = rng.randrange(len(lines))
        place = rng.randrange(len(lines[at]))
        changed[at] = lines[at][:place] + rng.choice(' t0:[]->;,#"') + lines[at][place + 1 :]
        spaced = [line + " " for line in changed]  # no plain line ends in a space
        assert outcome("\n".join(changed)) == outcome("\n".join(spaced))


@pytest.mark.parametrize("seed", range(50))
def test_what_is_written_reads_back(seed: int) -> None:
    graph = random_graph(random.Random(seed), 12)
    again = parse(dump(graph))
    assert meaning(again) == meaning(graph)
    assert dump(parse(dump(again))) == dump(again)


def test_what_is_the_callers_stays_the_callers() -> None:
    graph = parse("input x[4]\na: x -> y[4]\noutput y\nexternal x y")
    assert [t.role for t in graph.tensors] == [Role.EXTERNAL, Role.EXTERNAL]
    assert meaning(parse(dump(graph))) == meaning(graph)


def test_a_tensor_may_have_the_name_of_a_type() -> None:
    graph = parse("a: -> t[2] u8[3]\nb: t u8 -> f32[4]f32\noutput f32")
    assert [t.size_bytes for t in graph.tensors] == [2, 3, 16]


def test_names_of_any_kind_are_quoted() -> None:
    graph = parse('input "a b;c:[d]"[4]\n"op 1" "k:x": "a b;c:[d]" -> "->"[4]\noutput "->"')
    assert [t.name for t in graph.tensors] == ["a b;c:[d]", "->"]
    assert meaning(parse(dump(graph))) == meaning(graph)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: x -> y[1]", "line 1: tensor 'x' is new, so it needs a size here, for example x"),
        ("input x[1]\ninput x[2]", "line 2: tensor 'x' is declared twice"),
        ("input x[1", "line 1: ']' is missing"),
        ("input x[2,3]", "a shape needs a type"),
        ("input x[1]\na b c: x -> y[1]", "an operator line must be"),
        ("input x[1]\na: x -> y[1]; fast", "unknown option 'fast'"),
        ("input x[1]\na: x -> y[1]; workspace many", "line 2: invalid literal"),
        ("frobnicate", "expected 'input'"),
    ],
)
def test_errors_name_the_line(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message.replace("[", r"\[")):
        parse(text)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet='abx[]0123,:;->"# \nuiz8', max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        graph = parse(text)
    except InputError:
        return
    assert meaning(parse(dump(graph))) == meaning(graph)
