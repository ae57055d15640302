"""Models by the hundred that may be refused: one operator each, in forms that few models have."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from tests.conformance.onnx_nodes import _array, _with_stored_inputs, cases_of, modules
from tests.conformance.writer import Node, T, tflite
from tvm_serenity.frontends._tflite_schema import BUILTIN_OPERATORS


@dataclass(frozen=True)
class Model:
    """A model file as ``make`` writes it; None where it cannot be written."""

    name: str
    suffix: str
    make: Callable[[], bytes | None]


def onnx_models() -> Iterator[Model]:
    """The node tests of the ``onnx`` package, with further inputs as such and stored."""
    for module in modules():
        for stored in (False, True):
            name = f"{module}, stored={stored}"
            yield Model(name, ".onnx", partial(_node, module, stored))


def _node(module: str, stored: bool) -> bytes | None:
    """The first case of a module whose inputs are arrays."""
    for case in cases_of(module).values():
        given = [_array(a) for a in case.data_sets[0][0]]
        if not all(isinstance(a, np.ndarray) for a in given):
            continue
        model = _with_stored_inputs(case.model, given)[0] if stored and given else case.model
        return bytes(model.SerializeToString())
    return None


def tflite_models() -> Iterator[Model]:
    """Each operator of the format on one or two tensors, of floats and quantised, no options."""
    for kind in BUILTIN_OPERATORS:
        for dtype in ("float32", "int8"):
            for count in (1, 2):
                name = f"{kind} of {count} {dtype}"
                yield Model(name, ".tflite", partial(_operator, kind, dtype, count))


def _operator(kind: str, dtype: str, count: int) -> bytes | None:
    one = T((1, 4, 4, 2), dtype) if dtype == "float32" else T((1, 4, 4, 2), dtype, 0.1)
    tensors = [replace(one) for _ in range(count + 1)]
    given = list(range(count))
    return tflite(tensors, [Node(kind, given, [count])], given, [count])


_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "bessel": torch.special.bessel_j0,
    "complex": lambda x: torch.fft.rfft(x).abs(),
    "count": lambda x: x.nonzero().float().sum(),
    "determinant": torch.linalg.det,
    "half": lambda x: (x.half() * 2).float(),
    "histogram": lambda x: torch.histc(x, 4),
    "inverse": torch.linalg.inv,
    "kth": lambda x: x.kthvalue(2).values,
    "mask": lambda x: x[x > 0],
    "median": lambda x: x.median(1).values,
    "mode": lambda x: x.mode(1).values,
    "singular": lambda x: torch.linalg.svdvals(x),
    "unique": lambda x: torch.unique(x),
    "zeta": lambda x: torch.special.zeta(x, x),
}


class _Function(nn.Module):  # type: ignore[misc]
    def __init__(self, name: str) -> None:
        super().__init__()
        self.function = _FUNCTIONS[name]

    def forward(self, x: Any) -> Any:
        return self.function(x)


def torch_models() -> Iterator[Model]:
    """Functions of PyTorch that few networks have."""
    for name in _FUNCTIONS:
        yield Model(name, ".pt2", partial(_program, name))


def _program(name: str) -> bytes | None:
    from io import BytesIO

    held = BytesIO()
    try:
        program = torch.export.export(_Function(name), (torch.ones(4, 4),))
    except Exception:  # of data that decides sizes: no program, nothing to refuse
        return None
    torch.export.save(program, held)
    return held.getvalue()
