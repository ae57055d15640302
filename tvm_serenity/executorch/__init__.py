"""Orders ExecuTorch programs and plans their memory; export fails if a program does not fit.

from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.exir.passes import MemoryPlanningPass
from tvm_serenity.executorch import SerenityPlanning, order_pass

edge = to_edge(torch.export.export(model, inputs))
program = edge.to_executorch(
    ExecutorchBackendConfig(
        passes=[order_pass(edge)],
        memory_planning_pass=MemoryPlanningPass(SerenityPlanning(capacities=(256 * 1024,))),
    )
)
"""

from tvm_serenity.executorch.order import order_pass
from tvm_serenity.executorch.planning import SerenityPlanning

__all__ = ["SerenityPlanning", "order_pass"]
