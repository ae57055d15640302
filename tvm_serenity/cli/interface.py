"""``serenity interface``: a network whose inputs and outputs are integers, as it stores them."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tvm_serenity.cli import app, show
from tvm_serenity.cli.options import Json, Model
from tvm_serenity.errors import WrongResultError
from tvm_serenity.files import write_bytes
from tvm_serenity.frontends import load
from tvm_serenity.frontends.formats import operation

if TYPE_CHECKING:
    from tvm_serenity.frontends.tflite_interface import StoredEdge, StoredInterface

COMPARED = 4
"""Sets of inputs that both networks run on."""


@app.command("interface")
def interface_command(
    model: Model,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE.tflite", help="Write the network here.")
    ],
    json: Json = False,
) -> None:
    """Write the network with the integers that it stores as its inputs and outputs.

    A quantised network with float at its edges takes a frame of four times the
    bytes, and quantises it first. Here the QUANTIZE behind each input and the
    DEQUANTIZE before each output are left out: give and take stored values, of
    which scale and zero point are printed. LiteRT runs both networks on the
    same values before the file is written, and their answers must be equal.

    [dim]Examples[/dim]
      serenity interface mcunet.tflite -o mcunet-stored.tflite
      serenity fit mcunet-stored.tflite --board microbit
    """
    said = f"{model}: interface writes {{files}} files, of {{files}} files"
    stored_interface = operation(model, "interface", said)
    operation(output, "interface", said)
    load(model)  # says what is wrong with a file that is none
    data = Path(model).read_bytes()
    with show.progress(f"interface of {model}"):
        found = stored_interface(data, model)
        _compare(model, data, found)
    write_bytes(Path(output), found.data)
    result = {
        "model": model,
        "output": output,
        "inputs": [asdict(edge) for edge in found.inputs],
        "outputs": [asdict(edge) for edge in found.outputs],
        "compared": COMPARED,
    }
    if json:
        show.print_json(result)
        return
    facts = {f"input {e.index}": _line(e) for e in found.inputs}
    facts |= {f"output {e.index}": _line(e) for e in found.outputs}
    facts["compared"] = f"LiteRT's answers on {COMPARED} sets of inputs are equal"
    show.facts(f"{model}: {output}", facts)


def _line(edge: "StoredEdge") -> str:
    return (
        f"{edge.name}: {edge.dtype}, {edge.scale:.9g} * (stored - {edge.zero_point}); "
        f"{edge.size_bytes:,} bytes instead of {edge.float_bytes:,}"
    )


def _compare(model: str, data: bytes, found: "StoredInterface") -> None:
    """Raise :class:`WrongResultError` unless both networks answer alike."""
    import numpy as np

    from tvm_serenity.referees import Referee

    with Referee() as new, Referee() as old:
        new.open("litert", found.data)
        old.open("litert", data)
        for fill in range(COMPARED):
            stored = new.inputs(fill)
            given = _values(stored, found.inputs)
            pairs = zip(
                _values(new.run(stored).outputs, found.outputs), old.run(given).outputs, strict=True
            )
            for index, (ours, theirs) in enumerate(pairs):
                if not np.allclose(ours, theirs, rtol=1e-6, atol=0, equal_nan=True):
                    raise WrongResultError(f"{model}: output {index} is another one than before")


def _values(arrays: Sequence[Any], edges: Sequence["StoredEdge"]) -> list[Any]:
    """The arrays as the network had them before."""
    known = {edge.index: edge for edge in edges}
    return [known[i].value(a) if i in known else a for i, a in enumerate(arrays)]
