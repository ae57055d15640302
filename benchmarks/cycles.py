"""Predicted beside published: ``python benchmarks/cycles.py FOLDER``.

FOLDER holds linked programs named ``WHO-MODEL.elf`` (``microtvm-kws.elf``) whose function ``bench``
runs the network once and returns; docs/latency.md names the submissions. Errors are those of the
most cycles (branch refill 2) and, in brackets, of the least.
"""

import statistics
import sys
from pathlib import Path

from tvm_serenity.boards import board
from tvm_serenity.cycles import MeasuredCall, cycles_of
from tvm_serenity.errors import SerenityError

BOARDS = {
    "nrf5340_cmsis": "nrf5340-dk",
    "nuvoton_m467": "numaker-m467hj",
    "renesas_ra6m4": "ek-ra6m4",
}
"""Boards of submissions; of the others nucleo-l4r5zi."""
PUBLISHED_MS = {
    "microtvm": {"kws": 144.03, "vww": 336.6, "ic": 389.26, "ad": 11.718},
    "microtvm_cmsis": {"kws": 99.81, "vww": 301.2, "ic": 389.56, "ad": 8.605},
    "skymizer_zephyr": {"kws": 93.64, "vww": 197.79, "ic": 296.56, "ad": 8.006},
    "skymizer_mbed": {"kws": 82.0, "vww": 172.2, "ic": 298.7, "ad": 8.07},
    "nrf5340_cmsis": {"kws": 76.5, "vww": 233.3, "ic": 317.9, "ad": 6.29},
    "nuvoton_m467": {"kws": 46.19, "vww": 98.73, "ic": 171.44, "ad": 4.89},
    "renesas_ra6m4": {"kws": 50.57, "vww": 162.36, "ic": 246.18, "ad": 4.61},
}
"""MLPerf Tiny v0.7 (Renesas), v1.0 (OctoML) and v1.1 (Skymizer, Nuvoton), closed division."""

CHOSEN_ON = "microtvm"
"""Modelling choices were made on these results, and ``BOARDS`` written in sight of theirs."""


def main() -> None:
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit("usage: python benchmarks/cycles.py FOLDER")
    folder = Path(sys.argv[1])
    errors: dict[str, list[float]] = {"nucleo-l4r5zi": [], "of it held out": [], "others": []}
    print("| submission | published ms | predicted ms | error % | million instructions |")
    print("|---|---|---|---|---|")
    for who, results in PUBLISHED_MS.items():
        on = board(BOARDS.get(who, "nucleo-l4r5zi"))
        for model, published in results.items():
            path = folder / f"{who}-{model}.elf"
            if not path.is_file():
                continue
            try:
                found = cycles_of(path, on, MeasuredCall(function="bench"))
            except SerenityError as error:
                print(f"| {who} {model} | {published} | {error} | | |")
                continue
            low, high = found.milliseconds
            worse, better = (100 * (ms / published - 1) for ms in (high, low))
            errors["others" if who in BOARDS else "nucleo-l4r5zi"].append(abs(worse))
            if who not in (*BOARDS, CHOSEN_ON):
                errors["of it held out"].append(abs(worse))
            print(
                f"| {who} {model} | {published} | {low:.1f} to {high:.1f} "
                f"| {worse:+.1f} ({better:+.1f}) | {found.instructions / 1e6:.2f} |"
            )
    for name, values in errors.items():
        if values:
            middle = statistics.median(values)
            print(
                f"\n{name}: {len(values)} results, median {middle:.1f} %, worst {max(values):.1f} %"
            )


if __name__ == "__main__":
    main()
