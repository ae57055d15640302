"""A project that was built: its files, what is known of it, and what every tensor must be."""

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tvm_serenity.errors import InputError
from tvm_serenity.firmware.program import Array
from tvm_serenity.firmware.ulp import ULP_LIMIT, ULP_LIMIT_LLVM

REFERENCE = "reference.npz"
"""Inputs, every tensor in the order written, and outputs, as TVM and LiteRT computed them."""


@dataclass(frozen=True)
class Project:
    """What ``firmware.build`` made.

    ``directory`` is where it was written, if it was. ``metadata`` is ``metadata.json``, ``facts``
    what ``serenity build --json`` prints, ``files`` what was written, by name.
    """

    directory: Path | None
    metadata: Mapping[str, Any]
    reference: Mapping[str, Array]
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def outputs(self) -> tuple[dict[str, Any], ...]:
        """The tensors of the outputs as ``metadata.json`` describes them."""
        return tuple(self.metadata["tensors"][t] for t in self.metadata["outputs"])

    @property
    def inputs(self) -> tuple[dict[str, Any], ...]:
        """The tensors of the inputs as ``metadata.json`` describes them."""
        return tuple(self.metadata["tensors"][t] for t in self.metadata["inputs"])

    @property
    def windows(self) -> int:
        """Results of one run of the reference: of a window that moves several."""
        moving = self.metadata.get("moving")
        return 1 if moving is None else int(moving["windows"])

    @property
    def ulp_limit(self) -> int:
        """Units in the last place that float tensors may be off."""
        return ULP_LIMIT_LLVM if self.metadata["objects"] else ULP_LIMIT

    @property
    def folder(self) -> Path:
        """Where the project is; :class:`InputError` where it was not written."""
        if self.directory is None:
            raise InputError("the project was not written to a directory")
        return self.directory

    def reference_inputs(self) -> list[Array]:
        """Return the inputs of the reference."""
        return [self.reference[f"input{i}"] for i in range(len(self.inputs))]


def load(directory: str | Path) -> Project:
    """Return the project in ``directory``; :class:`InputError` where it is none."""
    path = Path(directory)
    try:
        metadata = json.loads((path / "metadata.json").read_text(encoding="utf-8"))
        with np.load(path / REFERENCE) as arrays:
            reference = {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{directory}: no firmware project ({reason})") from None
    return Project(path, metadata, reference)


def packed(arrays: Mapping[str, Array]) -> bytes:
    """Return arrays as the bytes of a compressed ``.npz`` file, the same for the same arrays."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, array in arrays.items():
            data = io.BytesIO()
            np.lib.format.write_array(data, np.ascontiguousarray(array))
            file.writestr(zipfile.ZipInfo(f"{name}.npy"), data.getvalue())
    return buffer.getvalue()
