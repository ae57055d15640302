"""Exported PyTorch programs: the least peak of their nodes, in any order, with its certificate.

from tvm_serenity.torch import peak

found = peak(torch.export.export(model, inputs))
print(found)                        # bytes in the order given, in the best one, and the bound
found.certificate()                 # what ``serenity check`` verifies without the search
"""

from tvm_serenity.frontends.torch_nodes import BoundNodes, read_nodes
from tvm_serenity.torch.peak import Peak, peak

__all__ = ["BoundNodes", "Peak", "peak", "read_nodes"]
