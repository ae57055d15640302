"""Prune a ``.tflite`` file by magnitude: ``python benchmarks/pruning.py MODEL PERCENT OUTPUT``.

Of each convolution and dense layer with constant int8 weights, the PERCENT smallest weights (by
their real value, with the scale of their channel) become 0; ``--block M``: of each M inputs that
follow each other, the same number. Depthwise weights, biases and all scales stay. The file is not
trained again, so its accuracy falls: it is for sizes and times.
"""

import argparse
from pathlib import Path

import numpy as np
import tflite
from numpy.typing import NDArray

OPERATORS = (tflite.BuiltinOperator.CONV_2D, tflite.BuiltinOperator.FULLY_CONNECTED)


def pruned(data: bytes, share: float, block: int | None = None) -> bytes:
    """Return the file ``data`` with ``share`` of the weights of each layer set to 0."""
    content = bytearray(data)
    model = tflite.Model.GetRootAsModel(content, 0)
    graph, done = model.Subgraphs(0), set()
    for i in range(graph.OperatorsLength()):
        op = graph.Operators(i)
        code = model.OperatorCodes(op.OpcodeIndex())
        if max(code.BuiltinCode(), code.DeprecatedBuiltinCode()) not in OPERATORS:
            continue
        tensor = graph.Tensors(op.Inputs(1))
        stored = model.Buffers(tensor.Buffer()).DataAsNumpy()
        if tensor.Type() != tflite.TensorType.INT8 or isinstance(stored, int):
            continue
        if tensor.Buffer() in done:
            continue
        done.add(tensor.Buffer())
        scales = tensor.Quantization().ScaleAsNumpy()
        weights = stored.view(np.int8).reshape(tensor.ShapeAsNumpy()[0], -1)
        weights[_small(np.abs(weights.astype(float)) * scales[:, None], share, block)] = 0
    return bytes(content)


def _small(sizes: NDArray[np.float64], share: float, block: int | None) -> NDArray[np.bool_]:
    """Return which of ``[outputs, inputs]`` are among the smallest; ``block``: of each block."""
    if block is None or sizes.shape[1] % block:
        flat = sizes.ravel()
        dropped = np.argsort(flat, kind="stable")[: round(share * flat.size)]
        found = np.zeros(flat.size, bool)
        found[dropped] = True
        return found.reshape(sizes.shape)
    rank = np.argsort(np.argsort(sizes.reshape(len(sizes), -1, block), axis=2), axis=2)
    return np.asarray(rank < round(share * block)).reshape(sizes.shape)


def main() -> None:
    """Prune the file that is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("percent", type=float)
    parser.add_argument("output", type=Path)
    parser.add_argument("--block", type=int)
    given = parser.parse_args()
    given.output.write_bytes(pruned(given.model.read_bytes(), given.percent / 100, given.block))


if __name__ == "__main__":
    main()
