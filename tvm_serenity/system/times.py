"""Times in text."""


def milliseconds_text(milliseconds: float) -> str:
    """Return milliseconds with three figures, and never as a power of ten."""
    return f"{milliseconds:,.0f}" if milliseconds >= 1000 else f"{milliseconds:.3g}"


def range_text(low: float, high: float) -> str:
    """Return a range of milliseconds, without the unit."""
    return f"{milliseconds_text(low)} to {milliseconds_text(high)}"
