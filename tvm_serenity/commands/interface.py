"""``interface``: a network whose inputs and outputs are integers, as it stores them."""

from collections.abc import Sequence
from dataclasses import MISSING, asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_serenity.commands.progress import Progress, silent
from tvm_serenity.errors import WrongResultError
from tvm_serenity.frontends import load
from tvm_serenity.frontends.formats import operation
from tvm_serenity.options.option import OptionGroup, differing, option
from tvm_serenity.options.output import OUTPUT
from tvm_serenity.system.files import write_bytes

if TYPE_CHECKING:
    from tvm_serenity.frontends.tflite_interface import StoredEdge, StoredInterface

COMPARED = 4
"""Sets of inputs that both networks run on."""


@dataclass(frozen=True, kw_only=True)
class InterfaceOptions(OptionGroup):
    """``output``: the file that is written."""

    output: str = option(
        MISSING, differing(OUTPUT, metavar="FILE.tflite", help="Write the network here.")
    )


@dataclass(frozen=True)
class InterfaceFound:
    """The network that was written: how its inputs and outputs are stored."""

    model: str
    output: str
    found: "StoredInterface"

    def json(self) -> dict[str, Any]:
        """Return what JSON says of it."""
        return {
            "model": self.model,
            "output": self.output,
            "inputs": [asdict(edge) for edge in self.found.inputs],
            "outputs": [asdict(edge) for edge in self.found.outputs],
            "compared": COMPARED,
        }


def interface(model: str, options: InterfaceOptions, tell: Progress = silent) -> InterfaceFound:
    """Write the network with the integers that it stores as its inputs and outputs; return it.

    LiteRT runs both networks first: :class:`WrongResultError` unless their answers are equal.
    """
    output = options.output
    said = f"{model}: interface writes {{files}} files, of {{files}} files"
    stored_interface = operation(model, "interface", said)
    operation(output, "interface", said)
    load(model)  # says what is wrong with a file that is none
    data = Path(model).read_bytes()
    with tell(f"interface of {model}"):
        found = stored_interface(data, model)
        _compare(model, data, found)
    write_bytes(Path(output), found.data)
    return InterfaceFound(model, output, found)


def _compare(model: str, data: bytes, found: "StoredInterface") -> None:
    """Raise :class:`WrongResultError` unless both networks answer alike."""
    import numpy as np

    from tvm_serenity.validation.references import ReferenceRuntime

    with ReferenceRuntime() as new, ReferenceRuntime() as old:
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
