"""Execution on the CPU: sparse networks as TVM kernels.

run = compile(net, order, batch=128)        # or order=None: tuned for the cache
y = run(x)                                  # (batch, inputs) -> (batch, outputs)
y = run.columns(x)                          # (inputs, batch) -> (outputs, batch), no transposes
x = aligned((inputs, batch))                # an array that is read fastest
"""

from tvm_serenity import tvm_installed

tvm_installed.require_relax()  # before anything that fails without

from tvm_serenity.sparse.execute.compiled import CompiledNetwork, aligned
from tvm_serenity.sparse.execute.tuning import compile, tuned

__all__ = ["CompiledNetwork", "aligned", "compile", "tuned"]
