"""``serenity interface``: give a quantised network integer inputs and outputs."""

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
    """Write a quantised network whose inputs and outputs are integers instead of floats.

    A quantised network with float inputs and outputs needs four times the bytes for its input and
    quantises it first. This command removes the QUANTIZE after each input and the DEQUANTIZE before
    each output, and prints the scale and zero point of the stored integers. Before the file is
    written, LiteRT runs both networks on the same values; their outputs must be equal.

    [dim]Examples[/dim]
      serenity interface mcunet.tflite -o mcunet-stored.tflite
      serenity fit mcunet-stored.tflite --board microbit
    """
    result = interface(model, options, show.progress)
    if shown.json:
        show.print_json(result.json())
        return
    facts = {f"input {e.index}": _line(e) for e in result.stored.inputs}
    facts |= {f"output {e.index}": _line(e) for e in result.stored.outputs}
    facts["compared"] = f"LiteRT's outputs of both networks are equal on {COMPARED} sets of inputs"
    show.facts(f"{model}: {result.output}", facts)


def _line(edge: "StoredEdge") -> str:
    return (
        f"{edge.name}: {edge.dtype}, {edge.scale:.9g} * (stored - {edge.zero_point}); "
        f"{edge.size_bytes:,} bytes instead of {edge.float_bytes:,}"
    )
