"""Large graphs and placements: seconds, what the limit was, the gap, memory.

    python benchmarks/large.py [graphs] [limits] [placements] [certificates]
                               [--ops N ...] [--limit S]

*graphs*: each family at each size, written, read, profiled, checked and searched in a process of
its own, whose largest resident memory is the last column. *limits*: commands under limits of 1, 10
and 60 seconds, from when the file is read, with their CPU seconds: machines are shared.
*placements*: generated traces of 10^4 to 10^5 buffers. *certificates*: of 200 random
graphs of 3,000 to 4,000 ops, each tampered with too.
"""

import argparse
import json
import multiprocessing
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.random_graphs import windowed_graph
from tests.schedule.tampering import TAMPERED, is_rejected
from tvm_serenity import text
from tvm_serenity.graph import Graph, Op, Tensor
from tvm_serenity.memory import profile
from tvm_serenity.plan import Buffer, PlanOptions, check_plan, plan
from tvm_serenity.schedule import Options, check_schedule, schedule
from tvm_serenity.schedule.certificate import certificate, check_certificate

CHECK_STATES = 20_000
"""Of each way in which the checker solves a window again."""


class Builder:
    """A graph in the making: one tensor an op."""

    def __init__(self, name: str, input_bytes: int) -> None:
        self.name, self.tensors, self.ops = name, [Tensor("input", input_bytes)], list[Op]()
        self.read = set[int]()

    def op(self, inputs: Sequence[int], size: int) -> int:
        """One more op; its tensor."""
        made = len(self.tensors)
        self.tensors.append(Tensor(f"t{made}", size))
        reads = tuple(sorted(set(inputs)))
        self.ops.append(Op(f"op{len(self.ops)}", "op", reads, (made,)))
        self.read.update(reads)
        return made

    def graph(self) -> Graph:
        """The graph; what nothing reads is a result."""
        ends = tuple(t for t in range(1, len(self.tensors)) if t not in self.read)
        return Graph(self.name, tuple(self.tensors), tuple(self.ops), (0,), ends)


def layered(ops: int, seed: int = 0) -> Graph:
    """Layers of some ops: each reads its own tensor of the layer before, and up to two others."""
    rng, made = random.Random(seed), Builder("layered", 64)
    width, layer = max(4, round(ops**0.5) // 4), [0]
    while len(made.ops) < ops:
        count = min(width, ops - len(made.ops))
        layer = [
            made.op(
                [layer[i % len(layer)], *(rng.choice(layer) for _ in range(rng.randint(0, 2)))],
                rng.randint(1, 99),
            )
            for i in range(count)
        ]
    return made.graph()


def wired(ops: int, seed: int = 0) -> Graph:
    """Wired at random: each op reads one to three of the 40 tensors before it, all are read."""
    rng, made = random.Random(seed), Builder("wired", 64)
    for _ in range(ops):
        last = len(made.tensors)
        reads = [rng.randrange(max(0, last - 40), last) for _ in range(rng.randint(1, 3))]
        unread = {max(0, last - 40)} - made.read
        made.op([*reads, *unread], rng.randint(1, 1000))
    return made.graph()


def training(ops: int, seed: int = 0) -> Graph:
    """A transformer's step: blocks of attention and MLP, backward through them, an optimiser."""
    rng, made = random.Random(seed), Builder("training", 1024)
    saved: list[tuple[int, ...]] = []
    x = 0
    for _ in range(max(1, ops // 34)):
        wide = 256 * rng.randint(3, 5)
        norm = made.op([x], 1024)
        q, k, v = (made.op([norm], 1024) for _ in range(3))
        scores = made.op([q, k], wide * 2)
        weights = made.op([scores], wide * 2)
        mixed = made.op([made.op([weights, v], 1024)], 1024)
        y = made.op([x, mixed], 1024)
        norm2 = made.op([y], 1024)
        hidden = made.op([norm2], 4 * wide)
        active = made.op([hidden], 4 * wide)
        saved.append((x, norm, q, k, v, weights, mixed, y, norm2, hidden, active))
        x = made.op([y, made.op([active], 1024)], 1024)
    gradient = made.op([x], 1024)
    for x, norm, q, k, v, weights, mixed, y, norm2, hidden, active in reversed(saved):
        out, inner = made.op([gradient], made.tensors[active].size_bytes), [gradient, active]
        updates = [made.op(inner, 512)]
        inside = made.op([out, hidden], made.tensors[hidden].size_bytes)
        updates.append(made.op([inside, norm2], 512))
        gradient = made.op([gradient, made.op([inside, y], 1024)], 1024)
        after = made.op([gradient], 1024)
        updates.append(made.op([gradient, mixed], 512))
        rows = made.op([after, v], made.tensors[weights].size_bytes)
        dv, scores = made.op([after, weights], 1024), made.op([rows, weights], 2048)
        dq, dk = made.op([scores, k], 1024), made.op([scores, q], 1024)
        updates += [made.op([d, norm], 512) for d in (dq, dk, dv)]
        gradient = made.op([gradient, made.op([dq, dk, dv, x], 1024)], 1024)
        for update in updates:
            made.op([update], 4)
    return made.graph()


FAMILIES: dict[str, Callable[[int], Graph]] = {
    "layered": layered,
    "wired at random": wired,
    "training": training,
}


def trace(count: int, seed: int = 0) -> list[Buffer]:
    """A plateau: lifetimes and sizes log-uniform, sizes repeated as layers repeat."""
    rng = random.Random(seed)
    sizes = [512 * int(2 ** rng.uniform(0, 12)) for _ in range(80)]
    made = []
    for i in range(count):
        life, start = 1 + int(2 ** rng.uniform(0, 11)), rng.randrange(2 * count)
        made.append(Buffer(f"b{i}", start, start + life, rng.choice(sizes)))
    return made


def step_trace(count: int, seed: int = 0) -> list[Buffer]:
    """A training step: nested activations, gradients, many short ones; as SOMAS traces are."""
    rng, made = random.Random(seed), list[Buffer]()
    sizes = [512 * int(2 ** rng.uniform(0, 13)) for _ in range(60)]
    layers = count // 6

    def add(start: int, stop: int, size: int) -> None:
        made.append(Buffer(f"b{len(made)}", start, max(stop, start + 1), size))

    for i in range(layers):
        add(i, 2 * layers - i + rng.randrange(12), sizes[i % 7 * 8 + rng.randrange(8)])
        for _ in range(2):
            start = rng.randrange(2 * layers)
            add(start, start + 1 + int(2 ** rng.uniform(0, 5)), rng.choice(sizes))
        back = 2 * layers - i
        add(back, back + rng.randint(1, layers // 4 + 1), rng.choice(sizes) // 4 + 512)
    while len(made) < count:
        start = rng.randrange(2 * layers)
        add(start, start + 1 + int(2 ** rng.uniform(0, 9)), rng.choice(sizes) // 8 + 512)
    return made


def one_graph(family: str, ops: int, limit: float) -> str:
    """The row of one graph; in a process of its own."""
    seconds = {}

    def timed(name: str, work: Callable[[], object]) -> object:
        began = time.perf_counter()
        made = work()
        seconds[name] = time.perf_counter() - began
        return made

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "graph.txt"
        made = [FAMILIES[family](ops)]
        timed("write", lambda: file.write_text(text.dump(made.pop())))
        read = timed("read", lambda: text.parse(file.read_text()))
    assert isinstance(read, Graph)
    timed("profile", lambda: profile(read))
    began = time.perf_counter()
    found = schedule(read, "exact", Options(time_limit_s=limit))
    searched = time.perf_counter() - began
    timed("check", lambda: check_schedule(read, found.order, found.peak_bytes))
    gap = found.peak_bytes / max(1, found.lower_bound_bytes) - 1
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return (
        f"| {family} | {len(read.ops):,} | {seconds['write']:.1f} | {seconds['read']:.1f} | "
        f"{seconds['profile']:.1f} | {seconds['check']:.1f} | {limit:g} | {searched:.1f} | "
        f"{found.peak_bytes:,} | {gap:.1%} | {memory:.1f} |"
    )


def graphs(sizes: Sequence[int], limit: float) -> None:
    print("| family | ops | write s | read s | profile s | check s | limit s | search s | ", end="")
    print("peak | gap | GB |\n|" + "---|" * 11)
    context = multiprocessing.get_context("spawn")
    for family in FAMILIES:
        for ops in sizes:
            with context.Pool(1) as pool:
                print(pool.apply(one_graph, (family, ops, limit)), flush=True)


ALLOWED_SHARE, ALLOWED_S = 1.1, 0.5
"""A command may take so much of its limit and so many seconds more, from when its file is read."""

COMMANDS = {"schedule": ("layered", "training"), "rewrite": ("layered",), "plan": ("plateau",)}
"""Which kinds of files each command is given, at each size."""

MODELS = {
    "rows": "zoo:mobilenet-v2?layout=NHWC&quantised=1",
    "rewrite": "zoo:swiftnet-cell-a",
}
"""Commands that read models; those that compile take the time of that beside their limit."""

CLOCKED = """
import sys, time
from importlib import import_module
read = sys.argv.pop(1)

def note():
    with open(read, "a") as file:
        print(time.monotonic(), time.process_time(), file=file)

def noted(work, before=False):
    def run(*arguments, **options):
        if before:
            note()
        made = work(*arguments, **options)
        if not before:
            note()
        return made
    return run

if sys.argv[2].startswith("zoo:"):
    home = import_module("tvm_serenity.deadline")
    home.within = noted(home.within, before=True)
elif sys.argv[1] == "plan":
    home = import_module("tvm_serenity.plan")
    home.read_csv = noted(home.read_csv)
else:
    home = import_module("tvm_serenity.text")
    home.parse = noted(home.parse)
from tvm_serenity.cli import main
main()
"""
"""The command line, writing when a file has been read (of a model: when its limit begins)."""


def limits(sizes: Sequence[int], _limit: float) -> None:
    """Commands under limits of 1 and 10 s, and of 60 s at the largest size."""
    print("| command | ops | limit s | seconds after reading | CPU s | status | held |")
    print("|" + "---|" * 7)
    with tempfile.TemporaryDirectory() as folder:
        for command, model in MODELS.items():
            for limit in (1, 10):
                _limited([command, model], model, limit, folder)
        for ops in sizes:
            for limit in (1, 10):
                _at_size(Path(folder), ops, limit)
        _at_size(Path(folder), max(sizes), 60)


def _at_size(folder: Path, ops: int, limit: int) -> None:
    for command, kinds in COMMANDS.items():
        for kind in kinds:
            file = _file(folder, kind, ops)
            _limited([command, str(file)], f"{ops:,} {kind}", limit, str(folder))


def _file(folder: Path, kind: str, ops: int) -> Path:
    """A text file of a graph, or the CSV of a trace."""
    file = folder / f"{kind}-{ops}.{'csv' if kind == 'plateau' else 'txt'}"
    if kind == "plateau":
        rows = (f"{b.name},{b.lower},{b.upper},{b.size_bytes}" for b in trace(ops))
        file.write_text("id,lower,upper,size\n" + "\n".join(rows) + "\n")
    else:
        file.write_text(text.dump(FAMILIES[kind](ops)))
    return file


def _limited(words: Sequence[str], what: str, limit: int, folder: str) -> None:
    """The row of one command under a limit."""
    noted = Path(folder) / "read"
    noted.unlink(missing_ok=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", CLOCKED, str(noted), *words, "--time-limit", str(limit)]
    made = subprocess.run(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=folder, check=False
    )
    if not noted.exists():
        sys.exit(f"{' '.join(words)}: {made.stderr.decode()}")
    ended, after = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    began, spent = map(float, noted.read_text().splitlines()[0].split())
    took = ended - began
    cpu = sum(getattr(after, n) - getattr(before, n) for n in ("ru_utime", "ru_stime")) - spent
    held = "yes" if took <= ALLOWED_SHARE * limit + ALLOWED_S else "no"
    print(
        f"| {words[0]} | {what} | {limit} | {took:.2f} | {cpu:.2f} | {made.returncode} | {held} |",
        flush=True,
    )


def placements(_sizes: Sequence[int], limit: float) -> None:
    print("| trace | buffers | limit s | seconds | bound | gap | found by |\n|" + "---|" * 7)
    for name, make in (("plateau", trace), ("training step", step_trace)):
        for count in (10_000, 18_692, 28_526, 62_185):
            buffers = make(count)
            found = plan(buffers, options=PlanOptions(time_limit_s=limit))
            check_plan(buffers, found.offsets, found.arena_bytes)
            print(
                f"| {name} | {count:,} | {limit:g} | {found.seconds:.1f} | "
                f"{found.lower_bound_bytes:,} | {found.gap:.2%} | "
                f"{found.statistics['found_by']} |",
                flush=True,
            )


def certificates(_sizes: Sequence[int], _limit: float, count: int = 200) -> None:
    """Random graphs' certificates; each is changed in one way, all ways in turn."""
    kinds, confirmed, rejected, slowest = Counter[str](), 0, 0, 0.0
    for seed in range(count):
        graph = windowed_graph(random.Random(seed), 3_000 + 5 * seed, 6 + seed % 40)
        found = schedule(graph, "exact", Options(time_limit_s=1.0))
        claims = certificate(graph, found)
        proof = claims["proof"]
        kinds[f"{proof['kind']}{' cut' if {'op', 'ops'} <= set(proof) else ''}"] += 1
        began = time.process_time()
        accepted = check_certificate(graph, claims, states=CHECK_STATES)
        slowest = max(slowest, time.process_time() - began)
        confirmed += accepted.bound_checked
        tamper = TAMPERED[seed % len(TAMPERED)]
        rejected += is_rejected(graph, json.dumps(claims), tamper, CHECK_STATES)
    columns = ("graphs", "accepted", "bound settled", "tampered rejected", "slowest s", "proofs")
    print("| " + " | ".join(columns) + " |\n|" + "---|" * 6)
    proofs = ", ".join(f"{n} {kind}" for kind, n in kinds.most_common())
    print(f"| {count} | {count} | {confirmed} | {rejected} | {slowest:.1f} | {proofs} |")


TABLES = {
    "graphs": graphs,
    "limits": limits,
    "placements": placements,
    "certificates": certificates,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", default=list(TABLES), metavar="TABLE")
    parser.add_argument("--ops", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--limit", type=float, default=20.0)
    chosen = parser.parse_args()
    for table in chosen.tables:
        TABLES[table](chosen.ops, chosen.limit)
        print()


if __name__ == "__main__":
    main()
