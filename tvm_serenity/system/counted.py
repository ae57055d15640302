"""A step of a command that says how much of it is done: a line of text, on a terminal a bar."""


class Counted(str):
    """What is being done, ``done`` of ``total`` times: as text "compiling kernels: 3 of 10"."""

    done: int
    total: int

    def __new__(cls, label: str, done: int, total: int) -> "Counted":
        """Return the text with its numbers."""
        made = super().__new__(cls, f"{label}: {done} of {total}")
        made.done, made.total = done, total
        return made
