"""How a network becomes a program."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tvm_serenity.schedule import Options

Notify = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """How a network becomes a program.

    ``order`` is "best" or "given"; ``quantized`` "auto" (integers wherever the model has them) or
    "off"; ``rewrite`` the rules of SerenityRewrite, none by default; ``in_place`` lets kernels
    overwrite an input that dies; ``tuned`` uses the kernel library where it applies; ``codegen`` is
    "c", or "llvm" for kernels compiled here (without the library).
    """

    order: str = "best"
    quantized: str = "auto"
    rewrite: str = ""
    in_place: bool = False
    tuned: bool = True
    codegen: str = "c"
    alignment_bytes: int = 16
    options: Options = field(default_factory=Options)
    notify: Notify = lambda _text: None
