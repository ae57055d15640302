"""Execution on the CPU: sparse networks as TVM kernels.

run = compile(net, order, batch=128)        # or order=None: tuned for the cache
y = run(x)                                  # (batch, inputs) -> (batch, outputs)
y = run.columns(x)                          # (inputs, batch) -> (outputs, batch), no transposes
"""

from tvm_serenity.sparse.execute.compiled import Compiled
from tvm_serenity.sparse.execute.tuning import compile, tuned

__all__ = ["Compiled", "compile", "tuned"]
