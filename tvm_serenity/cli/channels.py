"""The text that commands print about channels that are not computed."""

from collections.abc import Mapping
from typing import Any


def channels_text(channels: Mapping[str, Any]) -> str:
    """Return the counts of ``FoldedChannels.json`` as text; "" if all channels are computed."""
    if not channels["left_out"]:
        return ""
    skipped, total, tensors = channels["left_out"], channels["of"], len(channels["tensors"])
    return f"{skipped:,} of {total:,} (in {tensors} tensors) are constant or unread: not computed"
