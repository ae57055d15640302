"""Small PyTorch networks with drawn options, as ONNX files: float and quantised by onnxruntime.

python benchmarks/torch_layers.py COUNT SEED FOLDER [FIRST]

From network FIRST on. Float, quantised while it runs ("dynamic"), and by calibration with
activations of int8 or uint8, in turn. The networks are those of
``tests/conformance/torch_zoo.py`` and ``torch_sequences.py``.
"""

import logging
import random
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.conformance.torch_sequences import SEQUENCES
from tests.conformance.torch_zoo import CNNS

MODES = ("dynamic", "int8", "float", "uint8")


class Samples:
    """Inputs for calibration, as onnxruntime reads them."""

    def __init__(self, names: list[str], inputs: tuple[Any, ...], seed: int) -> None:
        torch.manual_seed(seed)
        self.left = self._drawn(names, inputs)

    @staticmethod
    def _drawn(names: list[str], inputs: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
        for _ in range(4):
            drawn = (torch.randn_like(x) if x.is_floating_point() else x for x in inputs)
            yield {name: x.numpy() for name, x in zip(names, drawn, strict=True)}

    def get_next(self) -> dict[str, Any] | None:
        """Return the next inputs by name, None at the end."""
        return next(self.left, None)


def quantised(mode: str, plain: Path, made: Path, inputs: tuple[Any, ...]) -> None:
    """Quantise the file ``plain`` as ``made``."""
    import onnx
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_dynamic, quantize_static

    if mode == "dynamic":
        quantize_dynamic(plain, made, weight_type=QuantType.QInt8)
        return
    names = [value.name for value in onnx.load(plain).graph.input]
    kind = QuantType.QInt8 if mode == "int8" else QuantType.QUInt8
    quantize_static(
        plain,
        made,
        Samples(names, inputs, 0),  # type: ignore[arg-type]
        quant_format=QuantFormat.QDQ,
        activation_type=kind,
        weight_type=QuantType.QInt8,
        per_channel=mode == "int8",
    )


def write(number: int, seed: int, folder: Path) -> Path:
    """Write the network ``number``; return its file."""
    kinds = {**CNNS, **SEQUENCES}
    name = list(kinds)[number % len(kinds)]
    mode = MODES[(number + number // len(kinds)) % len(MODES)]
    torch.manual_seed(seed * 1009 + number)
    module, inputs = kinds[name](random.Random(seed * 1_000_003 + number))
    plain = folder / f"{number:02d}-{name}-float.onnx"
    torch.onnx.export(module.eval(), inputs, str(plain), dynamo=False, opset_version=17)
    if mode == "float":
        return plain
    made = folder / f"{number:02d}-{name}-{mode}.onnx"
    quantised(mode, plain, made, inputs)
    plain.unlink()
    return made


def main(count: int, seed: int, folder: Path, first: int = 0) -> None:
    """Write the networks ``first`` to ``count``; what the exporter refuses is said."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    folder.mkdir(parents=True, exist_ok=True)
    np.random.seed(seed)
    torch.set_num_threads(1)
    for number in range(first, count):
        print(f"network {number}", flush=True)
        try:
            write(number, seed, folder)
        except Exception as error:
            said = " ".join(str(error).split())[:160]
            print(f"    not exported: {type(error).__name__}: {said}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), *map(int, sys.argv[4:]))
