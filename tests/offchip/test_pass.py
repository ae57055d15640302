"""``SerenitySchedule(objective="traffic")``: the pass runs the traffic search on each block."""

import pytest

from tvm_serenity import zoo
from tvm_serenity.errors import InputError
from tvm_serenity.offchip import Model, simulate, trace_of, traffic_order

relax_passes = pytest.importorskip("tvm_serenity.passes", reason="TVM is not installed")


def test_the_pass_moves_no_more_than_the_peak_order() -> None:
    from tvm_serenity.passes.relax.read import module_graph

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
