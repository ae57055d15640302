"""Runs sparse networks on the CPU, as TVM kernels.

run = compile(net, order, batch=128)    # or order=None: measure and choose the fastest order
y = run(x)                              # (batch, inputs) -> (batch, outputs)
y = run.columns(x)                      # (inputs, batch) -> (outputs, batch), no transposes
x = aligned((inputs, batch))            # an array at a cache line, which is read fastest
"""

from tvm_serenity import tvm_installed

tvm_installed.require_relax()  # Before the imports below, whose errors would be unclear.

from tvm_serenity.sparse.execute.compiled import CompiledNetwork, aligned
from tvm_serenity.sparse.execute.tuning import compile, tuned

__all__ = ["CompiledNetwork", "aligned", "compile", "tuned"]
