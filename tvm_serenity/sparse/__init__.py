"""Sparse feed-forward networks: I/O bounds, simulation, orders, Compact Growth, execution.

    net = baseline_mlp(density=0.1)
    traffic = simulate(net, order, memory=100)      # reads and writes under the policy MIN
    bounds(net).total                               # W + N + S, a lower bound on the I/Os

Source ("the paper"): N. Gleinig, T. Ben-Nun, T. Hoefler, A Theory of I/O-Efficient Sparse Neural
Network Inference. docs/sparse.md has the definitions.
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
