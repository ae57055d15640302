"""Models by path or name: ``x.tflite``, ``x.onnx``, ``x.pt2``, ``x.txt`` or ``zoo:NAME``."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tvm_serenity.errors import InputError, SerenityError, SerenityWarning
from tvm_serenity.frontends import load, other_signatures, runtime_file
from tvm_serenity.frontends.model_file import ModelFile, one_line
from tvm_serenity.options.model import ReadOptions
from tvm_serenity.quantize.choices import OFF
from tvm_serenity.system.files import ZOO


@dataclass(frozen=True)
class ModelSource:
    """The source of a model; ``spec``: the path or name that the user wrote."""

    spec: str
    dims: Mapping[str, int]
    opaque: Mapping[str, int] = field(default_factory=dict)
    signature: str | None = None

    @property
    def is_zoo(self) -> bool:
        """Whether the model is a zoo network rather than a file."""
        return self.spec.startswith(ZOO)

    def file(self) -> ModelFile:
        """Return the model with its graph; the operators of a zoo network are fused kernels."""
        return self._file

    @cached_property
    def _file(self) -> ModelFile:
        if not self.is_zoo:
            return _kept(self._loaded())
        from tvm_serenity.frontends.text_file import TextFile
        from tvm_serenity.relax.read import module_graph

        graph = module_graph(self.module(), self.spec)
        return TextFile(Path(self.spec), graph)

    def module(self, integers: str = "tflite", dynamic_range: str = "litert") -> Any:
        """Return the model as a Relax module; the parameters are those of :func:`to_relax`."""
        if self.is_zoo:
            from tvm_serenity import zoo

            if self.dims:
                raise InputError(f"{self.spec}: set sizes as parameters, like zoo:NAME?size=96")
            return zoo.build(self.spec)
        model = self._checked(integers != OFF)  # before TVM, whose import takes seconds
        from tvm_serenity.frontends.relax import to_relax

        return to_relax(model, self.dims, integers, dynamic_range=dynamic_range)

    def to_build(self) -> "str | ModelFile":
        """Return the model as ``firmware.build`` takes it: the read file, or the zoo name."""
        return self.spec if self.is_zoo else self.file()

    def check_operators(self, integers: bool = True) -> None:
        """Raise :class:`UnsupportedError` that names the unsupported operators of a file.

        ``integers``: as for :meth:`ModelFile.check_operators`.
        """
        if not self.is_zoo:
            self._checked(integers)

    def _loaded(self) -> ModelFile:
        """Return the read file; warn once about signatures that are not read."""
        model = load(self.spec, self.dims, self.opaque, self.signature)
        others = other_signatures(model)
        if others and self.signature is None and self.spec not in _SAID:
            _SAID.add(self.spec)
            warnings.warn(f"{self.spec}: {others}", SerenityWarning, stacklevel=2)
        return model

    def runtime_file(self) -> str:
        """Return the path of the model for a reference runtime: the file, or a part of it."""
        return self.spec if self.is_zoo else str(runtime_file(self.file()))

    def _checked(self, integers: bool) -> ModelFile:
        model = self.file()
        try:
            model.check_operators(integers)
        except SerenityError as error:
            raise type(error)(one_line(f"{self.spec}: {error}")) from None
        return model


def _kept(model: ModelFile) -> ModelFile:
    """Return ``model``, kept alive: freeing a large model delays the end of a command."""
    _KEPT[:] = [model]
    return model


_KEPT: list[ModelFile] = []
_SAID: set[str] = set()
"""Files with a warning about signatures that are not read."""


def source(
    spec: str, reading: ReadOptions | None = None, opaque: Mapping[str, int] | None = None
) -> ModelSource:
    """Return the source that ``spec`` names.

    ``reading``: sizes of dimensions and the signature. ``opaque``: operators that the user
    computes, each with its workspace in bytes.
    """
    reading = reading or ReadOptions()
    if opaque and spec.startswith(ZOO):
        raise InputError(f"{spec}: --opaque is for operators of .tflite files; leave it out")
    if reading.signature is not None and spec.startswith(ZOO):
        raise InputError(f"{spec}: --signature is for .tflite files; leave it out")
    return ModelSource(spec, reading.dims, opaque or {}, reading.signature)
