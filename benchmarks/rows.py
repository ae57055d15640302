"""The table of networks in bands: order and placement on windowed graphs of up to 2,000 bands.

    python benchmarks/rows.py [--rows 8,4,2,1] [--streamed] [--time-limit 10] [MODEL.tflite ...]

Every operator of a model that keeps rows apart is split into bands of some rows
(``tvm_serenity.rows``); a band op reads the input bands its window touches. Nothing is computed
twice. ``--streamed``: input rows arrive one by one, and are not in memory from the start.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from tvm_serenity.frontends import load
from tvm_serenity.frontends.tflite_file import TfliteFile
from tvm_serenity.frontends.tflite_rows import network_of
from tvm_serenity.graph import Graph
from tvm_serenity.rows import Limits, heights_of, stream
from tvm_serenity.rows import split as split_network
from tvm_serenity.rows.choose import table_bytes
from tvm_serenity.rows.network import Network

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "models"
MODELS = (
    "tflm/person_detect.tflite",
    "mlperf_tiny/vww_mobilenetv1_96_int8.tflite",
    "mlperf_tiny/ic_resnet8_int8.tflite",
    "mlperf_tiny/kws_dscnn_int8.tflite",
    "mltk/mltk_keyword_spotting_on_off_v3.tflite",
    "mcunet/mcunet_vww_int8.tflite",
    "swiftnet/swiftnet_vww_224_uint8.tflite",
    "misc/mobilenet_v1_0.25_128_quant.tflite",
)


def network(path: Path) -> Network:
    """A .tflite file as rows."""
    file = load(path)
    assert isinstance(file, TfliteFile)
    return network_of(file)


def split(path: Path, rows: int, streamed: bool) -> Graph:
    """The graph of a .tflite model with every op in bands of ``rows`` rows."""
    net = network(path)
    return split_network(net, heights_of(net, rows), streamed=streamed).graph


def row(path: Path, rows: int, streamed: bool, limit: float) -> str:
    net = network(path)
    found = stream(net, heights_of(net, rows), streamed=streamed, limits=Limits(limit))
    found.check()
    return (
        f"| {path.stem} | {rows} | {len(found.banded.graph.ops)} | {found.start_bytes:,} "
        f"| {found.schedule.peak_bytes:,} | {found.lower_bound_bytes:,} | {found.arena_bytes:,} "
        f"| {found.outcome} | {table_bytes(found.banded):,} | {found.seconds:.1f} |"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--rows", default="8,4,2,1")
    parser.add_argument("--streamed", action="store_true")
    parser.add_argument("--time-limit", type=float, default=10.0)
    options = parser.parse_args(arguments)
    print("| model | rows | ops | segments | peak | bound | arena | outcome | tables | s |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for path in options.models or [DATA / name for name in MODELS]:
        for rows in map(int, options.rows.split(",")):
            print(row(path, rows, options.streamed, options.time_limit), flush=True)


if __name__ == "__main__":
    main()
