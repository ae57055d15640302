"""PyTorch's quantised programs (PT2E): integer kernels, two steps from PyTorch's at most."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax

from tests.llvm import TARGET
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends.relax import to_relax
from tvm_serenity.relax.pipeline import Prepared, prepared

torch = pytest.importorskip("torch")
pytest.importorskip("torchao")
nn = torch.nn
pytestmark = pytest.mark.filterwarnings("ignore")  # what torchao says of itself


class Images(nn.Module):  # type: ignore[misc, name-defined]
    """Convolutions with a batch norm, depthwise and pointwise, a sum, a pool, a dense layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8)
        self.depthwise, self.pointwise = nn.Conv2d(8, 8, 3, 1, 1, groups=8), nn.Conv2d(8, 16, 1)
        self.beside, self.dense = nn.Conv2d(8, 16, 1), nn.Linear(16, 10)

    def forward(self, x: Any) -> Any:
        x = torch.relu(self.norm(self.first(x)))
        y = self.pointwise(nn.functional.relu6(self.depthwise(x))) + self.beside(x)
        return self.dense(nn.functional.adaptive_avg_pool2d(y, 1).flatten(1))


class Dense(nn.Module):  # type: ignore[misc, name-defined]
    """Dense layers, two of them joined."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(12, 16), nn.Linear(12, 16)
        self.last = nn.Linear(32, 5)

    def forward(self, x: Any) -> Any:
        joined = torch.cat([torch.relu(self.first(x)), self.second(x)], 1)
        return self.last(joined)


def program(net: Any, shape: Sequence[int], *, dynamic: bool = False, channels: bool = True) -> Any:
    """A network quantised by PT2E with the quantiser of XNNPACK, calibrated on seeded inputs."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.testing.pt2e._xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )

    example = (torch.randn(*shape),)
    config = get_symmetric_quantization_config(is_per_channel=channels, is_dynamic=dynamic)
    exported = torch.export.export(net.eval(), example).module()
    made = prepare_pt2e(exported, XNNPACKQuantizer().set_global(config))
    for _ in range(4):
        made(torch.randn(*shape))
    return torch.export.export(convert_pt2e(made), example)


def last_scale(exported: Any) -> float:
    nodes = [n for n in exported.graph.nodes if "quantize_per_tensor" in str(n.target)]
    return float(nodes[-1].args[1])


def steps_apart(exported: Any, made: Prepared, shape: Sequence[int]) -> float:
    """How far results are from PyTorch's, in steps of the result."""
    machine = relax.VirtualMachine(tvm.compile(made.kernels, target=TARGET), tvm.cpu())
    worst = 0.0
    for _ in range(8):
        x = torch.randn(*shape)
        got = machine["main"](tvm.runtime.tensor(x.numpy()))
        got = got if hasattr(got, "numpy") else got[0]
        apart = np.abs(got.numpy() - exported.module()(x).detach().numpy())
        worst = max(worst, float(apart.max()))
    return worst / last_scale(exported)


@pytest.mark.parametrize(
    ("net", "shape", "channels"), [(Images, (1, 3, 16, 16), True), (Dense, (1, 12), False)]
)
def test_integers_are_two_steps_from_pytorch_at_most(
    net: Any, shape: Sequence[int], channels: bool
) -> None:
    torch.manual_seed(0)
    exported = program(net(), shape, channels=channels)
    made = prepared(to_relax(exported), target="llvm")
    assert made.kept_float == ()
    assert steps_apart(exported, made, shape) <= 2.001  # PyTorch rounds floats in between


def test_scales_of_the_run_are_refused_by_name() -> None:
    torch.manual_seed(0)
    exported = program(Dense(), (1, 12), dynamic=True)
    with pytest.raises(UnsupportedError, match="computes a scale at run time"):
        to_relax(exported)
