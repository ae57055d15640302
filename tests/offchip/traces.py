"""Random traces: valid ones of every kind, with and without groups and unequal blocks."""

import random
from dataclasses import dataclass

import numpy as np

from tests.offchip.naive import Memory
from tvm_serenity.offchip.model import Memory as MemoryKind
from tvm_serenity.offchip.trace import Trace

LETTERS = {"r": 1, "w": 2, "m": 3}


@dataclass(frozen=True)
class Case:
    """A trace as both sides read it."""

    accesses: list[tuple[int, str]]
    sizes: list[int]
    home: list[bool]
    kept: list[bool]
    groups: list[tuple[int, int, int]]
    slot: int | None

    @property
    def rooms(self) -> list[int]:
        return [self.slot or size for size in self.sizes]

    @property
    def need(self) -> int:
        needs = [
            held + sum(self.rooms[b] for b in {b for b, _ in self.accesses[first:stop]})
            for first, stop, held in self.groups
        ]
        return max(needs, default=1)

    def trace(self) -> Trace:
        """Return it for the library."""
        cache = all(stop - first == 1 and not held for first, stop, held in self.groups)
        return Trace(
            block=np.array([b for b, _ in self.accesses], np.int32),
            kind=np.array([LETTERS[x] for _, x in self.accesses], np.uint8),
            size=np.array(self.sizes, np.int64),
            home=np.array(self.home, np.uint8),
            kept=np.array(self.kept, np.uint8),
            group_end=np.array([stop for _, stop, _ in self.groups], np.int64),
            reserve=np.array([held for _, _, held in self.groups], np.int64),
            slot_bytes=self.slot,
            memory=MemoryKind.CACHE if cache and self.slot else MemoryKind.SCRATCHPAD,
        )

    def naive(self, capacity: int, policy: str) -> tuple[int, int]:
        """Return bytes read and written as the naive reference counts them."""
        memory = Memory(self.accesses, self.sizes, self.rooms, self.kept, capacity, policy)
        memory.off_chip = {b for b, home in enumerate(self.home) if home}
        return memory.run(self.groups)


def random_case(rng: random.Random, *, cache: bool) -> Case:
    """Return a trace that reads only what is somewhere."""
    blocks = rng.randint(1, 9)
    slot = 8 if cache or rng.random() < 0.3 else None
    sizes = [rng.randint(1, 8) for _ in range(blocks)]
    home = [rng.random() < 0.4 for _ in range(blocks)]
    exists = {b for b in range(blocks) if home[b]}
    accesses: list[tuple[int, str]] = []
    hot = rng.randint(1, blocks)
    for _ in range(rng.randint(1, 40)):
        block = rng.randrange(hot if rng.random() < 0.6 else blocks)
        letter = rng.choice("rrrwm") if block in exists else "w"
        exists.add(block)
        accesses.append((block, letter))
    groups, first = [], 0
    while first < len(accesses):
        stop = first + 1 if cache else min(len(accesses), first + rng.randint(1, 4))
        groups.append((first, stop, 0 if cache else rng.choice([0, 0, 3])))
        first = stop
    kept = [b in exists and rng.random() < 0.3 for b in range(blocks)]
    return Case(accesses, sizes, home, kept, groups, slot)
