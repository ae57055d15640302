"""The description of a zoo network before it is built: name, source and parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tvm_serenity.errors import InputError

if TYPE_CHECKING:
    from tvm_serenity.zoo.net import NetTensor

Value = int | float | str | None


@dataclass(frozen=True)
class ZooParameter:
    """A parameter of a network: a number in [low, high], or one of ``choices``.

    If the default is None, the network chooses the value; ``help`` then says which value.
    """

    name: str
    default: Value
    help: str
    low: float = 0
    high: float = 0
    choices: tuple[str, ...] = ()
    kind: type[int] | type[float] = int

    @property
    def allowed(self) -> str:
        """A text that describes the allowed values."""
        if self.choices:
            return " or ".join(self.choices)
        word = "an integer" if self.kind is int else "a number"
        return f"{word} from {self.low} to {self.high}"

    def parse(self, text: str) -> Value:
        """Parse ``text`` and return its value; raise :class:`InputError` if it is not allowed."""
        if self.choices:
            if text in self.choices:
                return text
        else:
            try:
                value = self.kind(text)
            except ValueError:
                value = None
            if value is not None and self.low <= value <= self.high:
                return value
        raise InputError(f"{self.name}={text}: {self.name} must be {self.allowed}")


def choice(name: str, choices: tuple[str, ...], help: str) -> ZooParameter:
    """Return a parameter whose value is one of ``choices``; the first is the default."""
    return ZooParameter(name, choices[0], help, choices=choices)


def switch(name: str, default: int, help: str) -> ZooParameter:
    """Return a parameter that is 0 or 1."""
    return ZooParameter(name, default, help, 0, 1)


def image_size(default: int) -> ZooParameter:
    """Return the parameter for the height and width of a full network's input image."""
    return ZooParameter("size", default, "height and width of the image", 32, 4096)


def size(default: int, of: str) -> ZooParameter:
    """Return the parameter for the height and width of the input of a part of a network."""
    return ZooParameter("size", default, f"height and width of {of}", 2, 4096)


def channels(default: int, help: str, low: int = 2) -> ZooParameter:
    """Return the parameter for the width of the network."""
    return ZooParameter("channels", default, help, low, 4096)


COMMON = (
    choice("layout", ("NCHW", "NHWC"), "order of the axes of every feature map"),
    choice("dtype", ("float32",), "element type"),
    ZooParameter("seed", 0, "seed of the weights and of random graphs", 0, 2**32 - 1),
)


@dataclass(frozen=True)
class ZooEntry:
    """A network of the zoo.

    ``build``: a function that takes a ``NetBuilder`` and the values of the parameters ``own`` by
    name, builds the network, and returns its output. ``params``: the parameters ``own``, and those
    that all networks have.
    """

    name: str
    description: str
    source: str
    build: Callable[..., NetTensor]
    own: tuple[ZooParameter, ...] = ()

    @property
    def params(self) -> tuple[ZooParameter, ...]:
        """All parameters; those of this network are first."""
        return self.own + COMMON

    def values(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Return the value of each parameter: parsed from ``given``, or the default."""
        known = {param.name: param for param in self.params}
        for name in given:
            if name not in known:
                raise InputError(
                    f"{self.name} has no parameter {name}; choose among {', '.join(known)}"
                )
        return {
            name: param.parse(given[name]) if name in given else param.default
            for name, param in known.items()
        }
