"""What commands print of channels that are not computed."""

from collections.abc import Mapping
from typing import Any


def said_of_channels(found: Mapping[str, Any]) -> str:
    """Return in words what ``FoldedChannels.json`` says; nothing where all are computed."""
    if not found["left_out"]:
        return ""
    tensors = len(found["tensors"])
    return (
        f"{found['left_out']:,} of {found['of']:,}, in {tensors} tensors, are constant or not "
        "read: not computed"
    )
