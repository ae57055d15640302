"""Constants that are compiled once for all builds that share them."""

from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from threading import Lock

from tvm_serenity.firmware.board.toolchain import make
from tvm_serenity.firmware.emit.c import file
from tvm_serenity.firmware.program import Program


@dataclass
class _Text:
    """One source text of constants: its object file, and the lock of its compilation."""

    lock: Lock = field(default_factory=Lock)
    compiled: bytes | None = None


@dataclass
class SharedConstants:
    """Object files of ``weights.c`` that several threads share for projects of equal flags."""

    known: dict[bytes, _Text] = field(default_factory=dict)

    def compile(self, program: Program, folder: Path) -> None:
        """Put the object file of the constants into the project in ``folder``.

        The first call compiles it, later calls with the same text copy it. It is newer than its
        source, so that make does not compile it again.
        """
        source = folder / file(program, "weights.c")
        made = folder / "build" / f"{source.stem}.o"
        text = self.known.setdefault(sha256(source.read_bytes()).digest(), _Text())
        with text.lock:
            if text.compiled is None:
                make(folder, str(made.relative_to(folder)))
                text.compiled = made.read_bytes()  # the folder may be removed before the next call
                return
        made.parent.mkdir(exist_ok=True)
        made.write_bytes(text.compiled)
