"""Traffic between on-chip and off-chip memory: traces, policies, sweeps, orders.

``simulate(trace_of(graph, order, model), capacity_bytes, policy)`` measures the traffic of an
order. ``traffic_order`` searches the order of least traffic. ``docs/offchip.md`` defines the model.
"""

from tvm_serenity.offchip.capacities import capacities_of
from tvm_serenity.offchip.energy import ExternalMemory, energy_of, load_regions
from tvm_serenity.offchip.model import InputPlace, Memory, Model, Weights
from tvm_serenity.offchip.order_search import SearchOptions, TrafficOrder, traffic_order
from tvm_serenity.offchip.orders import ORDERS, Versions
from tvm_serenity.offchip.points import Sweep, points_of, run_points
from tvm_serenity.offchip.policies import POLICIES, Traffic, simulate, sweep
from tvm_serenity.offchip.storages import Subject
from tvm_serenity.offchip.trace import Trace, addressed_trace, trace_of

__all__ = [
    "ORDERS",
    "POLICIES",
    "ExternalMemory",
    "InputPlace",
    "Memory",
    "Model",
    "SearchOptions",
    "Subject",
    "Sweep",
    "Trace",
    "Traffic",
    "TrafficOrder",
    "Versions",
    "Weights",
    "addressed_trace",
    "capacities_of",
    "energy_of",
    "load_regions",
    "points_of",
    "run_points",
    "simulate",
    "sweep",
    "trace_of",
    "traffic_order",
]
