"""PyTorch on the CPU: a saved ``torch.export`` program."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tvm_serenity.validation.references.values import Array

if TYPE_CHECKING:
    import torch


class TorchProgram:
    """A ``.pt2`` file of ``torch.export.save``; ``model``: its path or its bytes.

    ``double``: compute in float64, whatever its float types.
    """

    def __init__(self, model: bytes | str, keep: bool, double: bool = False) -> None:
        import io

        import torch

        del keep
        torch.set_num_threads(1)
        self.torch = torch
        self.program = torch.export.load(io.BytesIO(model) if isinstance(model, bytes) else model)
        self.double = double
        self.module = self.program.module()
        if double:
            self.module = self.module.double()

    def signature(self) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """Return ``(name, shape, dtype, 0)`` of each input; outputs are not described."""
        values = {n.name: n.meta.get("val") for n in self.program.graph.nodes}
        names = self.program.graph_signature.user_inputs
        return [_entry(str(name), values[str(name)]) for name in names], []

    def run(self, inputs: Sequence[Array]) -> tuple[list[Array], dict[int, Array]]:
        """Return the outputs for ``inputs``."""
        with self.torch.no_grad():
            found = self.module(*map(self._given, inputs))
        flat, _ = self.torch.utils._pytree.tree_flatten(found)
        return [part.detach().numpy() for part in flat], {}

    step = run

    def _given(self, array: Array) -> "torch.Tensor":
        given = self.torch.from_numpy(np.array(array))
        return given.double() if self.double and given.is_floating_point() else given


def _entry(name: str, value: "torch.Tensor") -> tuple[Any, ...]:
    return name, tuple(int(e) for e in value.shape), str(value.dtype).removeprefix("torch."), 0
