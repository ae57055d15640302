"""Sparse feed-forward networks: I/O bounds, simulation, orders, growth, execution.

    net = baseline_mlp(density=0.1)
    found = simulate(net, order, memory=100)        # reads and writes under MIN
    bounds(net).total                               # W + N + S: no computation needs fewer

Source: N. Gleinig, T. Ben-Nun, T. Hoefler, A Theory of I/O-Efficient Sparse Neural Network
Inference ("the paper"). docs/sparse.md has the definitions.
"""

from tvm_serenity.sparse.bounds import Bounds, bandwidth, bandwidth_order, bounds
from tvm_serenity.sparse.check import check_order
from tvm_serenity.sparse.generate import baseline_mlp, chains, compact_growth, random_mlp
from tvm_serenity.sparse.network import FFNN, Activation
from tvm_serenity.sparse.simulate import Policy, Trace, Traffic, simulate, trace

__all__ = [
    "FFNN",
    "Activation",
    "Bounds",
    "Policy",
    "Trace",
    "Traffic",
    "bandwidth",
    "bandwidth_order",
    "baseline_mlp",
    "bounds",
    "chains",
    "check_order",
    "compact_growth",
    "random_mlp",
    "simulate",
    "trace",
]
