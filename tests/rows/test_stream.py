"""Networks in bands: order, placement, bounds, and what stays whole."""

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.cases import only_exhaustive
from tests.rows.nets import model
from tvm_serenity.errors import CheckError, GraphError, InputError, UnsupportedError
from tvm_serenity.frontends import load
from tvm_serenity.frontends.tflite_file import TfliteFile
from tvm_serenity.frontends.tflite_rows import network_of
from tvm_serenity.memory import peak_bytes
from tvm_serenity.operators.needs import everything, nearest, rowwise, window
from tvm_serenity.plan import check_plan
from tvm_serenity.rows import Feature, Layer, Limits, Network, heights_of, split, stream
from tvm_serenity.rows.choose import Goal, check_splittable, choose, table_bytes
from tvm_serenity.rows.network import composed
from tvm_serenity.rows.segments import cuts_of, segment_order
from tvm_serenity.schedule import check_schedule
from tvm_serenity.search.deadline import within

searched = import_module("tvm_serenity.rows.stream")
PERSON = "tflm/person_detect.tflite"
RESNET = "mlperf_tiny/ic_resnet8_int8.tflite"
MCUNET = "mcunet/mcunet_vww_int8.tflite"


def network(path: Path) -> Network:
    file = load(path)
    assert isinstance(file, TfliteFile)
    return network_of(file)


def chain(height: int = 6) -> Network:
    """Two 3x3 windows over ``height`` rows of 10 bytes, then a map of what is left."""
    features = tuple(Feature(name, height, 10) for name in "abc")
    same = window(height, height, 3, 1, 1)
    layers = (
        Layer("one", "CONV", (0,), (1,), (same,)),
        Layer("two", "CONV", (1,), (2,), (same,)),
        Layer("sum", "MEAN", (2,), (3,), (everything(1, height),), sums=True),
    )
    return Network("chain", (*features, Feature("s", 1, 4)), layers, (0,), (3,))


def test_no_time_is_left_and_there_is_an_answer() -> None:
    layers = tuple(replace(layer, over=(0,)) for layer in chain().layers[:2])
    over = replace(chain(), layers=(*layers, chain().layers[2]))
    for streamed in (False, True):
        with within(0.0):
            found = stream(over, heights_of(over, 1), streamed=streamed)
        found.check()
        assert found.arena_bytes >= found.lower_bound_bytes > 0


def test_bands_that_there_is_no_time_for_are_named() -> None:
    tall = chain(200_000)
    with within(1.0):
        found = choose(tall, limits=Limits.within(1.0))
    assert found.untried == (1, 2, 4, 8)
    heights = [h for f, h in enumerate(found.best.banded.heights) if tall.rows(f) > 1]
    assert min(heights) > 8
    found.best.check()
    assert choose(chain(20)).untried == ()
    with within(0.0):
        late = choose(chain(20), Goal(ram_bytes=40))
    assert late.best.banded.heights == (20, 20, 20, 1)
    assert late.untried == (16, 8, 4, 2, 1)
    assert not late.met


def test_bands_of_tall_features_are_found_without_looking_at_all() -> None:
    """Quadratic in the height, a layer of 20,000 rows would take a minute."""
    tall = chain(20_000)
    banded = split(tall, heights_of(tall, 1))
    assert len(banded.graph.ops) == 3 * 20_000
    read = [banded.graph.tensors[t].name for t in banded.graph.ops[30_000].inputs]
    assert read == ["b.9999", "b.10000", "b.10001"]


def test_what_rows_need() -> None:
    assert window(3, 5, 3, 2, 1) == ((0, 2), (1, 4), (3, 5))
    assert window(2, 4, 2, 1, 0, dilation=2) == ((0, 3), (1, 4))
    assert rowwise(2, 1) == ((0, 1), (0, 1))
    assert nearest(4, 2) == ((0, 1), (0, 1), (1, 2), (1, 2))
    assert composed(((0, 2), (1, 3)), ((0, 0), (0, 1), (1, 2))) == ((0, 1), (0, 2))


def test_bands_of_a_chain() -> None:
    banded = split(chain(), (2, 2, 3, 1))
    names = [op.name for op in banded.graph.ops]
    assert names == ["one.0", "one.2", "one.4", "two.0", "two.3", "sum.0", "sum.3"]
    read = [banded.graph.tensors[t].name for t in banded.graph.ops[4].inputs]
    assert read == ["b.2", "b.4"]
    assert banded.graph.storage[banded.graph.outputs[0]] == banded.graph.ops[5].outputs[0]


def test_the_segment_program_streams_a_chain() -> None:
    banded = split(chain(8), (1, 1, 1, 1))
    order = segment_order(banded)
    # Most of the input, two rows of b, one of c: never a whole b, which alone would add 80.
    assert peak_bytes(banded.graph, order) == 100
    assert cuts_of(banded.network) == [0, 1, 2]
    assert stream(chain(8), (1, 1, 1, 1), streamed=True).arena_bytes < 80


def test_needs_must_fit() -> None:
    with pytest.raises(GraphError, match="reads rows outside of its input 'a'"):
        replace(chain(), layers=(Layer("one", "CONV", (0,), (1,), (((0, 9),) * 6,)),))
    with pytest.raises(GraphError, match="needs has 2 entries for an output of 6 rows"):
        replace(chain(), layers=(Layer("one", "CONV", (0,), (1,), (((0, 1),) * 2,)),))
    with pytest.raises(InputError, match="bands cannot have 9 rows"):
        split(chain(), (9, 1, 1, 1))
    with pytest.raises(InputError, match="bands cannot have 0 rows"):
        heights_of(chain(), 0)


def test_nothing_to_split_is_said() -> None:
    flat = Network(
        "dense",
        (Feature("x", 1, 8), Feature("y", 1, 2)),
        (Layer("fc", "FULLY_CONNECTED", (0,), (1,), (None,)),),
        (0,),
        (1,),
    )
    reason = r"the largest tensor, 'y' of 2 bytes \(computed by FULLY_CONNECTED\), has no rows; .*"
    with pytest.raises(InputError, match=f"no layer can be split into rows: {reason}; leave rows"):
        check_splittable(flat)
    with pytest.raises(InputError, match="has one row, so it cannot arrive row by row"):
        split(flat, (1, 1), streamed=True)


@pytest.mark.parametrize(
    ("name", "rows", "streamed", "most"),
    [
        only_exhaustive((PERSON, 1, False, 12544)),
        (PERSON, 1, True, 10368),
        ("mlperf_tiny/vww_mobilenetv1_96_int8.tflite", 1, False, 28416),
        ("mlperf_tiny/vww_mobilenetv1_96_int8.tflite", 1, True, 10496),
        ("misc/mobilenet_v1_0.25_128_quant.tflite", 2, False, 50176),
        (MCUNET, 2, False, 77280),
        only_exhaustive((MCUNET, 1, True, 14336)),
        ("swiftnet/swiftnet_vww_224_uint8.tflite", 2, False, 152320),
    ],
)
def test_arenas_of_published_networks(name: str, rows: int, streamed: bool, most: int) -> None:
    found = stream(
        network(model(name)),
        heights_of(network(model(name)), rows),
        streamed=streamed,
        limits=Limits(2.0),
    )
    check_plan(found.plan.buffers, found.plan.offsets, found.arena_bytes)
    assert found.lower_bound_bytes <= found.schedule.peak_bytes <= found.arena_bytes <= most
    assert found.schedule.peak_bytes == peak_bytes(found.banded.graph, found.schedule.order)


def test_finer_bands_never_need_more() -> None:
    net = network(model(RESNET))
    found = [stream(net, heights_of(net, rows), limits=Limits(3.0)) for rows in (32, 8, 4)]
    for one in found:
        check_schedule(one.banded.graph, one.schedule.order, one.schedule.peak_bytes)
    peaks = [one.schedule.peak_bytes for one in found]
    assert peaks == [49152, 32768, 24576]
    assert stream(net, heights_of(net, 8), streamed=True).lower_bound_bytes <= peaks[1]


def test_the_coarsest_bands_that_fit() -> None:
    net = network(model(RESNET))
    chosen = choose(net, Goal(ram_bytes=25_000), limits=Limits(2.0))
    assert chosen.met
    assert chosen.best.arena_bytes <= 25_000
    assert (
        min(
            h for h, f in zip(chosen.best.banded.heights, net.features, strict=True) if f.height > 8
        )
        >= 4
    )
    finest = split(net, heights_of(net, 1))
    assert table_bytes(chosen.best.banded) < table_bytes(finest)


def test_a_limit_that_no_bands_reach() -> None:
    net = network(model(RESNET))
    chosen = choose(net, Goal(ram_bytes=4_000), limits=Limits(1.0))
    assert not chosen.met
    assert chosen.best.lower_bound_bytes > 4_000


def test_what_stays_whole_is_named() -> None:
    net = network(model(MCUNET))
    assert any("TRANSPOSE of rows is not computed row by row" in line for line in net.unsplit)
    assert not any(layer.kind == "PAD" for layer in net.layers)


def test_state_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="between runs"):
        network(model("tflm/keyword_scrambled.tflite"))


def test_an_overlap_is_found_in_the_plan() -> None:
    found = stream(chain(8), (1, 1, 1, 1), streamed=True)
    broken = list(found.plan.offsets)
    live = [
        (i, j)
        for i, a in enumerate(found.plan.buffers)
        for j, b in enumerate(found.plan.buffers)
        if i < j and a.lower < b.upper and b.lower < a.upper and a.size_bytes == b.size_bytes
    ]
    i, j = live[0]
    broken[j] = broken[i]
    with pytest.raises(CheckError, match="share bytes"):
        check_plan(found.plan.buffers, broken)


def test_known_bands_are_not_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an overlapping network only the overlap is searched; the result is the same."""
    plain = replace(chain(), layers=chain().layers[:2], outputs=(2,))
    over = replace(plain, layers=tuple(replace(layer, over=(0,)) for layer in plain.layers))
    heights, searches = (1, 1, 1, 1), [0]
    search = searched.order_from

    def counted(*given: Any) -> Any:
        searches[0] += 1
        return search(*given)

    monkeypatch.setattr(searched, "order_from", counted)
    for streamed in (False, True):
        known = [stream(plain, other, streamed=streamed) for other in ((2, 2, 2, 1), heights)]
        known += [stream(plain, heights, streamed=not streamed)]
        searches[0] = 0
        want = stream(over, heights, streamed=streamed)
        assert searches[0] == 2
        found = stream(over, heights, streamed=streamed, known=known)
        assert searches[0] == 3
        assert found.plan.offsets == want.plan.offsets
        assert found.schedule.order == want.schedule.order
        again = stream(over, heights, streamed=streamed, known=known[::2])
        assert again.plan.offsets == want.plan.offsets
        assert searches[0] == 5, "other bands, and another arrival"
