"""Reads and writes networks as text: one connection per line, in stored order.

    # source target weight
    0 2 0.5
    1 2 -0.25
    bias 2 0.1
    input 0                 # default inputs: the neurons without incoming connections
    output 2                # default outputs: the neurons without outgoing connections

Fields are separated by blanks or commas. The default weight is 1.
"""

import os

import numpy as np

from tvm_serenity.errors import GraphError, InputError, ParseError
from tvm_serenity.sparse.network import FFNN, LARGEST, Ints
from tvm_serenity.system.files import read_text, write_bytes

LARGEST_GAP = 10_000_000
"""Limit on the neuron numbers in a file."""


def read_edges(path: str | os.PathLike[str], connected: bool = True) -> FFNN:
    """Read the text file ``path`` and return its network.

    Raises :class:`ParseError`, which names the line, or :class:`GraphError` if the connections do
    not form a valid network (see :class:`FFNN`).
    """
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: the file cannot be read: {getattr(error, 'strerror', error)}"
        ) from error
    edges: list[tuple[int, int, float]] = []
    named: dict[str, list[int]] = {"input": [], "output": []}
    biases: dict[int, float] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].replace(",", " ").split()
        try:
            if not words:
                continue
            if words[0] in named and len(words) == 2:
                named[words[0]].append(_neuron(words[1]))
            elif words[0] == "bias" and len(words) == 3:
                biases[_neuron(words[1])] = float(words[2])
            elif len(words) in (2, 3):
                weight = float(words[2]) if len(words) == 3 else 1.0
                edges.append((_neuron(words[0]), _neuron(words[1]), weight))
            else:
                raise ValueError("write a line as 'source target weight'")
        except ValueError as error:
            raise ParseError(f"{path}: line {number}: {error}: {line.strip()[:60]!r}") from None
    if not edges:
        raise InputError(
            f"{path}: the file has no connections; write one 'source target weight' per line"
        )
    count = 1 + max(max(source, target) for source, target, _ in edges)
    if biases and max(biases) >= count:
        raise GraphError(
            f"{path}: neuron {max(biases)} has a bias but no connections; remove it or connect it"
        )
    offsets = np.zeros(count)
    for neuron, value in biases.items():
        offsets[neuron] = value
    try:
        return FFNN.from_edges(
            edges,
            offsets,
            inputs=named["input"] or None,
            outputs=named["output"] or None,
            connected=connected,
        )
    except GraphError as error:
        raise type(error)(f"{path}: {error}") from None


def _neuron(word: str) -> int:
    number = int(word)
    if not 0 <= number < min(LARGEST, LARGEST_GAP):
        raise ValueError(f"neuron number {number} is not between 0 and {LARGEST_GAP - 1}")
    return number


def write_edges(net: FFNN, order: Ints, path: str | os.PathLike[str]) -> None:
    """Write ``net`` with its connections in ``order``."""
    rows = zip(
        net.sources[order].tolist(),
        net.targets[order].tolist(),
        net.weights[order].tolist(),
        strict=True,
    )
    lines = ["# source target weight", *(f"{s} {t} {w!r}" for s, t, w in rows)]
    biases = net.biases.tolist()
    lines += [f"bias {n} {biases[n]!r}" for n in np.flatnonzero(net.biases).tolist()]
    for name, listed, default in (
        ("input", net.inputs, net.fan_in == 0),
        ("output", net.outputs, net.fan_out == 0),
    ):
        if not np.array_equal(listed, np.flatnonzero(default)):
            lines += [f"{name} {neuron}" for neuron in listed.tolist()]
    write_bytes(path, ("\n".join(lines) + "\n").encode())
