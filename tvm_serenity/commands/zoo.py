"""``zoo``: list the built-in networks."""

from collections.abc import Mapping

from tvm_serenity.zoo import NAMES, ZooEntry


def zoo() -> Mapping[str, ZooEntry]:
    """Return the networks by name: use one as zoo:NAME or zoo:NAME?param=value&param=value."""
    return NAMES
