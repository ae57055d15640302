"""Channels of integer layers that need not be computed, in words."""

from collections.abc import Sequence

from tvm_serenity.explain.claims import Claim, quoted

CHANNELS = "channels"


def channels_claim(of: int, gone: int, layers: Sequence[tuple[str, int, int]]) -> Claim:
    """Return what is said of ``gone`` of ``of`` channels; ``layers``: name, of, gone of each."""
    if not gone:
        text = f"All {of:,} channels of integer layers are computed: none is constant or not read."
    else:
        each = ", ".join(f"{quoted(name)} {lost:,} of {all_:,}" for name, all_, lost in layers)
        text = (
            f"{gone:,} of {of:,} channels of integer layers are constant or not read; build and "
            f"compile do not compute them (--channels keep does): {each}."
        )
    numbers = {
        "of": of,
        "left_out": gone,
        "layers": [{"name": name, "of": all_, "left_out": lost} for name, all_, lost in layers],
    }
    return Claim(CHANNELS, text, numbers)
