"""Runs a layered network with other libraries: MKL (sparse and dense) and scipy.

Values have the layout (neurons, batch).
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tvm_serenity.errors import MissingPartError, UnsupportedError
from tvm_serenity.sparse.constants import folded
from tvm_serenity.sparse.execute import mkl
from tvm_serenity.sparse.execute.compiled import NUMPY, aligned
from tvm_serenity.sparse.network import FFNN, Activation
from tvm_serenity.sparse.structure import levels

if TYPE_CHECKING:
    import scipy.sparse

Array = NDArray[np.float32]
Run = Callable[[Array], Array]


class Layers:
    """A layered network as one matrix per layer, with biases and activations.

    A network is layered if every connection joins consecutive levels and all outputs are on the
    last level. Constant neurons are folded into biases first. Values between layers begin ``past``
    bytes after a cache line. Raises :class:`UnsupportedError` for other networks.
    """

    def __init__(self, net: FFNN, past: int = NUMPY) -> None:
        self.past = past
        try:
            from scipy import sparse
        except ImportError as error:
            raise MissingPartError(
                "the comparison with other libraries needs scipy: "
                "pip install 'tvm-serenity[sparse]'"
            ) from error
        fold = folded(net)
        varies, live = fold.varies, fold.varies[net.sources]
        level = levels(net.neurons, net.sources[live], net.targets[live])
        if (level[net.targets[live]] != level[net.sources[live]] + 1).any():
            raise UnsupportedError(
                "the network is not layered: a connection skips a level, so libraries that compute "
                "layer by layer cannot run it"
            )
        if (level[net.outputs] != level.max()).any():
            raise UnsupportedError(
                "the network is not layered: an output is not on the last level, so libraries that "
                "compute layer by layer cannot run it"
            )
        self.matrices: list[Any] = []
        self.biases: list[Array] = []
        self.rectified: list[bool] = []
        before: NDArray[Any] = net.inputs
        for number in range(1, int(level.max()) + 1):
            last = number == level.max()
            after: NDArray[Any] = (
                net.outputs if last else np.flatnonzero((level == number) & varies)
            )
            place = np.full(net.neurons, -1)
            place[before] = np.arange(len(before))
            row = np.full(net.neurons, -1)
            row[after] = np.arange(len(after))
            inside = live & (level[net.targets] == number)
            matrix = sparse.csr_matrix(
                (
                    net.weights[inside],
                    (row[net.targets[inside]], place[net.sources[inside]]),
                ),
                shape=(len(after), len(before)),
            )
            matrix.sort_indices()
            self.matrices.append(matrix)
            self.biases.append(fold.biases[after][:, None])
            kind = net.output_activation if last else net.activation
            self.rectified.append(kind is Activation.RELU)
            before = after

    def runner(
        self, products: list[Callable[[Array, Array], None]], batch: int, epilogue: bool
    ) -> Run:
        """Return a function that runs ``products``, with bias and activation if ``epilogue``."""
        buffers = [aligned((m.shape[0], batch), self.past) for m in self.matrices]

        def run(x: Array) -> Array:
            for product, out, bias, relu in zip(
                products, buffers, self.biases, self.rectified, strict=True
            ):
                product(x, out)
                if epilogue:
                    np.add(out, bias, out=out)
                    if relu:
                        np.maximum(out, 0, out=out)
                x = out
            return x

        return run


def mkl_sparse(layers: Layers, batch: int, epilogue: bool = True) -> Run:
    """Return a function that runs the layers with MKL's sparse products (CSR)."""
    matrices = [mkl.Csr(matrix, batch) for matrix in layers.matrices]
    return layers.runner([one.product for one in matrices], batch, epilogue)


def mkl_dense(layers: Layers, batch: int, epilogue: bool = True) -> Run:
    """Return a function that runs the layers with MKL's dense products, zeros included."""
    dense = [np.ascontiguousarray(m.toarray(), dtype=np.float32) for m in layers.matrices]
    return layers.runner([partial(mkl.gemm, a) for a in dense], batch, epilogue)


def scipy_sparse(layers: Layers, batch: int, epilogue: bool = True) -> Run:
    """Return a function that runs the layers with scipy's sparse products."""

    def product(matrix: "scipy.sparse.csr_matrix", x: Array, out: Array) -> None:
        out[:] = matrix @ x

    return layers.runner([partial(product, m) for m in layers.matrices], batch, epilogue)


BASELINES: dict[str, Callable[[Layers, int, bool], Run]] = {
    "mkl": mkl_sparse,
    "scipy": scipy_sparse,
    "dense": mkl_dense,
}
"""The libraries by name: sparse MKL, sparse scipy, dense MKL."""
