"""Object files that are compiled once for all builds that share their sources."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from threading import Lock

from tvm_serenity.firmware.board.toolchain import NAMED, make
from tvm_serenity.firmware.emit.c import sources_of
from tvm_serenity.firmware.program import Program


@dataclass
class _Object:
    """An object file, and the lock of its compilation."""

    lock: Lock = field(default_factory=Lock)
    compiled: bytes | None = None


@dataclass
class SharedObjects:
    """The objects of a network that several threads share: those of equal sources and flags."""

    known: dict[bytes, _Object] = field(default_factory=dict)

    def compile(self, program: Program, folder: Path) -> None:
        """Leave the objects of the project in ``folder``, newer than its files.

        What another thread compiles comes last.
        """
        texts = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        wanted = []
        for name in sources_of(program):
            made = self.known.setdefault(_digest(name, texts), _Object())
            target = folder / "build" / f"{Path(name).stem}.o"
            if made.lock.acquire(blocking=False):
                try:
                    _complete(made, folder, target)
                finally:
                    made.lock.release()
            else:
                wanted.append((made, target))
        for made, target in wanted:
            with made.lock:
                _complete(made, folder, target)


def _complete(made: _Object, folder: Path, target: Path) -> None:
    """Compile an object if it is not known, and leave it as ``target``."""
    if made.compiled is None:
        make(folder, str(target.relative_to(folder)))
        made.compiled = target.read_bytes()  # the folder may go before others ask
        return
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(made.compiled)


def _digest(source: str, texts: Mapping[str, bytes]) -> bytes:
    """Return a digest of a source, of all files it includes, and of the Makefile with the flags."""
    read = ["Makefile", source]
    for name in read:  # which grows
        included = (found.decode() for found in NAMED.findall(texts[name]))
        read += [one for one in included if one in texts and one not in read]
    digest = sha256()
    for name in read:
        digest.update(f"{name}\n{len(texts[name])}\n".encode())
        digest.update(texts[name])
    return digest.digest()
