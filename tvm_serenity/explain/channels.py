"""The claim about channels of integer layers that are not computed."""

from collections.abc import Sequence

from tvm_serenity.explain.claims import Claim, quoted

CHANNELS = "channels"


def channels_claim(total: int, skipped: int, layers: Sequence[tuple[str, int, int]]) -> Claim:
    """Return the claim that ``skipped`` of ``total`` channels are not computed.

    ``layers``: name, number of channels and number of skipped channels of each layer.
    """
    if not skipped:
        text = f"All {total:,} channels of integer layers are computed: none is constant or unread."
    else:
        each = ", ".join(f"{quoted(name)} {lost:,} of {all_:,}" for name, all_, lost in layers)
        text = (
            f"{skipped:,} of {total:,} channels of integer layers are constant or unread; build "
            f"and compile skip them unless --channels keep is given: {each}."
        )
    numbers = {
        "of": total,
        "left_out": skipped,
        "layers": [{"name": name, "of": all_, "left_out": lost} for name, all_, lost in layers],
    }
    return Claim(CHANNELS, text, numbers)
