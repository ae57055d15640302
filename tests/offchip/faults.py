"""Seeded faults in the claims of a transfer plan."""

from collections.abc import Callable
from typing import Any

import pytest

from tvm_serenity.errors import CheckError
from tvm_serenity.graph import Graph
from tvm_serenity.offchip.transfers import check_transfers


def check_finds(graph: Graph, claims: Any, seed: Callable[[Any], object], said: str) -> None:
    """The checker takes ``claims``, and refuses them with ``said`` after ``seed`` changed them."""
    check_transfers(graph, claims)
    seed(claims)
    with pytest.raises(CheckError) as raised:
        check_transfers(graph, claims)
    assert said in str(raised.value)
