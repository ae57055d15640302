"""An order of connections as words of 16 bits, which the interpreter on the core executes.

A word has an operation in its upper 4 bits and a slot of fast memory in its lower 12. The evictions
are those of :func:`tvm_serenity.sparse.trace`, so the reads and writes that the interpreter
executes are those that :func:`tvm_serenity.sparse.simulate` counts.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.sparse import FFNN, Activation, Policy, trace
from tvm_serenity.sparse.network import Floats, Ints

SLOT_BITS = 12
MOST_SLOTS, MOST_INDEX = 1 << SLOT_BITS, 1 << 16
READ, WRITTEN, DROPPED = range(3)
"""The kinds of moves in a trace."""


class Operation(IntEnum):
    """What a word does with its slot s; further words are operands.

    ``ONE``: s += weight * (slot); ``INTO``: the same for a number of slots that follow;
    ``FROM``: each of a number of slots += weight * s. ``RELU``: s = max(s, 0). ``INPUT``,
    ``OUTPUT``, ``SPILLED``: read s from an index of the inputs, of the outputs, of the spilled
    values; ``BIAS``: from the next bias. ``SPILL``, ``STORE``: write s to an index of the spilled
    values, of the outputs. ``END`` ends the inference. Weights are read one after the other.
    """

    ONE = 0
    INTO = 1
    FROM = 2
    RELU = 3
    INPUT = 4
    BIAS = 5
    SPILLED = 6
    OUTPUT = 7
    SPILL = 8
    STORE = 9
    END = 10


@dataclass(frozen=True)
class Inference:
    """An inference as words, with the constants in the order in which it reads them.

    ``slots``: values of fast memory that it uses beside the connection; ``spilled``: the largest
    number of values that are spilled to slow memory at once.
    """

    words: NDArray[np.uint16]
    weights: Floats
    biases: Floats
    slots: int
    spilled: int


@dataclass(frozen=True)
class _Move:
    """A move between the memories before connection ``position``."""

    neuron: int
    kind: int


def inference(net: FFNN, order: Ints, memory: int, policy: Policy) -> Inference:
    """Return the inference of ``net`` in ``order`` with ``memory`` values of fast memory.

    Raises :class:`UnsupportedError` if a slot or an index does not fit into its bits.
    """
    return _Writer(net, order, memory, policy).written()


class _Writer:
    """Writes words while it replays the moves; it has the place of each value in both memories."""

    def __init__(self, net: FFNN, order: Ints, memory: int, policy: Policy) -> None:
        self.net, self.order = net, order
        self.pairs = list(
            zip(net.sources[order].tolist(), net.targets[order].tolist(), strict=True)
        )
        self.moves = trace(net, order, memory, policy)
        self.words: list[int] = []
        self.biases: list[float] = []
        self.slot: dict[int, int] = {}
        self.spill: dict[int, int] = {}
        self.stored: set[int] = set()
        self.free_slots, self.free_spills = _Numbers(), _Numbers()
        self.input = {n: i for i, n in enumerate(net.inputs.tolist())}
        self.output = {n: i for i, n in enumerate(net.outputs.tolist())}
        self.missing = net.fan_in.tolist()
        self.last_use = {n: p for p, pair in enumerate(self.pairs) for n in pair}
        self.done = 0

    def written(self) -> Inference:
        """Return the inference."""
        for begin, end in pairwise(self._breaks()):
            for move in self._before(begin):
                self._moved(move)
            self._connections(begin, end)
            self._behind(end - 1)
        for neuron, kind in self._at(len(self.pairs)):
            self._moved(_Move(neuron, kind))
        self.words.append(Operation.END << SLOT_BITS)
        weights = self.net.weights[self.order]
        return Inference(
            np.array(self.words, np.uint16),
            weights,
            np.array(self.biases, np.float32),
            self.free_slots.most,
            self.free_spills.most,
        )

    def _at(self, position: int) -> list[tuple[int, int]]:
        """Return the moves at a position: neurons and kinds."""
        first, last = np.searchsorted(self.moves.positions, [position, position + 1])
        held = slice(int(first), int(last))
        return list(
            zip(self.moves.neurons[held].tolist(), self.moves.kinds[held].tolist(), strict=True)
        )

    def _before(self, position: int) -> Iterator[_Move]:
        """Yield the moves before the connection at ``position``."""
        for neuron, kind in self._at(position):
            if kind == READ or neuron not in self.pairs[position]:
                yield _Move(neuron, kind)

    def _behind(self, position: int) -> None:
        """Complete the target of a connection, then make the moves that follow."""
        target = self.pairs[position][1]
        if not self.missing[target] and self.net.activation_of(target) is Activation.RELU:
            self._word(Operation.RELU, self.slot[target])
        for neuron, kind in self._at(position):
            if kind != READ and neuron in self.pairs[position]:
                self._moved(_Move(neuron, kind))

    def _breaks(self) -> list[int]:
        """Return the positions at which runs of connections begin, and the end."""
        count = len(self.pairs)
        begins = {0, count}
        missing = list(self.missing)
        for position in np.unique(self.moves.positions).tolist():
            if position < count:
                begins |= {position} if next(self._before(position), None) is not None else set()
                ends = any(k != READ and n in self.pairs[position] for n, k in self._at(position))
                begins |= {position + 1} if ends else set()
        for position, (_, target) in enumerate(self.pairs):
            missing[target] -= 1
            begins |= set() if missing[target] else {position + 1}
        return sorted(begins)

    def _connections(self, begin: int, end: int) -> None:
        """Write connections between which nothing moves, as runs of one target or one source."""
        while begin < end:
            stop = {side: self._run(begin, end, side) for side in (0, 1)}
            side = 1 if stop[1] >= stop[0] else 0
            last = stop[side]
            shared = self.slot[self.pairs[begin][side]]
            others = [self.slot[pair[1 - side]] for pair in self.pairs[begin:last]]
            if len(others) == 1:
                self._word(Operation.ONE, self.slot[self.pairs[begin][1]])
                self.words.append(self.slot[self.pairs[begin][0]])
            else:
                self._word(Operation.INTO if side else Operation.FROM, shared)
                self.words += [len(others), *others]
            for _, target in self.pairs[begin:last]:
                self.missing[target] -= 1
            self.done = begin = last

    def _run(self, begin: int, end: int, side: int) -> int:
        """Return the end of the connections from ``begin`` on that share a neuron."""
        last, most = begin + 1, min(end, begin + MOST_INDEX - 1)
        while last < most and self.pairs[last][side] == self.pairs[begin][side]:
            last += 1
        return last

    def _moved(self, move: _Move) -> None:
        """Write a move, and update the places."""
        neuron = move.neuron
        if move.kind == READ:
            self.slot[neuron] = self.free_slots.take()
            self._read(neuron)
            return
        slot = self.slot.pop(neuron)
        self.free_slots.give(slot)
        if move.kind == WRITTEN:
            self._write(neuron, slot)

    def _read(self, neuron: int) -> None:
        slot = self.slot[neuron]
        if neuron in self.input:
            self._word(Operation.INPUT, slot, self.input[neuron])
        elif neuron in self.stored:
            self._word(Operation.OUTPUT, slot, self.output[neuron])
        elif neuron in self.spill:
            self._word(Operation.SPILLED, slot, self.spill[neuron])
        else:
            self._word(Operation.BIAS, slot)
            self.biases.append(self._initial(neuron))

    def _initial(self, neuron: int) -> float:
        """Return the bias of a neuron; the value of a constant."""
        bias = float(self.net.biases[neuron])
        relu = self.net.activation_of(neuron) is Activation.RELU
        constant = not self.net.fan_in[neuron]
        return 0.0 if constant and relu and bias < 0 else bias

    def _write(self, neuron: int, slot: int) -> None:
        if neuron in self.output:
            self.stored.add(neuron)
            self._word(Operation.STORE, slot, self.output[neuron])
            return
        if neuron not in self.spill:
            self._release_dead()
            self.spill[neuron] = self.free_spills.take()
        self._word(Operation.SPILL, slot, self.spill[neuron])

    def _release_dead(self) -> None:
        """Free the places of spilled values that no connection uses from here on."""
        for neuron in [n for n in self.spill if self.last_use[n] < self.done]:
            self.free_spills.give(self.spill.pop(neuron))

    def _word(self, operation: Operation, slot: int, *operand: int) -> None:
        if slot >= MOST_SLOTS or any(value >= MOST_INDEX for value in operand):
            raise UnsupportedError(
                f"the inference needs slot {slot} of fast memory and place {operand} of slow "
                f"memory; the firmware has {MOST_SLOTS} slots and {MOST_INDEX} places of a kind: "
                "give a smaller --memory or network"
            )
        self.words += [operation << SLOT_BITS | slot, *operand]


class _Numbers:
    """Numbers from 0 on, the smallest free one first; ``most``: how many were taken at once."""

    def __init__(self) -> None:
        self.free: list[int] = []
        self.most = 0

    def take(self) -> int:
        """Return the smallest free number."""
        if self.free:
            return heapq.heappop(self.free)
        self.most += 1
        return self.most - 1

    def give(self, number: int) -> None:
        """Free a number."""
        heapq.heappush(self.free, number)
