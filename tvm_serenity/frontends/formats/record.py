"""What the record of a file format says; each is declared in a file of ``frontends.formats``."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_serenity.frontends.model_file import ModelFile

if TYPE_CHECKING:
    from tvm_serenity.frontends.pte_file import Allocated
    from tvm_serenity.frontends.relax._converter import Integers
    from tvm_serenity.frontends.tflite_causal import CausalFile
    from tvm_serenity.frontends.tflite_interface import StoredInterface
    from tvm_serenity.rows.network import Network

Reader = Callable[[Path, bytes, Mapping[str, int]], ModelFile]


@dataclass(frozen=True, kw_only=True)
class Format:
    """A format of model files.

    * ``name``: as ``ModelFile.format`` says it; ``title`` in words. ``suffixes``: of its files, the
      usual one first. ``magic``: bytes that its files have at an offset.
    * ``read``: from a path, the file's bytes and sizes for ``--dim`` to a :class:`ModelFile`.
    * ``read_signature``: the same of one of several entry points, by its name as ``signature``;
      None where files have one.
    * ``no_sizes``: why files take no sizes (``--dim``), "" where ``read`` does.
    * ``to_relax``: from a model, sizes and how integers round to a Relax module; None where files
      have nothing to compile: ``ModelFile.check_operators`` says what to do.
    * ``names_module``: the module's inputs and outputs get the names of the graph's.
    * ``runtime``: the reference runtime ("litert", "onnxruntime", "torch"), "" for none;
      ``rounding``: how integers round as there; ``reads_integers``: the file itself says which
      operators are computed in integers.
    * ``written``: files are written in another order (``ModelFile.reordered`` refuses it where they
      are not, and says what to do); ``after_order``: who follows the order of one that was.

    What some formats have alone: ``rows``, the network of the file's operators by rows;
    ``interface``, the network with a stored interface; ``causal``, the one that looks back;
    ``offline_plan``, the file with an order and a plan for TFLM; ``allocated``, what a program has
    planned.
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    read: Reader
    magic: tuple[int, bytes] | None = None
    read_signature: Callable[..., ModelFile] | None = None
    no_sizes: str = ""
    to_relax: "Callable[[Any, Mapping[str, int], Integers], Any] | None" = None
    names_module: bool = True
    runtime: str = ""
    rounding: str = "tflite"
    reads_integers: bool = False
    written: bool = True
    after_order: str = ""
    rows: "Callable[[Any], Network] | None" = None
    interface: "Callable[[bytes, str], StoredInterface] | None" = None
    causal: "Callable[[bytes, str], CausalFile] | None" = None
    offline_plan: Callable[[Any, Sequence[int], bytes], bytes] | None = None
    allocated: "Callable[[Any], Allocated] | None" = None

    def begins(self, head: bytes) -> bool:
        """Return whether the first bytes of a file have this format's magic bytes."""
        if self.magic is None:
            return False
        at, word = self.magic
        return head[at : at + len(word)] == word
