"""``interface``: give a quantised network integer inputs and outputs."""

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
"""Number of sets of inputs on which both networks run."""


@dataclass(frozen=True, kw_only=True)
class InterfaceOptions(OptionGroup):
    """The options of ``interface``; ``output``: the written file."""

    output: str = option(
        MISSING, differing(OUTPUT, metavar="FILE.tflite", help="Write the network here.")
    )


@dataclass(frozen=True)
class InterfaceResult:
    """The written network, and how its inputs and outputs are stored."""

    model: str
    output: str
    stored: "StoredInterface"

    def json(self) -> dict[str, Any]:
        """Return the result as ``--json`` prints it."""
        return {
            "model": self.model,
            "output": self.output,
            "inputs": [asdict(edge) for edge in self.stored.inputs],
            "outputs": [asdict(edge) for edge in self.stored.outputs],
            "compared": COMPARED,
        }


def interface(model: str, options: InterfaceOptions, tell: Progress = silent) -> InterfaceResult:
    """Return the network with integer inputs and outputs, after writing it to ``output``.

    LiteRT runs both networks first. Raises :class:`WrongResultError` if their outputs differ.
    """
    output = options.output
    message = f"{model}: interface reads and writes only {{files}} files"
    stored_interface = operation(model, "interface", message)
    operation(output, "interface", message)
    load(model)  # reports an invalid file
    data = Path(model).read_bytes()
    with tell(f"interface of {model}"):
        found = stored_interface(data, model)
        _compare(model, data, found)
    write_bytes(Path(output), found.data)
    return InterfaceResult(model, output, found)


def _compare(model: str, data: bytes, found: "StoredInterface") -> None:
    """Raise :class:`WrongResultError` if the outputs of both networks differ."""
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
                    raise WrongResultError(f"{model}: output {index} differs from the original's")


def _values(arrays: Sequence[Any], edges: Sequence["StoredEdge"]) -> list[Any]:
    """Return ``arrays`` as the original network stores them, with floats at its edges."""
    known = {edge.index: edge for edge in edges}
    return [known[i].value(a) if i in known else a for i, a in enumerate(arrays)]
