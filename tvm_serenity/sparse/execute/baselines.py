"""Other libraries that run a layered network: MKL, scipy, dense BLAS; neuron-major."""

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
    """A layered network as one matrix a layer, with its biases and activations.

    A network is layered here where every connection joins consecutive levels, constants aside
    (what depends on constants only is folded into biases), and all outputs are of the last level.
    Values between layers begin ``past`` bytes after a cache line.
    """

    def __init__(self, net: FFNN, past: int = NUMPY) -> None:
        self.past = past
        try:
            from scipy import sparse
        except ImportError as error:
            raise MissingPartError(
                "this comparison needs scipy: pip install 'tvm-serenity[sparse]'"
            ) from error
        fold = folded(net)
        varies, live = fold.varies, fold.varies[net.sources]
        level = levels(net.neurons, net.sources[live], net.targets[live])
        if (level[net.targets[live]] != level[net.sources[live]] + 1).any():
            raise UnsupportedError("a connection skips a level: the others compute by layers")
        if (level[net.outputs] != level.max()).any():
            raise UnsupportedError("an output before the last level: the others compute by layers")
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
        """Return the chain of ``products``, with or without bias and activation."""
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
    """Return MKL's sparse products, layer by layer (CSRMM)."""
    matrices = [mkl.Csr(matrix, batch) for matrix in layers.matrices]
    return layers.runner([one.product for one in matrices], batch, epilogue)


def mkl_dense(layers: Layers, batch: int, epilogue: bool = True) -> Run:
    """Return MKL's dense products of the same layers, zeros included."""
    dense = [np.ascontiguousarray(m.toarray(), dtype=np.float32) for m in layers.matrices]
    return layers.runner([partial(mkl.gemm, a) for a in dense], batch, epilogue)


def scipy_sparse(layers: Layers, batch: int, epilogue: bool = True) -> Run:
    """Return scipy's sparse products."""

    def product(matrix: "scipy.sparse.csr_matrix", x: Array, out: Array) -> None:
        out[:] = matrix @ x

    return layers.runner([partial(product, m) for m in layers.matrices], batch, epilogue)


BASELINES: dict[str, Callable[[Layers, int, bool], Run]] = {
    "mkl": mkl_sparse,
    "scipy": scipy_sparse,
    "dense": mkl_dense,
}
"""By name: sparse MKL, sparse scipy, dense MKL."""
