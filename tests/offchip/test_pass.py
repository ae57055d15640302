"""``SerenitySchedule(objective="traffic")``: the pass runs the traffic search on each block."""

import numpy as np
import pytest

from tvm_serenity import zoo
from tvm_serenity.errors import InputError
from tvm_serenity.offchip import Model, simulate, trace_of, traffic_order
from tvm_serenity.options.model import ReadOptions

relax_passes = pytest.importorskip("tvm_serenity.passes", reason="TVM is not installed")


def test_the_pass_moves_no_more_than_the_peak_order() -> None:
    from tvm_serenity.relax.read import module_graph

    mod, capacity = zoo.build("swiftnet-cell-c"), 64 * 1024
    peak = relax_passes.SerenitySchedule()(mod)
    ordered = relax_passes.SerenitySchedule(objective="traffic", on_chip_bytes=capacity)(mod)
    by_peak, by_traffic = (
        simulate(trace_of(module_graph(m, "m"), None, Model()), capacity) for m in (peak, ordered)
    )
    assert by_traffic.total_bytes <= by_peak.total_bytes
    graph = module_graph(relax_passes.SerenitySchedule(method="given")(mod), "m")
    assert by_traffic.total_bytes == traffic_order(graph, capacity).total_bytes


def test_bad_options_are_refused() -> None:
    for wrong in ({"objective": "speed"}, {"objective": "traffic"}, {"on_chip_bytes": 1024}):
        with pytest.raises(InputError):
            relax_passes.SerenitySchedule(**wrong)


def test_a_rewritten_cell_reads_only_what_was_written() -> None:
    from tvm_serenity.commands.offchip import read_of, versions_of
    from tvm_serenity.offchip.order_search import SearchOptions
    from tvm_serenity.offchip.orders import ORDERS

    network = versions_of(*read_of("zoo:swiftnet-cell-c", ReadOptions(), True))
    assert network.rewritten is not None
    totals = {}
    for name in ("serenity", "rewrite"):
        subject, order, _ = ORDERS[name].find(network, 1 << 16, Model(), SearchOptions())
        trace = trace_of(subject, order)
        seen, first = np.unique(trace.block, return_index=True)
        made = trace.kind[first] == 2
        assert (made | (trace.home[seen] == 1)).all()
        totals[name] = simulate(trace, 1 << 16)
    assert totals["rewrite"].compulsory_bytes == totals["serenity"].compulsory_bytes
    assert totals["rewrite"].total_bytes < totals["serenity"].total_bytes
