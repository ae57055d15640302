"""Arenas by rows with layers made in tiles and computed again: placed, built and run in QEMU.

    python benchmarks/recompute.py [--overlap] [NETWORK ...]

The input arrives row by row, bands are of one row. For each network: the arena without tiles, with
tiles and no work done twice, and within the factor that is allowed; what was done twice; and the
instructions of one run of the first and the last. Every tensor is compared when it is written.
MCUNet 320K is built from its published description (Lin et al., NeurIPS 2020; 176 x 176).
"""

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from tvm_serenity import firmware
from tvm_serenity.firmware import Settings
from tvm_serenity.firmware.check.verify import difference, run_qemu
from tvm_serenity.zoo.net import module
from tvm_serenity.zoo.quantised import QuantisedNet
from tvm_serenity.zoo.window import same

BOARD = "mps2-an386"
DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "models"
STAGES = (
    (16, ((3, 7), (5, 3), (5, 7), (4, 5)), 2),
    (24, ((5, 5), (5, 5), (5, 5)), 2),
    (40, ((5, 3), (6, 7), (4, 5)), 2),
    (48, ((5, 5), (5, 7), (5, 3)), 1),
    (96, ((6, 3), (5, 7), (4, 3)), 2),
)
"""Of MCUNet 320K: channels; expansion and window of each block; stride of the first."""
ZOO = "zoo:mobilenet-v2?layout=NHWC&quantised=1"
NETWORKS: dict[str, tuple[str, float]] = {
    "MobileNet v2 0.35, 144 px": (f"{ZOO}&size=144&width=0.35", 1.15),
    "MobileNet v2 1.0, 224 px": (ZOO, 1.17),
    "MCUNet VWW, 80 px": (str(DATA / "mcunet/mcunet_vww_int8.tflite"), 1.05),
    "MCUNet 320K, 176 px": ("", 1.82),
}
"""What to build ("": written here), and the factor of work that is allowed."""


def mcunet(net: Any) -> Any:
    """MCUNet for 320 KB of RAM and 1 MB of flash."""
    x = net.relu6(net.conv(net.input("image", 3, 176), 16, same(3, 2)))
    x = net.conv(net.relu6(net.depthwise(x, same(3))), 8)
    for channels, blocks, stride in STAGES:
        for index, (expansion, kernel) in enumerate(blocks):
            wide = max(8, int(expansion * x.channels + 4) // 8 * 8)
            x = block(net, x, wide, channels, kernel, 1 if index else stride, bool(index))
    x = block(net, x, 480, 160, 7, 1, False)
    return net.softmax(net.dense(net.mean(x), 1000))


def block(net: Any, x: Any, wide: int, channels: int, kernel: int, stride: int, adds: bool) -> Any:
    """An inverted residual block."""
    y = net.relu6(net.depthwise(net.relu6(net.conv(x, wide)), same(kernel, stride)))
    y = net.conv(y, channels)
    return net.add(x, y) if adds else y


def row(name: str, overlap: bool) -> str:
    source, factor = NETWORKS[name]
    model = source or module(mcunet, "NHWC", 1, QuantisedNet)
    asked = Settings(name="net", rows=1, stream_input=True, overlap=overlap)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for limit in (None, 1.0, factor):
            place = str(Path(folder) / str(limit))
            made = firmware.build(model, BOARD, replace(asked, recompute=limit, output=place))
            facts = made.facts["rows"]
            again = facts["recompute"] or {"factor": 1.0, "chains": []}
            inputs = made.reference_inputs()
            same = difference(made, run_qemu(made, inputs, traced=True).trace)
            assert same.identical, (name, same.first)
            found.append((facts, again, run_qemu(made, inputs, traced=False).instructions or 0))
    arenas = " | ".join(f"{facts['arena_bytes']:,}" for facts, _, _ in found)
    facts, again, _ = found[-1]
    heads = sum(chain["again"] for chain in again["chains"])
    millions = " / ".join(f"{count / 1e6:.1f}" for _, _, count in (found[0], found[-1]))
    return (
        f"| {name} | {arenas} at {again['factor']:.3f} | {facts['lower_bound_bytes']:,} | {factor} "
        f"| {len(again['chains'])}, {heads} | {millions} | {same.tensors} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", help="names, or parts of them")
    parser.add_argument("--overlap", action="store_true", help="rows may lie over others")
    given = parser.parse_args()
    print(
        "| network | rows | tiles, nothing twice | computed again | bound of these | allowed "
        "| chains, with a head | million instructions | tensors compared |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name in NETWORKS:
        if not given.networks or any(one in name for one in given.networks):
            print(row(name, given.overlap), flush=True)


if __name__ == "__main__":
    main()
