"""Peaks of exported programs: against tensors that are really there, and Inductor's estimates."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from tests.executorch.nets import Branches, Counter, Parts, Wired, attention
from tests.torch.inductor import kernels
from tests.torch.nets import Cells, Dense, UNet
from tvm_serenity.errors import CheckError, InputError, UnsupportedError
from tvm_serenity.graph import text
from tvm_serenity.memory import peak_bytes
from tvm_serenity.schedule import schedule
from tvm_serenity.schedule.certificate import check_certificate
from tvm_serenity.search.outcome import Outcome
from tvm_serenity.torch import peak

pytestmark = pytest.mark.filterwarnings("ignore")  # of PyTorch, about itself
WAVES = torch.linspace(-1, 1, 16 * 64).reshape(1, 16, 8, 8)


class Views(torch.nn.Module):
    """Views of views, one that is written to, and one of an input."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = torch.cat([x, x * 2], 1)
        top, low = wide.split(16, 1)
        top = top.transpose(2, 3).flatten(1)
        own = (low + 1).permute(0, 2, 3, 1)
        own.relu_()
        grown = top.sum().expand(1, 1024) + x.mean((2, 3), keepdim=True).expand(
            1, 16, 8, 8
        ).flatten(1)
        return grown + own.reshape(1, -1) + x.view(1, -1)


CASES: dict[str, tuple[Any, tuple[torch.Tensor, ...]]] = {
    "wired": (lambda: Wired(16), (WAVES,)),
    "branches": (Branches, (WAVES[:, :3],)),
    "parts": (Parts, (torch.linspace(-1, 1, 4 * 48).reshape(4, 48).sin(),)),
    "views": (Views, (WAVES,)),
    "cells": (lambda: Cells(1), (WAVES,)),
    "unet": (UNet, (WAVES[:, :3],)),
    "dense": (lambda: Dense(3), (WAVES,)),
}


def live_bytes(exported: Any, order: list[Any], inputs: tuple[torch.Tensor, ...]) -> int:
    """The most bytes of storage that is there while the nodes run one by one.

    Shares no code with what it checks: real tensors, dropped after the last node that reads them.
    """
    module = exported.graph_module
    state = [*exported.state_dict.values(), *exported.constants.values()]
    kept = {t.untyped_storage().data_ptr() for t in state if isinstance(t, torch.Tensor)}
    interpreter = torch.fx.Interpreter(module)
    values: dict[Any, Any] = {}
    names = {s.arg.name: s.target for s in exported.graph_signature.input_specs if s.target}
    given = iter(t.clone() for t in inputs)
    for node in module.graph.nodes:
        if node.op == "placeholder":
            held = names.get(node.name)
            table = {**exported.state_dict, **exported.constants}
            values[node] = table[held] if held is not None else next(given)
    interpreter.env = values
    left = {node: set(node.users) for node in module.graph.nodes}
    most = 0
    for node in order:
        values[node] = interpreter.run_node(node)
        storages = {
            t.untyped_storage().data_ptr(): t.untyped_storage().nbytes()
            for value in values.values()
            for t in (value if isinstance(value, list | tuple) else [value])
            if isinstance(t, torch.Tensor)
        }
        most = max(most, sum(size for where, size in storages.items() if where not in kept))
        for source in node.all_input_nodes:
            left[source].discard(node)
        for done in [other for other in values if not left[other]]:
            del values[done]
    return most


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("core", [False, True])
def test_a_peak_is_of_the_tensors_that_are_there(name: str, core: bool) -> None:
    make, inputs = CASES[name]
    exported = torch.export.export(make().eval(), inputs)
    if core:
        exported = exported.run_decompositions()
    found = peak(exported)
    given = [n for n in exported.graph.nodes if n.op not in ("placeholder", "output", "get_attr")]
    assert sorted(map(str, found.order)) == sorted(map(str, given))
    assert live_bytes(exported, given, inputs) == found.given_bytes
    assert live_bytes(exported, list(found.order), inputs) == found.peak_bytes
    assert found.schedule.outcome is Outcome.OPTIMAL


def test_inputs_that_the_caller_keeps_do_not_count() -> None:
    make, inputs = CASES["branches"]
    exported = torch.export.export(make().eval(), inputs)
    kept = peak(exported, inputs=False)
    assert kept.peak_bytes <= peak(exported).peak_bytes
    counter = torch.export.export(Counter(), (torch.ones(1, 64),))
    assert peak(counter, inputs=False).peak_bytes == peak(counter).peak_bytes - 256


def test_a_certificate_is_checked_without_the_program(tmp_path: Path) -> None:
    from tvm_serenity.cli import app
    from tvm_serenity.cli.commands import register

    register()
    make, inputs = CASES["branches"]
    found = peak(torch.export.export(make().eval(), inputs))
    claims = found.certificate()
    assert check_certificate(found.graph, claims).bound_checked
    with pytest.raises(CheckError):
        check_certificate(found.graph, {**claims, "peak_bytes": claims["peak_bytes"] - 1})
    (tmp_path / "graph.txt").write_text(text.dump(found.graph))
    (tmp_path / "claims.json").write_text(json.dumps(claims))
    command = ["check", str(tmp_path / "graph.txt"), str(tmp_path / "claims.json")]
    app(command, standalone_mode=False)


def test_symbolic_sizes_are_refused_by_the_nodes_name() -> None:
    batch = torch.export.Dim("batch", min=1, max=8)
    program = torch.export.export(Parts(), CASES["parts"][1], dynamic_shapes=[{0: batch}])
    with pytest.raises(UnsupportedError, match=r"node 'x' has a symbolic shape"):
        peak(program)


@pytest.mark.parametrize("name", ["cells", "unet", "attention"])
def test_what_inductor_estimates_is_the_peak_of_its_kernels(name: str) -> None:
    """Of all its orders; the exact one is not above the best of them."""
    make, inputs = CASES[name] if name in CASES else (lambda: attention()[0], attention()[1])
    found = kernels(make().eval(), inputs)
    assert set(found.estimates) == {"baseline", "lpmf", "bfs", "dfs"}
    for method, order in found.orders.items():
        assert peak_bytes(found.graph, order) == found.estimates[method]
    best = schedule(found.graph)
    assert best.outcome is Outcome.OPTIMAL
    assert best.peak_bytes <= min(found.estimates.values())


def test_exact_orders_of_cells_in_a_row_need_less_than_its_heuristics() -> None:
    found = kernels(Cells(3).eval(), (torch.zeros(1, 16, 32, 32),))
    assert schedule(found.graph).peak_bytes < 0.94 * min(found.estimates.values())


def test_a_module_that_was_not_exported_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"needs the result of torch\.export\.export, not a Counter"
    ):
        peak(Counter())
