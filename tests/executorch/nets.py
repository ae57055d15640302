"""Small networks of PyTorch, exported as ExecuTorch programs and run by its runtime."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from tvm_serenity.zoo.wiring import Wiring

Tensors = tuple[torch.Tensor, ...]


class Branches(nn.Module):
    """Branches that widen and narrow, told first together, then one by one."""

    def __init__(self, count: int = 3) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.wide = nn.ModuleList(nn.Conv2d(3, 32, 3, padding=1) for _ in range(count))
        self.thin = nn.ModuleList(nn.Conv2d(32, 4, 1) for _ in range(count))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = [torch.relu(conv(x)) for conv in self.wide]
        thin = [conv(w).flatten(1) for conv, w in zip(self.thin, wide, strict=True)]
        return torch.cat(thin, 1)


class Wired(nn.Module):
    """A stage wired at random: sums, relu, separable convolution."""

    def __init__(self, nodes: int, channels: int = 16, seed: int = 1, model: str = "ws") -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.wiring = Wiring(n=nodes, model=model).predecessors(seed)
        self.deep = nn.ModuleList(
            nn.Conv2d(channels, channels, 3, padding=1, groups=channels) for _ in self.wiring
        )
        self.point = nn.ModuleList(nn.Conv2d(channels, channels, 1) for _ in self.wiring)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        outs: list[torch.Tensor] = []
        for reads, deep, point in zip(self.wiring, self.deep, self.point, strict=True):
            y = outs[reads[0]] if reads else x
            for other in reads[1:]:
                y = y + outs[other]
            outs.append(point(deep(torch.relu(y))))
        inner = {node for reads in self.wiring for node in reads}
        ends = [out for index, out in enumerate(outs) if index not in inner]
        return torch.stack(ends).sum(0).mean((2, 3))


class Counter(nn.Module):
    """Reads a buffer on several branches, writes it, and says both what was and what is."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(1, 64))

    def forward(self, x: torch.Tensor) -> Tensors:
        before = self.seen * 2
        wide = torch.cat([x, self.seen, x], 1)
        self.seen.add_(x)
        return before, wide.sum(1), self.seen + 1


class Parts(nn.Module):
    """Operators with several results, and views of them."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a, b, c = torch.split(x, 16, 1)
        largest, where = torch.max(a, 1)
        low, high = torch.min(b, 1)
        joined = torch.cat([low.view(-1), high.to(torch.float32).view(-1), c.reshape(-1)])
        return joined * largest.sum() + where.to(torch.float32).sum()


def attention(width: int = 64, tokens: int = 64) -> tuple[nn.Module, Tensors]:
    """A block of a transformer without a fused kernel."""
    torch.manual_seed(0)
    block = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True)
    return block.eval(), (torch.randn(1, tokens, width),)


def folded(exported: Any) -> Any:
    """The program with what depends on weights alone computed before, as transposed weights."""
    from executorch.exir.passes.constant_prop_pass import constant_prop_pass

    return constant_prop_pass(exported.run_decompositions())


def exported(
    model: nn.Module,
    inputs: Tensors,
    *,
    passes: Callable[[Any], list[Any]] | None = None,
    planning: Any = None,
    fold: bool = False,
    **options: Any,
) -> Any:
    """The program of a model, as ``to_executorch`` makes it."""
    from executorch.exir import ExecutorchBackendConfig, to_edge
    from executorch.exir.passes import MemoryPlanningPass

    program = torch.export.export(model.eval(), inputs, strict=False)
    edge = to_edge(folded(program) if fold else program)
    return edge.to_executorch(
        ExecutorchBackendConfig(
            passes=passes(edge) if passes is not None else [],
            memory_planning_pass=MemoryPlanningPass(planning, **options),
        )
    )


def sizes(program: Any) -> list[int]:
    """The bytes of each memory that a program's method is given."""
    return list(program.executorch_program.execution_plan[0].non_const_buffer_sizes)[1:]


def outputs(program: Any, inputs: Tensors, times: int = 1) -> Sequence[Any]:
    """What ExecuTorch's runtime computes, the last of ``times`` calls."""
    from executorch.runtime import Runtime

    method = Runtime.get().load_program(program.buffer).load_method("forward")
    found: Sequence[Any] = ()
    for _ in range(times):
        found = [torch.as_tensor(value).clone() for value in method.execute(inputs)]
    return found
