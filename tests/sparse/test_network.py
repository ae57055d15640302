"""Networks: what makes one, and what is refused."""

import random

import numpy as np
import pytest
from scipy import sparse

from tests.sparse.nets import random_net
from tvm_serenity.errors import CycleError, GraphError, InputError, UnsupportedError
from tvm_serenity.sparse import FFNN, Activation, compact_growth, random_mlp
from tvm_serenity.sparse.perceptron import from_torch
from tvm_serenity.sparse.prune import prune


def test_layers_compute_what_their_matrices_do() -> None:
    rng = np.random.RandomState(0)
    layers = [sparse.random(7, 9, 0.5, random_state=rng), rng.randn(3, 7)]
    biases = [rng.randn(7), rng.randn(3)]
    net = FFNN.from_layers([layers[0].tocsr(), layers[1]], biases, connected=False)
    x = rng.randn(4, 9)
    hidden = np.maximum(x @ layers[0].toarray().T + biases[0], 0)
    expected = hidden @ layers[1].T + biases[1]
    assert np.allclose(net.forward(x), expected, atol=1e-5)
    assert np.allclose(net.forward(x[0]), expected[0], atol=1e-5)


def test_any_graph_is_computed_neuron_by_neuron() -> None:
    for seed in range(50):
        net = random_net(random.Random(seed), 20)
        x = np.random.RandomState(seed).randn(len(net.inputs))
        values: dict[int, float] = dict(zip(net.inputs.tolist(), x.tolist(), strict=True))

        def value(neuron: int, net: FFNN = net, values: dict[int, float] = values) -> float:
            if neuron not in values:
                total = float(net.biases[neuron])
                for e in np.flatnonzero(net.targets == neuron):
                    total += float(net.weights[e]) * value(int(net.sources[e]))
                relu = net.activation_of(neuron) is Activation.RELU
                values[neuron] = max(total, 0.0) if relu else total
            return values[neuron]

        assert np.allclose(net.forward(x), [value(int(o)) for o in net.outputs])


NAN = float("nan")


@pytest.mark.parametrize(
    ("edges", "options", "error", "message"),
    [
        ([], {}, GraphError, "has no connections"),
        ([(0, 1, 1.0), (1, 2, 1.0), (2, 1, 1.0)], {}, CycleError, "1 -> 2 -> 1|2 -> 1 -> 2"),
        ([(0, 0, 1.0)], {}, CycleError, "0 -> 0"),
        (
            [(0, 1, 1.0), (2, 3, 1.0)],
            {},
            GraphError,
            "not connected: no undirected path joins neurons 0 and",
        ),
        ([(0, 1, 1.0), (0, 3, 1.0)], {}, GraphError, "neuron 2 has no connections"),
        ([(0, 1, NAN)], {}, GraphError, r"connection 0 \(0 -> 1\) has weight nan"),
        ([(0, 1, float("inf"))], {}, GraphError, "weight inf"),
        ([(0, 1, 1.0)], {"biases": [0.0, NAN]}, GraphError, "neuron 1 has bias nan"),
        ([(0, 1, 1.0), (0, 1, 2.0)], {}, GraphError, "connection 0 -> 1 occurs twice"),
        ([(0, 1, 1.0)], {"inputs": [1]}, GraphError, "neuron 1 is an input but has incoming"),
        ([(0, 1, 1.0), (0, 2, 1.0)], {"outputs": [1]}, GraphError, "neuron 2 is unused"),
        ([(0, 1, 1.0)], {"outputs": [1, 1]}, GraphError, "twice"),
        ([(0, -1, 1.0)], {}, GraphError, "target -1"),
        (
            [(0, 1, 1.0)],
            {"outputs": [7]},
            GraphError,
            "outputs contain neuron 7, but the neurons are numbered 0 to 1",
        ),
    ],
)
def test_what_is_no_network(
    edges: list[tuple[int, int, float]],
    options: dict[str, list[int]],
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        FFNN.from_edges(edges, **options)


def test_layers_must_fit() -> None:
    with pytest.raises(GraphError, match="layer 1 has 3 inputs, but layer 0 has 2 outputs"):
        FFNN.from_layers([np.ones((2, 4)), np.ones((1, 3))])
    with pytest.raises(GraphError, match=r"biases of layer 0 have shape \(3,\); expected \(2,\)"):
        FFNN.from_layers([np.ones((2, 4))], [np.ones(3)])
    with pytest.raises(GraphError, match="give a matrix"):
        FFNN.from_layers([np.ones(4)])


def test_generators_check_their_numbers() -> None:
    with pytest.raises(InputError, match="density"):
        random_mlp([3, 3], 0.0)
    with pytest.raises(InputError, match="widths"):
        random_mlp([3], 0.5)
    with pytest.raises(InputError, match="in-degree"):
        compact_growth(6, in_degree=5)
    with pytest.raises(InputError, match="seed"):
        random_mlp([3, 3], 0.5, seed=-1)


def test_columns_must_fit() -> None:
    with pytest.raises(GraphError, match="2 columns"):
        FFNN.from_edges([(0, 2, 1.0), (1, 2, 1.0)]).forward(np.ones((3, 3)))


def test_torch_perceptrons_are_pruned_by_magnitude() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Linear(12, 30), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(30, 4)
    ).eval()
    x = np.random.RandomState(0).randn(5, 12).astype(np.float32)
    whole = from_torch(module).pruned(1.0)
    expected = module(torch.from_numpy(x)).detach().numpy()
    assert np.allclose(whole.forward(x), expected, atol=1e-5)

    weights = [module[0].weight.detach().numpy(), module[3].weight.detach().numpy()]
    cuts = [np.sort(np.abs(w).ravel())[w.size - round(0.1 * w.size)] for w in weights]
    a, b = (np.where(np.abs(w) >= cut, w, 0) for w, cut in zip(weights, cuts, strict=True))
    hidden = np.maximum(x @ a.T + module[0].bias.detach().numpy(), 0)
    dense = hidden @ b.T + module[3].bias.detach().numpy()
    assert np.allclose(from_torch(module).pruned(0.1).forward(x), dense, atol=1e-5)


def test_what_is_no_perceptron() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(UnsupportedError, match="Tanh"):
        from_torch(torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh()))
    with pytest.raises(UnsupportedError, match="no matrix product"):
        from_torch(torch.nn.Sequential(torch.nn.Identity())).pruned(0.5)
    with pytest.raises(InputError, match="density"):
        prune([np.ones((2, 2))], density=0.0)
    with pytest.raises(GraphError, match="must be finite"):
        prune([np.full((2, 2), NAN)])
    with pytest.raises(GraphError, match="no connection reaches an output"):
        prune([np.eye(2), np.diag([0.1, 0.1])], density=0.25, together=True)
