"""The progress of a step of a command: a line of text, or a bar on a terminal."""


class Counted(str):
    """A progress text with its numbers, like "compiling kernels: 3 of 10"."""

    done: int
    total: int

    def __new__(cls, label: str, done: int, total: int) -> "Counted":
        """Return the text "``label``: ``done`` of ``total``" with its numbers."""
        made = super().__new__(cls, f"{label}: {done} of {total}")
        made.done, made.total = done, total
        return made
