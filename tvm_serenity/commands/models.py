"""A model by path or by name: ``x.tflite``, ``x.onnx``, ``x.pt2``, ``x.txt`` or ``zoo:NAME``."""

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
    """Where a model comes from; ``spec`` is what the user wrote."""

    spec: str
    dims: Mapping[str, int]
    opaque: Mapping[str, int] = field(default_factory=dict)
    signature: str | None = None

    @property
    def is_zoo(self) -> bool:
        """Whether it is built here rather than read from a file."""
        return self.spec.startswith(ZOO)

    def file(self) -> ModelFile:
        """Return the model with its graph; a zoo network's operators are its fused kernels."""
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
        """Return the model as a Relax module; both as :func:`to_relax` takes them."""
        if self.is_zoo:
            from tvm_serenity import zoo

            if self.dims:
                raise InputError(f"{self.spec}: set sizes as parameters, like zoo:NAME?size=96")
            return zoo.build(self.spec)
        model = self._checked(integers != OFF)  # before TVM, whose import takes seconds
        from tvm_serenity.frontends.relax import to_relax

        return to_relax(model, self.dims, integers, dynamic_range=dynamic_range)

    def to_build(self) -> "str | ModelFile":
        """Return the model as ``firmware.build`` takes it: a file that was read, or its name."""
        return self.spec if self.is_zoo else self.file()

    def check_operators(self, integers: bool = True) -> None:
        """Raise :class:`UnsupportedError` naming the operators of a file that have no meaning.

        ``integers``: as :meth:`ModelFile.check_operators` takes it.
        """
        if not self.is_zoo:
            self._checked(integers)

    def _loaded(self) -> ModelFile:
        """The file as it is read; of several signatures the others are said, once."""
        model = load(self.spec, self.dims, self.opaque, self.signature)
        others = other_signatures(model)
        if others and self.signature is None and self.spec not in _SAID:
            _SAID.add(self.spec)
            warnings.warn(f"{self.spec}: {others}", SerenityWarning, stacklevel=2)
        return model

    def runtime_file(self) -> str:
        """Return the path of what a runtime is asked to compute: the file, or that part of it."""
        return self.spec if self.is_zoo else str(runtime_file(self.file()))

    def _checked(self, integers: bool) -> ModelFile:
        model = self.file()
        try:
            model.check_operators(integers)
        except SerenityError as error:
            raise type(error)(one_line(f"{self.spec}: {error}")) from None
        return model


def _kept(model: ModelFile) -> ModelFile:
    """Keep the last model that was read: to take a large one apart delays the end of a command."""
    _KEPT[:] = [model]
    return model


_KEPT: list[ModelFile] = []
_SAID: set[str] = set()
"""The files whose other signatures were said."""


def source(
    spec: str, reading: ReadOptions | None = None, opaque: Mapping[str, int] | None = None
) -> ModelSource:
    """Return the source ``spec`` names, and what is read of it.

    ``opaque``: operators that the user computes, each with its workspace in bytes.
    """
    reading = reading or ReadOptions()
    if opaque and spec.startswith(ZOO):
        raise InputError(f"{spec}: --opaque is for operators of .tflite files")
    if reading.signature is not None and spec.startswith(ZOO):
        raise InputError(f"{spec}: --signature is for .tflite files")
    return ModelSource(spec, reading.dims, opaque or {}, reading.signature)
