"""SERENITY, Table 1: multiply-accumulates and weights of the networks."""

from collections.abc import Sequence

from tvm_serenity.papers.networks import RANDOM_WIRING, multiply_accumulates, weight_count
from tvm_serenity.papers.record import Budget, Exhibit, PaperCell

DARTS = "built from the published genotype; the paper repeats the counts that DARTS states"
NETWORKS = (
    ("DARTS", "zoo:darts-imagenet", 574.0, 4700.0, DARTS),
    ("SwiftNet", "zoo:swiftnet", 57.4, 249.7, "equals the published file operator by operator"),
    ("RandWire CIFAR10", "zoo:randwire-cifar10", 111.0, 1200.0, RANDOM_WIRING),
    ("RandWire CIFAR100", "zoo:randwire-cifar100", 160.0, 4700.0, RANDOM_WIRING),
)
SWIFTNET_WEIGHTS = (
    "the published file holds 216,518 numbers (225,108 bytes); the paper's count is not explained"
)


def compute(_budget: Budget) -> Sequence[PaperCell]:
    """Return counts of each network; the paper's accuracies need the training data."""
    from tvm_serenity import zoo

    cells = []
    for name, spec, macs, weights, note in NETWORKS:
        module = zoo.build(spec)
        ours = multiply_accumulates(module) / 1e6
        cells.append(PaperCell(f"{name}, MAC", macs, round(ours, 1), "million", note))
        count = weight_count(module) / 1e3
        reason = SWIFTNET_WEIGHTS if name == "SwiftNet" else note
        cells.append(PaperCell(f"{name}, weights", weights, round(count, 1), "thousand", reason))
    return cells


EXHIBIT = Exhibit(
    "table",
    1,
    "Specification of the networks",
    "Multiply-accumulates of convolutions and dense layers, and constants, of the zoo's networks. "
    "Accuracies are not computed: the networks here have random weights.",
    compute,
)
