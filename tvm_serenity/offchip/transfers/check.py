"""Replays a transfer plan on two memories; it shares no code with what makes plans.

The replay knows which tensor, and which version of it, each address range of both memories holds.
A result is a new version; a copy carries the version of its source. So a transfer that is dropped,
late, of another size or from a stale home, and a live tensor that was evicted without a store, are
found where they first matter. The same holds for operands that an operator accesses at their home.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tvm_serenity.errors import CheckError
from tvm_serenity.graph import Graph, text

FORMAT = "tvm-serenity transfer plan 1"


@dataclass(frozen=True)
class ConfirmedTransfers:
    """The confirmed claims of a transfer plan, in bytes."""

    capacity_bytes: int
    fast_bytes: int
    slow_bytes: int
    read_bytes: int
    write_bytes: int
    direct_bytes: int
    moved_bytes: int
    compulsory_bytes: int

    @property
    def total_bytes(self) -> int:
        """Bytes between slow memory and fast memory or the core."""
        return self.read_bytes + self.write_bytes


def check_transfers(graph: Graph, claims: Mapping[str, Any]) -> ConfirmedTransfers:
    """Return the confirmed claims of a transfer plan of ``graph``.

    Raises :class:`CheckError`, which names the step and the tensor of the first wrong claim.
    """
    try:
        if claims["format"] != FORMAT:
            raise CheckError(
                f"{graph.name}: the plan's format is {claims['format']!r}, not {FORMAT!r}"
            )
        digest = hashlib.sha256(text.dump(graph).encode()).hexdigest()
        if claims["graph_sha256"] != digest:
            raise CheckError(f"{graph.name}: the plan's digest is of another graph")
        return _Replay(graph, claims).confirmed()
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise CheckError(f"{graph.name}: the plan is not well formed ({error!r})") from error


@dataclass
class _Held:
    """Bytes ``start`` to before ``stop`` that hold a version of a tensor."""

    start: int
    stop: int
    version: int


@dataclass
class _Space:
    """One memory: what each range holds, by tensor."""

    name: str
    size_bytes: int
    alignment: int
    held: dict[int, _Held] = field(default_factory=dict)

    def met(self, start: int, stop: int) -> list[int]:
        """Return the tensors that have bytes in a range."""
        return [t for t, one in self.held.items() if one.start < stop and start < one.stop]


class _Replay:
    """The state of the replay: versions, both memories, and the bytes that were copied."""

    def __init__(self, graph: Graph, claims: Mapping[str, Any]) -> None:
        self.graph, self.claims = graph, claims
        self.number = {tensor.name: i for i, tensor in enumerate(graph.tensors)}
        alignment = int(claims["alignment_bytes"])
        self.fast = _Space("fast", int(claims["fast_bytes"]), alignment)
        self.slow = _Space("slow", int(claims["slow_bytes"]), alignment)
        self.homes = {self.number[name]: int(at) for name, at in claims["homes"].items()}
        self.version = [0] * len(graph.tensors)
        self.ran: set[int] = set()
        self.order: list[int] = []
        self.copied = {"load": 0, "store": 0, "move": 0}
        self.accessed = {"read": 0, "write": 0}  # in slow memory
        self.by_copies = 0  # of these, by operators that copy
        self.where = f"{graph.name}: the start"

    def confirmed(self) -> ConfirmedTransfers:
        """Return the claims after a replay of all steps."""
        claims = self.claims
        if self.fast.size_bytes > claims["capacity_bytes"]:
            raise self.wrong(
                f"{self.fast.size_bytes} bytes of fast memory are more than the capacity of "
                f"{claims['capacity_bytes']}"
            )
        for tensor in self.owners(self.graph.inputs):
            self.version[tensor] = 1
            self.put(self.slow, tensor, self.home(tensor), 1)
        for number, step in enumerate(claims["steps"]):
            self.where = f"{self.graph.name}: step {number} ({step['do']})"
            self.step(step)
        self.where = f"{self.graph.name}: the end"
        if self.order != list(claims["order"]) or len(self.ran) != len(self.graph.ops):
            raise self.wrong("the operators that ran are not those of the order")
        for tensor in self.owners(self.graph.outputs):
            self.needs(self.slow, tensor, self.home(tensor))
        read = self.copied["load"] + self.accessed["read"]
        written = self.copied["store"] + self.accessed["write"]
        self.compare("read_bytes", read)
        self.compare("write_bytes", written)
        direct = sum(self.accessed.values()) - self.by_copies
        self.compare("direct_bytes", direct)
        self.compare("moved_bytes", self.copied["move"])
        self.compare("compulsory_bytes", self.compulsory())
        total = read + written
        if not claims["compulsory_bytes"] <= claims["lower_bound_bytes"] <= total:
            raise self.wrong(
                f"a lower bound of {claims['lower_bound_bytes']} bytes contradicts "
                f"{claims['compulsory_bytes']} compulsory and {total} moved bytes"
            )
        return ConfirmedTransfers(
            int(claims["capacity_bytes"]),
            self.fast.size_bytes,
            self.slow.size_bytes,
            read,
            written,
            direct,
            self.copied["move"],
            self.compulsory(),
        )

    def step(self, step: Mapping[str, Any]) -> None:
        """Replay one step."""
        if step["do"] == "compute":
            self.compute(int(step["op"]), step)
            return
        tensor = self.number[step["tensor"]]
        if step["do"] == "discard":
            if self.fast.held.pop(tensor, None) is None:
                raise self.wrong(f"tensor {self.name(tensor)} is not in fast memory")
            return
        if step["bytes"] != self.size(tensor):
            raise self.wrong(
                f"{step['bytes']} bytes of tensor {self.name(tensor)} are copied, not all "
                f"{self.size(tensor)}"
            )
        self.copied[step["do"]] += int(step["bytes"])
        if step["do"] == "load":
            held = self.holds(self.slow, tensor, self.home(tensor))
            self.put(self.fast, tensor, int(step["to"]), held.version)
        elif step["do"] == "store":
            held = self.holds(self.fast, tensor, int(step["from"]))
            self.put(self.slow, tensor, self.home(tensor), held.version)
        else:
            held = self.holds(self.fast, tensor, int(step["from"]))
            del self.fast.held[tensor]
            self.put(self.fast, tensor, int(step["to"]), held.version)

    def compute(self, index: int, step: Mapping[str, Any]) -> None:
        """Replay an operator: operands whole and current, results on free bytes."""
        op = self.graph.ops[index]
        self.where += f" of op {op.name!r}"
        if index in self.ran or not self.ran.issuperset(self.graph.predecessors[index]):
            raise self.wrong("it runs twice, or before an operator that it waits for")
        self.ran.add(index)
        self.order.append(index)
        if not self.works(index):
            return
        address = {self.number[name]: int(place) for name, place in step["at"].items()}
        slow = {self.number[name]: list(map(int, n)) for name, n in step["slow"].items()}
        if both := address.keys() & slow.keys():
            raise self.wrong(f"tensor {self.name(both.pop())} is in both memories")
        adds = op.view_of is not None  # to what is there
        root = None if op.view_of is None else self.graph.storage[op.view_of]
        read = [t for t in self.owners(op.inputs) if t != root]
        results = self.owners(op.outputs if op.view_of is None else [op.view_of])
        for tensor in [*read, *(results if adds else ())]:
            if tensor in slow:
                self.needs(self.slow, tensor, self.home(tensor))
            else:
                self.needs(self.fast, tensor, address[tensor])
        if op.workspace_bytes:
            self.workspace(step, [t for t in (*read, *results) if t in slow])
        taken = {self.graph.storage[t] for t in op.in_place}
        if step["copies"]:
            self.copies(slow, read, results)
        self.count(slow, [*read, *(results if adds else ())], results)
        for tensor in results:
            self.version[tensor] += 1
            if tensor in slow:
                self.beside(tensor, [t for t in read if t in slow and t != tensor])
                self.put(self.slow, tensor, self.home(tensor), self.version[tensor])
                continue
            for other in taken & self.fast.held.keys():
                one = self.fast.held[other]
                same = one.start == address[tensor] and self.size(other) == self.size(tensor)
                if same and other != tensor:
                    del self.fast.held[other]  # its bytes become the result's
            self.put(self.fast, tensor, address[tensor], self.version[tensor])
        if op.workspace_bytes and not step["slow_workspace"]:
            span = self.span(self.fast, "its workspace", step["workspace"], op.workspace_bytes)
            if met := self.fast.met(*span):
                raise self.wrong(f"its workspace overlaps tensor {self.name(met[0])}")

    def copies(
        self, slow: Mapping[int, Sequence[int]], read: Sequence[int], results: Sequence[int]
    ) -> None:
        """Count an operator that copies: between the memories, each byte once."""
        sizes = [sum(map(self.size, tensors)) for tensors in (read, results)]
        ends = {tensor in slow for tensor in read}, {tensor in slow for tensor in results}
        if sizes[0] != sizes[1] or ends not in (({True}, {False}), ({False}, {True})):
            raise self.wrong("it copies, but not all bytes from one memory to the other")
        if any(sum(counts) != 1 for counts in slow.values()):
            raise self.wrong("it copies a tensor several times")
        self.by_copies += sizes[0]

    def count(
        self, slow: Mapping[int, Sequence[int]], read: Sequence[int], results: Sequence[int]
    ) -> None:
        """Count what an operator accesses in slow memory; it reads and writes what it must."""
        for tensor, (reads, writes) in slow.items():
            if (reads > 0, writes > 0) != (tensor in read, tensor in results):
                raise self.wrong(
                    f"tensor {self.name(tensor)} is read {reads} and written {writes} times in "
                    "slow memory, which the operator does not do"
                )
            self.accessed["read"] += self.size(tensor) * reads
            self.accessed["write"] += self.size(tensor) * writes

    def workspace(self, step: Mapping[str, Any], slow: Sequence[int]) -> None:
        """Replay a workspace in slow memory: it overwrites what is there, but no operand."""
        if step["workspace"] is None:
            raise self.wrong("its workspace has no address")
        if not step["slow_workspace"]:
            return
        size = self.graph.ops[step["op"]].workspace_bytes
        begin, stop = self.span(self.slow, "its workspace", int(step["workspace"]), size)
        for tensor in slow:
            home = self.home(tensor)
            if begin < home + self.size(tensor) and home < stop:
                raise self.wrong(f"its workspace overlaps tensor {self.name(tensor)}")
        for other in self.slow.met(begin, stop):
            del self.slow.held[other]
        self.accessed["read"] += size
        self.accessed["write"] += size

    def beside(self, result: int, read: Sequence[int]) -> None:
        """Raise :class:`CheckError` if a result in slow memory overlaps what is read there."""
        start = self.home(result)
        for tensor in read:
            home = self.home(tensor)
            if start < home + self.size(tensor) and home < start + self.size(result):
                raise self.wrong(
                    f"tensor {self.name(result)} overwrites tensor {self.name(tensor)}, which is "
                    "read"
                )

    def works(self, index: int) -> bool:
        """Whether an operator accesses memory: no pure view, and not on constants alone."""
        op = self.graph.ops[index]
        if index in self.graph.constant_ops:
            return False
        if op.view_of is None:
            return True
        return any(t != self.graph.storage[op.view_of] for t in self.owners(op.inputs))

    def put(self, space: _Space, tensor: int, start: int, version: int) -> None:
        """Write a tensor; in fast memory only over itself, in slow memory over what dies so."""
        what = f"tensor {self.name(tensor)}"
        begin, stop = self.span(space, what, start, self.size(tensor))
        for other in space.met(begin, stop):
            if other != tensor and space is self.fast:
                raise self.wrong(f"{what} overwrites tensor {self.name(other)}, which is live")
            del space.held[other]
        space.held[tensor] = _Held(begin, stop, version)

    def span(self, space: _Space, what: str, start: int, size: int) -> tuple[int, int]:
        """Return a range, which must be inside of the memory and aligned."""
        if not 0 <= start <= start + size <= space.size_bytes:
            raise self.wrong(
                f"{what} at {start} to {start + size} is outside of the {space.name} memory of "
                f"{space.size_bytes} bytes"
            )
        if start % space.alignment:
            raise self.wrong(f"{what} at {start} is not a multiple of {space.alignment}")
        return start, start + size

    def holds(self, space: _Space, tensor: int, start: int) -> _Held:
        """Return what an address holds, which must be the tensor."""
        held = space.held.get(tensor)
        if held is None or held.start != start:
            raise self.wrong(
                f"tensor {self.name(tensor)} is not at {start} of the {space.name} memory"
            )
        return held

    def needs(self, space: _Space, tensor: int, start: int) -> None:
        """Raise :class:`CheckError` unless an address holds the current version of a tensor."""
        if self.holds(space, tensor, start).version != self.version[tensor]:
            raise self.wrong(
                f"tensor {self.name(tensor)} in {space.name} memory is not its last content"
            )

    def compulsory(self) -> int:
        """Return the bytes that every plan moves: inputs that are read, outputs that are made."""
        read, made = set[int](), set[int]()
        for index, op in enumerate(self.graph.ops):
            if self.works(index):
                read.update(self.owners(op.inputs))
                made.update(self.owners(op.outputs if op.view_of is None else [op.view_of]))
        given, kept = set(self.owners(self.graph.inputs)), set(self.owners(self.graph.outputs))
        return sum(map(self.size, read & given)) + sum(map(self.size, made & kept))

    def compare(self, name: str, found: int) -> None:
        """Raise :class:`CheckError` unless a claim is what the replay found."""
        if self.claims[name] != found:
            raise self.wrong(f"{name} is {found}, not {self.claims[name]}")

    def owners(self, tensors: Sequence[int]) -> list[int]:
        """Return the distinct tensors that own the storages of activations."""
        graph = self.graph
        found = (graph.storage[t] for t in tensors if graph.in_profile[t])
        return [t for t in dict.fromkeys(found) if graph.tensors[t].size_bytes]

    def home(self, tensor: int) -> int:
        """Return the address of a tensor in slow memory."""
        if tensor not in self.homes:
            raise self.wrong(f"tensor {self.name(tensor)} has no home in slow memory")
        return self.homes[tensor]

    def size(self, tensor: int) -> int:
        """Return the bytes of a tensor."""
        return self.graph.tensors[tensor].size_bytes

    def name(self, tensor: int) -> str:
        """Return the name of a tensor in quotes."""
        return repr(self.graph.tensors[tensor].name)

    def wrong(self, what: str) -> CheckError:
        """Return the error for a wrong claim."""
        return CheckError(f"{self.where}: {what}")
