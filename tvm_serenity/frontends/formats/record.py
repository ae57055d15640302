"""The record of a file format, which each file of ``frontends.formats`` declares."""

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

    * ``name``: as in ``ModelFile.format``; ``title``: the name for users. ``suffixes``: file
      suffixes, the usual one first. ``magic``: the offset of its magic bytes, and these bytes.
    * ``read``: returns a :class:`ModelFile` from a path, the file's bytes and the sizes of
      ``--dim``.
    * ``read_signature``: the same for the entry point ``signature``; None if files have only one.
    * ``no_sizes``: why files take no sizes (``--dim``), "" if ``read`` takes them.
    * ``to_relax``: returns a Relax module from a model, sizes and a rounding of integers; None if
      files cannot be compiled: ``ModelFile.check_operators`` has advice.
    * ``names_module``: whether the module's inputs and outputs get the names of the graph's.
    * ``runtime``: the reference runtime ("litert", "onnxruntime", "torch"), "" for none;
      ``rounding``: the rounding of integers in that runtime; ``reads_integers``: whether the file
      determines which operators are computed in integers.
    * ``written``: whether files can be written in another order (otherwise
      ``ModelFile.reordered`` refuses, with advice); ``after_order``: which runtimes follow the
      stored order.

    Optional features: ``rows`` returns the file's network by rows; ``interface``, the network with
    integer inputs and outputs; ``causal``, the network with rows of the past instead of padding;
    ``offline_plan``, the file with an order and a plan for TFLM; ``allocated``, the memory that a
    program has planned; ``labels``, the labels of the elements of each output.
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
    labels: Callable[[Any], Sequence[tuple[str, ...]]] | None = None

    def begins(self, head: bytes) -> bool:
        """Return whether the first bytes of a file have this format's magic bytes."""
        if self.magic is None:
            return False
        at, word = self.magic
        return head[at : at + len(word)] == word
