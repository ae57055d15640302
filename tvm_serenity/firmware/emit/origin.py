"""The origin of a project: licence headers, ``NOTICE`` and ``LICENSE``.

No text depends on the time or the machine, so equal builds give equal bytes.
"""

from collections.abc import Mapping
from importlib.metadata import distribution
from typing import Any

from tvm_serenity.errors import MissingPartError

LICENSED = "SPDX-License-Identifier: Apache-2.0"
PACKAGE = "tvm-serenity"
_IN_C, _WITH_HASH = (
    (".c", ".h", ".ld", ".ino"),
    ("Makefile", "Lists.txt", ".cmake", "Kconfig", ".yml"),
)


def with_licence(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return text files with the licence in their first line; other files stay as they are."""
    return {name: _header(name) + data for name, data in files.items()}


def _header(name: str) -> bytes:
    if name.endswith(_IN_C):
        return f"/* {LICENSED} */\n".encode()
    return f"# {LICENSED}\n".encode() if name.endswith(_WITH_HASH) else b""


def about_origin(name: str, origin: Mapping[str, Any]) -> dict[str, bytes]:
    """Return ``NOTICE`` and ``LICENSE`` of the network ``name``.

    ``origin`` may have "tool", "model", "model_sha256" and "command", as ``metadata.json`` has.

    Raises :class:`MissingPartError` if the installed package has no licence text.
    """
    text = distribution(PACKAGE).read_text("licenses/LICENSE")
    if text is None:
        raise MissingPartError(
            f"{PACKAGE}: its LICENSE is not installed; install the package again"
        )
    lines = [f"{name}: firmware of a neural network"]
    lines += [f"made by {origin['tool']}"] if origin.get("tool") else []
    if origin.get("model"):
        digest = origin.get("model_sha256")
        lines.append(f"from {origin['model']}" + (f", SHA-256 {digest}" if digest else ""))
    lines += [f"as by: {origin['command']}"] if origin.get("command") else []
    lines += [
        "",
        "The C sources, build files and scripts are licensed under the Apache License, Version 2.0",
        "(LICENSE). The constants are those of the model and under the model's own licence.",
    ]
    return {"NOTICE": ("\n".join(lines) + "\n").encode(), "LICENSE": text.encode()}
