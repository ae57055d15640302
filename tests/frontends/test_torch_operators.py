"""PyTorch operators that TVM's importer converts to something else, against PyTorch."""

from typing import Any

import pytest

pytest.importorskip("tvm")
torch = pytest.importorskip("torch")

from tests.conformance.torch_check import compared_with_eager  # noqa: E402
from tests.conformance.torch_draws import Call  # noqa: E402

resized = torch.nn.functional.interpolate

MODULES = [
    torch.nn.ELU(0.7),
    torch.nn.SELU(),
    torch.nn.CELU(0.6),
    Call(lambda x: x[..., -1]),
    Call(lambda x: x[:, -2]),
    Call(lambda x: x[1]),
    Call(lambda x: resized(x, size=7)),
    Call(lambda x: resized(x[None], size=(9, 12), mode="nearest-exact")),
    Call(lambda x: resized(x[None], scale_factor=1.5)),
]


@pytest.mark.parametrize("module", MODULES, ids=range(len(MODULES)))
def test_operators_are_pytorchs(module: Any) -> None:
    torch.manual_seed(0)
    verdict = compared_with_eager(module, (torch.randn(3, 4, 5) * 3,))
    assert verdict.status == "equal", verdict.detail
