"""``serenity interface``: a network whose inputs and outputs are integers, as it stores them."""

from typing import TYPE_CHECKING

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.options import Model
from tvm_serenity.commands.interface import COMPARED, InterfaceOptions, interface
from tvm_serenity.options.output import Shown

if TYPE_CHECKING:
    from tvm_serenity.frontends.tflite_interface import StoredEdge


@command("interface")
def interface_command(model: Model, options: InterfaceOptions, shown: Shown) -> None:
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
    made = interface(model, options, show.progress)
    if shown.json:
        show.print_json(made.json())
        return
    facts = {f"input {e.index}": _line(e) for e in made.found.inputs}
    facts |= {f"output {e.index}": _line(e) for e in made.found.outputs}
    facts["compared"] = f"LiteRT's answers on {COMPARED} sets of inputs are equal"
    show.facts(f"{model}: {made.output}", facts)


def _line(edge: "StoredEdge") -> str:
    return (
        f"{edge.name}: {edge.dtype}, {edge.scale:.9g} * (stored - {edge.zero_point}); "
        f"{edge.size_bytes:,} bytes instead of {edge.float_bytes:,}"
    )
