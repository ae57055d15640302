"""Exported PyTorch programs: the least peak of their nodes over all orders, with a certificate.

from tvm_serenity.torch import peak

found = peak(torch.export.export(model, inputs)) print(found)                        # bytes in the
given order, in the best one, and the bound found.certificate()                 # ``serenity check``
verifies it without the search
"""

from tvm_serenity.frontends.torch_nodes import BoundNodes, read_nodes
from tvm_serenity.torch.peak import Peak, peak

__all__ = ["BoundNodes", "Peak", "peak", "read_nodes"]
