"""The table of ordinary networks as int8: which compile, and whether LiteRT computes the same.

    python benchmarks/keras_like.py [--dtype int8] [--real] [--save FOLDER] [NETWORK ...]

The networks are those of ``tests/conformance/networks``; their weights are random, their scales
come from the ranges that the float network has on random inputs. Outputs are compared with
LiteRT's reference kernels bit by bit on six inputs: three random, the smallest and the largest
values, and zero points. A network that differs is named with its first wrong kernel.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import tvm

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.conformance.builder import Net
from tests.conformance.case import DIFFERENT, EQUAL, Case, Verdict, check
from tests.conformance.locate import first_difference
from tests.conformance.networks import NETWORKS
from tests.conformance.quantise import integer_file, ranges
from tests.quantize.running import REFERENCE
from tvm_serenity.errors import SerenityError
from tvm_serenity.frontends.relax import to_relax
from tvm_serenity.passes import serenity_pipeline
from tvm_serenity.relax.schedule import ARENA
from tvm_serenity.validation.references import ReferenceRuntimeError

HEAD = (
    "| network | operators | parameters | compiles | as LiteRT, bit by bit | arena, bytes |\n"
    "|---|---|---|---|---|---|"
)


def parameters(net: Net) -> int:
    """Weights and biases, each counted once."""
    stored = (v.data for v in net.values if v.data is not None and v.role != "index")
    return sum(int(np.size(data)) for data in stored)


def arena_bytes(data: bytes) -> int:
    """Return the bytes of the one arena that the network runs in."""
    with tempfile.TemporaryDirectory() as folder, tvm.target.Target("llvm"):
        path = Path(folder) / "model.tflite"
        path.write_bytes(data)
        planned = serenity_pipeline()(to_relax(path))
    return int(planned["main"].attrs[ARENA])


def row(name: str, net: Net, data: bytes, verdict: Verdict) -> str:
    compiles, exact, arena = "yes", "yes", ""
    if verdict.status in (EQUAL, DIFFERENT):
        try:
            arena = f"{arena_bytes(data):,}"
        except SerenityError as error:
            compiles = str(error)
    if verdict.status == DIFFERENT:
        exact = f"no: {verdict.reason}; {first_difference(Case(name, data))}"
    elif verdict.status != EQUAL:
        compiles, exact = f"no: {verdict.reason}", ""
    counts = f"{len(net.steps)} | {parameters(net):,}"
    return f"| {name} | {counts} | {compiles} | {exact} | {arena} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--dtype", choices=("int8", "uint8"), default="int8")
    parser.add_argument("--real", action="store_true", help="float inputs and outputs")
    parser.add_argument("--save", type=Path, help="write the files here")
    arguments = parser.parse_args()
    print(HEAD)
    wrong = 0
    for name in arguments.networks:
        net = NETWORKS[name]()
        data = integer_file(net, ranges(net, REFERENCE), arguments.dtype, arguments.real)
        if arguments.save:
            arguments.save.mkdir(parents=True, exist_ok=True)
            (arguments.save / f"{name.replace(' ', '_')}.tflite").write_bytes(data)
        verdict = check(Case(name, data))
        wrong += verdict.status == DIFFERENT
        try:
            print(row(name, net, data, verdict), flush=True)
        except ReferenceRuntimeError as error:
            print(f"| {name} | {error} |", flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
